"""A report as plain data, which reloads from report.json: sections of figures and tables; and as text."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from forgetting.core.arrays import as_count, as_kind
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.figures.items import Item, Table, check_key
from forgetting.figures.text_formats import to_latex
from forgetting.files.json_and_toml import decode_json, finite
from forgetting.files.records import typed

FORMAT = "forgetting/report/1"


@dataclass(frozen=True)
class Section:
    """A heading, a text, figures and tables; `missing` says why a section has none.

    Sections of one `part` stand together under its name; the first part has none. In the text, [words](#key) is a link
    to the figure or table of that key.

    >>> Section("rates", "Rates", "What is shown.", ()).missing
    ''
    """

    key: str
    title: str
    text: str
    items: tuple[Item, ...]
    missing: str = ""
    part: str = ""

    def __post_init__(self) -> None:
        check_key(self.key)


@dataclass(frozen=True)
class Report:
    """All sections, the sentences that open the page, further findings, and how the numbers were made.

    `lead` is the key of the figure that opens the page, beside the sentences of the summary; `subtitle` stands in small
    letters under the title.

    >>> report = Report("Title", (), {"seed": 0}, ("one finding",))
    >>> Report.from_dict(report.to_dict()) == report
    True
    """

    title: str
    sections: tuple[Section, ...]
    meta: dict[str, Any]
    summary: tuple[str, ...] = field(default=())
    findings: tuple[str, ...] = field(default=())
    lead: str = ""
    subtitle: str = ""

    def __post_init__(self) -> None:
        if self.lead:
            self.item(self.lead)
        for what, keys in (
            ("sections", [section.key.lower() for section in self.sections]),
            ("items", [item.key.lower() for item in self.items()]),
        ):
            if len(set(keys)) < len(keys):
                raise InvalidInputError(f"two {what} have the key {max(keys, key=keys.count)!r}")

    def items(self) -> Iterator[Item]:
        """Every figure and table, in order."""
        for section in self.sections:
            yield from section.items

    def item(self, key: str) -> Item:
        """The figure or table of this key."""
        for item in self.items():
            if isinstance(key, str) and item.key == key:
                return item
        raise InvalidInputError(f"no item {key!r:.80}; there are {', '.join(item.key for item in self.items())}")

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, ready for JSON; numbers that are not finite become None."""
        plain: dict[str, Any] = finite({"format": FORMAT, **asdict(self)})
        return plain

    def to_json(self, indent: int | None = None) -> str:
        """The report as JSON text.

        >>> Report.from_json(Report("Title", (), {"seed": 0}).to_json()).meta
        {'seed': 0}
        """
        spaces = None if indent is None else as_count(indent, "indent", most=100)
        return json.dumps(self.to_dict(), allow_nan=False, indent=spaces)

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """The report that `to_json` wrote; text that is not a report is refused."""
        return cls.from_dict(decode_json(text))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The report that `to_dict` gave, also after a trip through JSON."""
        rest = dict(as_kind(data, Mapping, "the dictionary of a report", "data: "))
        if rest.pop("format", None) != FORMAT:
            raise ProblemFileError(f"not a report of this library (its 'format' entry is not {FORMAT!r})")
        made: Report = typed(cls, rest, "a damaged report")
        return made


# ----------------------------------------------------------------------------------------------------------------- text


def summary_text(report: Report, width: int = 80) -> str:
    """The sentences that open the report, then the findings, one paragraph each.

    >>> print(summary_text(Report("Title", (), {}, ("One sentence.",), ("one finding",))))
    Title
    - One sentence.
    - one finding
    """
    lines = [*textwrap.wrap(report.title, width), *textwrap.wrap(report.subtitle, width)]
    for line in (*report.summary, *report.findings):
        lines += textwrap.wrap(f"- {without_links(line)}", width, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)


def without_links(words: str) -> str:
    """The words of a text of the report with each link replaced by its name.

    >>> without_links("three are [false](#tab-false)")
    'three are false'
    """
    return re.sub(r"\[([^\[\]]*)\]\(#[\w.-]+\)", r"\1", words)


def to_latex_file(report: Report) -> str:
    """All tables of a report as LaTeX."""
    return "\n".join(to_latex(item) for item in report.items() if isinstance(item, Table))
