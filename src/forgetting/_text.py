"""Text from files and users, made safe to print: control characters are shown instead of acting on the terminal."""

from __future__ import annotations

import html
import re

__all__ = ["escape", "one_line", "visible"]

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
