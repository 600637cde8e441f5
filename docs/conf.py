"""Sphinx settings: `make docs` builds the site into docs/_build/html."""

import importlib.util
import re
import sys
from pathlib import Path

from sphinx_gallery.sorting import FileNameSortKey

import forgetting as fg

sys.path.insert(0, str(Path(__file__).parent / "_tools"))

project = "forgetting"
author = "the forgetting authors"
copyright = author  # noqa: A001
version = release = fg.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery", "counterexamples"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
myst_update_mathjax = False
html_math_renderer = "mathml"
suppress_warnings = ["config.cache"]
html_theme = "furo"
html_title = f"forgetting {version}"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"Array": "Array", "IntArray": "IntArray"}
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "image_scrapers": ("gallery_figures.page_figures",),
    "reset_modules": ("matplotlib", "gallery_figures.page_style"),
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": FileNameSortKey,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # a page that loads scripts from elsewhere
    "min_reported_time": 1e9,
}


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: names in backquotes are code, and every other sign means itself."""
    in_example = False
    for i, line in enumerate(lines):
        stripped = line.strip()
        in_example = stripped.startswith(">>>") or (in_example and bool(stripped))
        if not in_example:
            head = re.match(r"\s*(\w+, )*\w+_: ", line)  # names of attributes are escaped by napoleon
            start = head.end() if head else 0
            pieces = re.split(r"(`+[^`]+`+)", line[start:])
            for j, piece in enumerate(pieces):
                if j % 2:
                    pieces[j] = f"``{piece.strip('`')}``"
                else:
                    pieces[j] = re.sub(r"([\\|*])|(?<=\w)_(?!\w)", lambda match: "\\" + match.group(0), piece)
            lines[i] = line[:start] + "".join(pieces)


def short_aliases(app, what, name, obj, options, signature, returns):
    """Array and IntArray by their names, also inside of unions."""
    pattern = r"TypeAliasForwardRef\('(\w+)'\)"
    return tuple(re.sub(pattern, r"\1", text) if text else text for text in (signature, returns))


def write_listing(app):
    """docs/registered.md: what the registries hold."""
    spec = importlib.util.spec_from_file_location("listing", Path(__file__).parent / "_tools" / "listing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (Path(__file__).parent / "registered.md").write_text(module.listing(), encoding="utf-8")


def write_explorer(app):
    """docs/_static/explorer.html: the explorer itself."""
    page = Path(__file__).parent / "_static" / "explorer.html"
    page.write_text(fg.explore().html, encoding="utf-8")


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", write_listing)
    app.connect("builder-inited", write_explorer)
    app.connect("autodoc-process-docstring", plain_text, priority=100)
    app.connect("autodoc-process-signature", short_aliases)
