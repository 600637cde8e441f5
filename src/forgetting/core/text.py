"""Text from files and users, made safe where it goes: terminals, pages, frames of pandas, and CSV for spreadsheets."""

from __future__ import annotations

import csv
import html
import re
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from io import StringIO
from itertools import islice
from typing import Any

MOST_NAMED = 16  # names in a message

#: control characters except newline and tab, marks that change the direction of text, characters without width, and
#: lone surrogates
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

#: beginnings of texts that a spreadsheet takes for formulas, or takes for text because of an apostrophe before
FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def visible(words: str) -> str:
    r"""The text with hidden characters replaced by their Python escapes.

    >>> print(visible("red: \x1b[31m, backwards: \u202e"))
    red: \x1b[31m, backwards: \u202e
    >>> print(visible("naïve, λ, 中"))
    naïve, λ, 中
    """
    return HIDDEN.sub(lambda match: ascii(match[0])[1:-1], words)


def escape(words: str) -> str:
    """The text for HTML, also in attributes: no character of it is markup, and hidden characters are shown.

    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return html.escape(visible(words))


def encodable(value: Any) -> Any:
    r"""A text with lone surrogates as their Python escapes, since they have no bytes; other values as they are.

    >>> print(encodable("\ud800"), encodable(3))
    \ud800 3
    """
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def csv_text(rows: Iterable[Iterable[Any]], end: str = "\r\n") -> str:
    """Rows as CSV. A text that a spreadsheet would take for a formula, such as "=1+1", gets an apostrophe before it.

    Numbers, and texts that spell numbers, stay as they are. `from_csv_cell` takes the apostrophe away.

    >>> csv_text([["=1+1", "-2", -3.5, None, "a, b"]])
    '\\'=1+1,-2,-3.5,,"a, b"\\r\\n'
    """
    sink = StringIO()
    writer = csv.writer(sink, lineterminator=end)
    writer.writerows([f"'{cell}" if _is_formula(cell) else cell for cell in row] for row in rows)
    return str(encodable(sink.getvalue()))


def _is_formula(cell: Any) -> bool:
    if not isinstance(cell, str) or not FORMULA.match(cell):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def from_csv_cell(word: str) -> str:
    """The text of a cell of CSV, without the apostrophe that `csv_text` gave it.

    >>> from_csv_cell("'=1+1"), from_csv_cell("'twas")
    ('=1+1', "'twas")
    """
    return word[1:] if word[:1] == "'" and FORMULA.match(word) else word


def one_line(words: str, most: int | None = None) -> str:
    """The text on one line, hidden characters escaped, at most `most` characters long.

    >>> one_line("two\\nlines"), one_line("a long name", 6)
    ('two lines', 'a lon…')
    """
    line = visible(" ".join(words.split()))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


def joined(words: Iterable[str]) -> str:
    """The words with commas and an "and".

    >>> joined(["a"]), joined("abc")
    ('a', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def counted(number: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(1, "task"), counted(2, "task")
    ('1 task', '2 tasks')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def large(number: int) -> str:
    """A whole number in digits, or as a power of ten where it is large.

    >>> large(113400), large(10**12 + 1)
    ('113,400', '10^12')
    """
    return f"{number:,}" if number < 1e9 else f"10^{len(str(number)) - 1}"


def error_words(error: BaseException) -> str:
    """The class and the message of an error, also of one that cannot say its message.

    >>> error_words(KeyError("x"))
    "KeyError: 'x'"
    """
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as other:
        return f"{type(error).__name__}, whose message raises {type(other).__name__}"


def nearest(name: object, known: Iterable[str], are: str = "there are") -> str:
    """The end of a message about a wrong name: the most similar name, and the names that are known.

    The known names are left out if they are many and one of them is similar.

    >>> nearest("ordering", ["orderings", "runs", "runs"])
    "; did you mean 'orderings'? There are orderings, runs"
    """
    names = list(dict.fromkeys(one_line(other, 60) for other in islice(known, 1000)))
    lower = {other.lower(): other for other in names}
    close = get_close_matches(str(name).lower(), lower, n=1, cutoff=0.5)
    hint = f"; did you mean {lower[close[0]]!r}?" if close else ";"
    if close and len(names) > MOST_NAMED:
        return hint
    listed = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    return f"{hint} {are.capitalize() if close else are} {listed}"


def spelt_number(word: str) -> int | float:
    """The number that a word spells, exactly if it is whole; a ValueError if it spells none.

    >>> spelt_number("10000000000000001"), spelt_number("2.5")
    (10000000000000001, 2.5)
    >>> spelt_number("1_5")
    Traceback (most recent call last):
    ValueError: '1_5' is not a number
    """
    if "_" in word:  # a number to Python only
        raise ValueError(f"{word!r:.40} is not a number")
    try:
        return int(word)  # first: a long number is no float
    except ValueError:
        return float(word)


def first_repeated(names: Iterable[Any]) -> Any:
    """The first name that occurs more than once, or None.

    >>> first_repeated(["a", "b", "a"]), first_repeated([])
    ('a', None)
    """
    return next((name for name, times in Counter(names).items() if times > 1), None)
