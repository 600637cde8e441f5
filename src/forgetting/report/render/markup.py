"""Words of others as HTML."""

from __future__ import annotations

import html

from forgetting._text import visible

__all__ = ["escape"]


def escape(words: str) -> str:
    """For text and for attributes: nothing in it is markup, and nothing is hidden.

    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return html.escape(visible(words))
