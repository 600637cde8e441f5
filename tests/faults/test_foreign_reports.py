"""Files are data: what reloads is what this library wrote, and nothing in it acts on a page or a folder."""

from __future__ import annotations

import copy
import json
import re
from functools import lru_cache
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forgetting as fg
from effort import rounds
from forgetting.auditing import Audit
from forgetting.claims import Certificate
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.figures.items import Band, Curves, Line, Matrix, Paths, Regions, Series, Stage, Table
from forgetting.figures.lab import lab_html
from forgetting.figures.svg import figure_drawing
from forgetting.figures.text_formats import table_text, to_csv
from forgetting.files.json_and_toml import decode_json
from forgetting.report import Report, Section
from forgetting.report.document import summary_text, to_latex_file
from forgetting.report.html import to_html

EVIL = "</title></script><!--\"'><script>alert(1)</script><img src=x onerror=alert(1)>\x1b]0;\u202e$\\input{x}"


def whole(words: str = "words") -> Report:
    """A report with an item of every kind, and the words wherever there may be some."""
    series = Series(words, (1.0, 2.0), (1.0, None), (0.5, 0.5), (2.0, 2.0), label=words, method=words)
    stage = Stage(words, ((1.0, 0.0), (0.5, 0.5)), (0,))
    items = (
        Curves("c", words, words, words, words, (series,)),
        Regions("r", words, words, words, words, (Band(2.0, 1.0, 5.0, words),), (words,)),
        Paths("p", words, words, (Line(words, (0.0, 0.0), (1.0, 1.0)),), (0.0, 0.0), (stage,)),
        Matrix("m", words, words, words, words, (words,), (words,), ((0.5,),)),
        Table("t", words, words, (words, "value"), ((words, 0.5), (words, None)), (words,)),
    )
    return Report(words, (Section("s", words, words, items, words),), {words: {words: [words]}, "seed": 0}, (words,))


@pytest.fixture(autouse=True, scope="module")
def each_figure_is_drawn_once():
    """Most figures are equal: one value of a report changes at a time."""
    with pytest.MonkeyPatch.context() as patch:
        for draws in (figure_drawing, lab_html):
            patch.setattr(f"forgetting.report.html.{draws.__name__}", lru_cache(maxsize=512)(draws))
        yield


DRAWN = ("g", "path", "text", "use", "defs", "clippath", "rect")


class Outline(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attrs)))


def outline(page: str) -> list[tuple[str, tuple[str, ...]]]:
    parser = Outline()
    parser.feed(page)
    return parser.seen


def test_words_of_others_are_no_part_of_the_page():
    """The page has the same elements and attributes, whatever the words are; drawings have room for more or fewer."""
    evil, harmless = outline(to_html(whole(EVIL))), outline(to_html(whole("words")))
    assert [one for one in evil if one[0] not in DRAWN] == [one for one in harmless if one[0] not in DRAWN]
    assert {name for tag, names in evil for name in names} == {name for tag, names in harmless for name in names}
    assert "\x1b" not in to_html(whole(EVIL))
    assert "\u202e" not in to_html(whole(EVIL))


def test_words_of_others_are_no_commands_of_latex():
    text = to_latex_file(whole(EVIL))
    assert set(re.findall(r"\\[a-z]+", text)) == set(re.findall(r"\\[a-z]+", to_latex_file(whole("words")))) | {
        r"\textbackslash", r"\textless", r"\textgreater", r"\parbox", r"\textwidth", r"\strut",
    }  # fmt: skip
    assert "\x1b" not in text


def test_words_in_sheets_are_no_formulas():
    (table,) = (item for item in whole("=1+1").items() if item.kind == "table")
    assert to_csv(table).splitlines()[1] == "'=1+1,0.5"


