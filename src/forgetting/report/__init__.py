"""The report: sections of figures and tables about a problem, as a page and as files.

>>> import forgetting as fg
>>> from forgetting.report import Settings
>>> Settings(fg.families.two_lines(0.5), "two lines", k=50).k
50
"""

from forgetting.core.names import only
from forgetting.report.build import build_report
from forgetting.report.document import Report, Section
from forgetting.report.saving import load_report, write_report
from forgetting.report.settings import Settings, default_problem, section, section_makers

__all__ = [
    "Report",
    "Section",
    "Settings",
    "build_report",
    "default_problem",
    "load_report",
    "section",
    "section_makers",
    "write_report",
]

__dir__ = only(__all__)
