"""The explorer as one HTML file: scripts, style, bounds and numbers in it, and nothing else that it needs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import Any

from forgetting.explorer.data import bounds_source, page_data
from forgetting.figures.style import COLOURS, DARK, css_colours
from forgetting.tasks import Problem

#: the modules of the page, each after those that it imports
MODULES = (
    "linear", "random", "problem", "moments", "random_orders", "orders", "simulated", "data", "misfit", "setting",
    "bounds", "families", "state", "changes", "address", "python", "computing", "svg", "files", "curves", "plane",
    "angles", "shares", "tour", "dom", "app", "sharing", "numbers", "tasks_panel", "learning_panel", "tour_panel",
    "pointing", "main",
)  # fmt: skip
_IMPORT = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?:\{[^}]*\};?\n)?", re.MULTILINE)


def page_html(problem: Problem | None = None) -> str:
    """The page for some tasks, or for the named families alone. Cost: half a second.

    >>> page = page_html()
    >>> "://" in page.replace("http://www.w3.org/2000/svg", ""), len(page) < 10**6
    (False, True)
    """
    data = _json(page_data(problem))  # first, since tasks may be refused
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            "<title>Forgetting that one can touch</title>",
            '<link rel="icon" href="data:,">',
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            "<main>",
            _asset("page/explorer.html"),
            "</main>",
            f'<script type="application/json" id="data">{data}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _script() -> str:
    """All modules in one function, without the words by which they import each other."""
    parts = []
    for name in MODULES:
        module = _IMPORT.sub("", _asset(f"js/{name}.js"))
        parts.append(_EXPORT.sub("", module))
        if name == "data":
            parts.append(bounds_source())
    return '"use strict";(()=>{\n' + "\n".join(parts).replace("</", "<\\/") + "})();"


def _style() -> str:
    light, dark = css_colours(COLOURS), css_colours(DARK)
    return (
        f":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}\n{_asset('page/explorer.css')}"
    )


def _json(data: dict[str, Any]) -> str:
    """JSON in which no word of the user can end the script element."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _digest(text: str) -> str:
    """What the policy of the page allows a script or a style by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return (files("forgetting.explorer") / name).read_text(encoding="utf-8")
