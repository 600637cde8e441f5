"""Figures and tables as plain data, and thin renderers to the terminal, HTML, matplotlib, CSV and LaTeX.

>>> import forgetting as fg
>>> from forgetting.report import Settings
>>> Settings(fg.families.two_lines(0.5), "two lines", k=50).k
50
"""

from forgetting.report.build import build_report
from forgetting.report.data import Report, Section
from forgetting.report.saving import load_report, write_report
from forgetting.report.section_registry import section, section_makers
from forgetting.report.settings import Settings, default_problem

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
