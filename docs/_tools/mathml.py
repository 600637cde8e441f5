"""Formulas as MathML, written when the site is built: a page needs no script and no network to show them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
#: letters of LaTeX up to which a formula within a sentence stays on one line
SHORT = 40
OPENING, CLOSING = {"{", "(", "[", r"\left", r"\lvert", r"\langle"}, {"}", ")", "]", r"\right", r"\rvert", r"\rangle"}
RELATIONS = {"=", "<", ">", r"\le", r"\ge", r"\preceq", r"\succeq", r"\mapsto"}


def mathml(latex: str, display: str = "inline") -> str:
    """A <math> element; a formula with a command that the converter does not know is a ValueError.

    >>> "<mo>⪯</mo>" in mathml(r"A \\preceq B")
    True
    """
    # absolute values and angles as fences: as plain signs they would stand apart from what they enclose
    fenced = re.sub(r"\\([lr])([vV]ert|angle)(?![a-zA-Z])", _fence, latex)
    element = re.sub(r"<mi>(&#x\w+;)</mi>", _sign, convert(fenced, display=display))
    if unknown := re.search(r"\\[a-zA-Z]+|<mi>&</mi>", element):
        raise ValueError(f"{unknown[0]} in the formula {latex!r} has no MathML")
    return element


def _fence(match: re.Match[str]) -> str:
    side = "left" if match[1] == "l" else "right"
    sign = {"vert": "|", "Vert": r"\|", "angle": rf"\{match[1]}angle"}[match[2]]
    return rf"\{side}{sign}"


def _sign(match: re.Match[str]) -> str:
    """Signs such as ⪯ and ± are operators, with space around them, and the letters of \\mathrm are upright.

    The converter writes both as if they were variables.
    """
    sign = chr(int(match[1][3:-1], 16))
    if sign.isascii() and sign.isalpha():
        return f'<mi mathvariant="normal">{sign}</mi>'
    return f"<mo>{sign}</mo>" if unicodedata.category(sign) == "Sm" else match[0]


def pieces(latex: str) -> list[str]:
    """A long formula, cut before its relations: browsers end no line within a <math> element.

    >>> pieces(r"f(x = y) = a + b + c + d + e + f + g + h \\le 1")
    ['f(x = y) ', '= a + b + c + d + e + f + g + h ', '\\\\le 1']
    """
    depth, parts = 0, [""]
    for token in re.findall(r"\\[a-zA-Z]+|\\.|.", latex, re.DOTALL):
        depth += (token in OPENING) - (token in CLOSING)
        if token in RELATIONS and depth == 0 and parts[-1].strip():
            parts.append("")
        parts[-1] += token
    return parts if depth == 0 and len(latex) > SHORT else [latex]


def inline(translator: Any, node: Any) -> None:
    """A formula within a sentence; its last piece stays together with the comma that follows it."""
    try:
        *first, last = [mathml(piece) for piece in pieces(node.astext())]
    except Exception as error:
        LOGGER.warning("%s", error, location=node)
        first, last = [], translator.encode(node.astext())
    before = "".join(f"{piece}&#8203;" for piece in first)
    after = f'<span class="together">{last}{translator.encode(node.get("after", ""))}</span>'
    translator.body.append(f"{translator.starttag(node, 'span', '', CLASS='math')}{before}{after}</span>")
    raise nodes.SkipNode


def displayed(translator: Any, node: Any) -> None:
    """A formula on a line of its own."""
    try:
        element = mathml(node.astext(), "block")
    except Exception as error:
        LOGGER.warning("%s", error, location=node)
        element = translator.encode(node.astext())
    translator.body.append(f"{translator.starttag(node, 'div', '', CLASS='math')}{element}</div>\n")
    raise nodes.SkipNode


def take_commas(app: Any, doctree: Any, name: str) -> None:
    """Punctuation right after a formula becomes part of it, so that no line begins with a comma."""
    if app.builder.format != "html":
        return
    for node in doctree.findall(nodes.math):
        text = node.next_node(descend=False, siblings=True)
        if isinstance(text, nodes.Text) and (signs := re.match(r"[,.;:)\]]+", text)):
            node["after"] = signs[0]
            text.parent.replace(text, nodes.Text(text[signs.end() :]))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.connect("doctree-resolved", take_commas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
