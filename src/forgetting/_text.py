"""Text from files and users, made safe to print: control characters are shown instead of acting on the terminal."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

__all__ = ["escape", "nearest", "one_line", "visible"]

MOST_NAMED = 16  # names in a message

#: control characters except newline and tab, marks that change the direction of text, characters without width, and
#: lone surrogates
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


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


def one_line(words: str, most: int | None = None) -> str:
    """The text on one line, hidden characters escaped, at most `most` characters long.

    >>> one_line("two\\nlines"), one_line("a long name", 6)
    ('two lines', 'a lon…')
    """
    line = visible(" ".join(words.split()))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


def nearest(name: object, known: Iterable[str], are: str = "there are") -> str:
    """The end of a message about a wrong name: the most similar name, and the names that are known.

    The known names are left out if they are many and one of them is similar.

    >>> nearest("ordering", ["orderings", "runs"])
    "; did you mean 'orderings'? There are orderings, runs"
    """
    names = [one_line(other, 60) for other in islice(known, 1000)]
    lower = {other.lower(): other for other in names}
    close = get_close_matches(str(name).lower(), lower, n=1, cutoff=0.5)
    hint = f"; did you mean {lower[close[0]]!r}?" if close else ";"
    if close and len(names) > MOST_NAMED:
        return hint
    listed = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    return f"{hint} {are.capitalize() if close else are} {listed}"
