"""Words of others on their way to a reader: what would act on a terminal or a page is shown instead."""

from __future__ import annotations

import re

__all__ = ["one_line", "visible"]

#: control characters but newline and tab, what turns the direction of text, what has no width, and half a character
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(words: str) -> str:
    r"""The same words with escape sequences, changes of direction and the like as a programmer writes them.

    >>> print(visible("red: \x1b[31m, backwards: \u202e"))
    red: \x1b[31m, backwards: \u202e
    >>> print(visible("naïve, λ, 中"))
    naïve, λ, 中
    """
    return HIDDEN.sub(lambda found: ascii(found[0])[1:-1], words)


def one_line(words: str, most: int | None = None) -> str:
    """Visible words on one line, cut after `most` characters.

    >>> one_line("two\\nlines"), one_line("a long name", 6)
    ('two lines', 'a lon…')
    """
    line = visible(" ".join(words.split()))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"