KEYS = [
    "../../x", "a/b", "a\\b", "", ".", "..", "a..b", ".hidden", "-x",
    "x" * 81, 'x" onload="y', "é", "a b", "a\n", "a\x00",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("place", ["c", "r", "p", "m", "t", "s"])
def test_a_key_that_could_leave_its_folder_is_refused(key, place):
    text = whole().to_json().replace(f'"key": "{place}"', f'"key": {json.dumps(key)}')
    with pytest.raises(ProblemFileError, match="invalid key"):
        Report.from_json(text)


def test_two_items_of_one_key_are_refused():
    for place in ("r", "R"):
        with pytest.raises(ProblemFileError, match="have the key 'r'"):
            Report.from_json(whole().to_json().replace('"key": "p"', f'"key": "{place}"'))


DEEP = 100_000
HEAD = '{"format": "forgetting/report/1", "title": "", "sections": [], "summary": [], "meta": '
DAMAGED = {
    "empty": "",
    "a list": "[]",
    "a number": "3",
    "half": HEAD,
    "deep": HEAD + "[" * DEEP + "]" * DEEP + "}",
    "deep objects": HEAD + '{"a":' * 500 + "1" + "}" * 500 + "}",
    "a huge integer": HEAD + "{}, " + '"x": ' + "9" * 5000 + "}",
    "nan": HEAD + '{"x": NaN}}',
    "infinity": HEAD + '{"x": -Infinity}}',
    "a huge number": HEAD + '{"x": 1e999}}',
    "twice": HEAD + '{"x": 1, "x": 2}}',
    "not utf-8": HEAD.encode() + b'{"x": "\xff"}}',
    "a bom": b"\xef\xbb\xbf{}",
    "nul": "\x00",
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_damaged_json_is_refused_in_one_line(text):
    for load, kind in ((Report, ProblemFileError), (Certificate, InvalidInputError), (Audit, InvalidInputError)):
        with pytest.raises(kind) as found:
            load.from_json(text)
        assert "\n" not in str(found.value)
        assert len(str(found.value)) < 200


def test_a_text_of_any_length_is_not_read(monkeypatch):
    monkeypatch.setattr("forgetting.files.json_and_toml.LONGEST", 10)
    with pytest.raises(ProblemFileError, match="20 characters, more than 10"):
        decode_json('{"a": 1, "b": 12345}')


def places(data: object, path: tuple = ()) -> list[tuple]:
    """Where the values of a JSON document are."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for name, value in inner for place in places(value, (*path, name)))]


def put(data: object, path: tuple, value: object) -> object:
    if not path:
        return value
    changed = copy.deepcopy(data)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    if value is KeyError:
        del inner[path[-1]]
    elif path[-1] == "unknown":
        inner["unknown"] = value
    else:
        inner[path[-1]] = value
    return changed


FOREIGN = st.sampled_from(
    [KeyError, None, True, "", "words", EVIL, -1, 0, 3, 10**400, 1e300, -1e-300, [], [1], [[]], {},
     {"kind": "table"}, "\ud800"]
)  # fmt: skip


@pytest.fixture(scope="module")
def written() -> dict[type, dict]:
    tasks = fg.families.two_lines(0.5)
    return {
        Report: json.loads(whole().to_json()),
        Audit: json.loads(fg.audit(tasks).to_json()),
        Certificate: json.loads(fg.certify(tasks, fg.orderings.WithReplacement(), 5).to_json()),
    }


def shown(found: Report | Audit | Certificate) -> None:
    """Everything that shows a result."""
    if isinstance(found, Certificate):
        str(found).encode("utf-8", "replace")
        return
    if isinstance(found, Audit):
        found.to_text(60)
        found = found.to_report()
    to_html(found).encode("utf-8")
    to_latex_file(found).encode("utf-8")
    summary_text(found)
    for item in found.items():
        to_csv(item).encode("utf-8")
        if item.kind == "table":
            table_text(item)


@pytest.mark.parametrize("kind", [Report, Audit, Certificate])
@given(data=st.data())
@settings(max_examples=rounds(60, 300))
def test_one_foreign_value_is_refused_or_shown(written, kind, data):
    whole = written[kind]
    path = data.draw(st.sampled_from(places(whole)[1:]))
    try:
        found = kind.from_json(json.dumps(put(whole, path, data.draw(FOREIGN))))
    except ForgettingError:
        return
    shown(found)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("title",), 3, "title: 3 where a text was expected"),
        (("unknown",), 3, "unknown 'unknown'"),
        (("sections", 0, "items", 0, "unknown"), 3, "unknown 'unknown'"),
        (("sections", 0, "items", 0, "kind"), "cake", "unknown kind 'cake'; known kinds are curves, regions, "),
        (("sections", 0, "items", 0, "xlog"), 1, "xlog: 1 where true or false was expected"),
        (("sections", 0, "items", 0, "series", 0, "role"), "king", "role: 'king' where one of exact, simulated"),
        (("sections", 0, "items", 0, "series", 0, "group"), 0.5, "group: 0.5 where a whole number was expected"),
        (("sections", 0, "items", 0, "series", 0, "x"), [1, "2"], r"x\[1\]: '2' where a number was expected"),
        (("sections", 0, "items", 0, "series", 0, "x"), [1], "2 values of y for 1 of x"),
        (("sections", 0, "items", 1, "bands", 0, "name"), "who", "'who' of a cell is not among the names"),
        (("sections", 0, "items", 2, "solution"), [1, 2, 3], "3 entries where 2 were expected"),
        (("sections", 0, "items", 2, "stages", 0, "points"), [[1, 2]], "1 points for 1 tasks"),
        (("sections", 0, "items", 3, "values"), [[1, 2]], "the values are not 1 rows of 1"),
        (("sections", 0, "items", 4, "rows"), [[1, [2]]], "a cell is a word or a number"),
        (("sections", 0, "items", 4, "rows"), [[1]], "a row of 1 cells under 2"),
        (("meta",), [], "meta: a list where an object was expected"),
    ],
)
def test_what_a_report_cannot_hold_is_named(written, path, value, words):
    with pytest.raises(ProblemFileError, match=words):
        Report.from_json(json.dumps(put(written[Report], path, value)))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("given",), [0, 2], "there is no task 2 of 2"),
        (("tasks", 0, "nearest"), -1, "there is no task -1 of 2"),
        (("influence",), [[0.0, 1.0]], "influence is not 2 x 2"),
        (("passes_along", 0, "forgetting"), [0.0], "a pass does not have 2 steps"),
        (("orderings",), [], "no ordering 'random permutation' of 1 passes"),
    ],
)
def test_an_audit_whose_parts_do_not_fit_together_is_refused(written, path, value, words):
    with pytest.raises(InvalidInputError, match=words):
        Audit.from_json(json.dumps(put(written[Audit], path, value)))
