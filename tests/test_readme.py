"""The README and the docs run, print what they say, and link to what exists."""

import doctest
import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("[!_]*.md"))]
EXAMPLES = sorted((ROOT / "docs" / "gallery").glob("[0-9]*.py"))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("README.md", 10),
        ("docs/howto.md", 20),
        ("docs/data.md", 10),
        ("docs/tasks-as-they-are.md", 25),
        ("docs/solve.md", 33),
        ("docs/worst-cases.md", 8),
        ("docs/heads.md", 15),
        ("docs/delta-rule.md", 18),
        ("docs/schedules.md", 12),
        ("docs/learning-rules.md", 20),
        ("docs/class-orders.md", 12),
    ],
)
def test_the_code_in_a_page_runs_and_prints_what_it_says(name, least):
    outcome = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted >= least
    assert outcome.failed == 0


#: Examples that take seconds: the study of 675 problems takes 20 seconds of two cores. `make docs` runs them all.
LONG_EXAMPLES = ("05_bounds", "06_claims", "11_digits", "12_diabetes", "13_sensor_drift", "15_study")


def marked(path):
    return pytest.param(path, marks=pytest.mark.slow) if path.stem in LONG_EXAMPLES else path


@pytest.mark.parametrize("example", [marked(path) for path in EXAMPLES], ids=lambda path: path.stem)
def test_the_examples_of_the_gallery_run(example, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")
    figures = []
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: figures.append(1))
    runpy.run_path(str(example))
    assert figures or capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r"(?:src|srcset)=\"([^\"]+)\"", text) + re.findall(r"```{image} (\S+)", text)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) + pictures:
        if target.startswith("auto_gallery/"):  # the page that the docs make of an example
            target = target.replace("auto_gallery", "gallery") + ".py"
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def documented():
    """The names that directives such as autofunction take from the package, with their pages."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for kind, name in re.findall(r"\bauto([a-z]+)(?:::|\})\s+([\w.]+)", page.read_text(encoding="utf-8")):
            yield pytest.param(kind, name, id=f"{page.name}: {name}")


@pytest.mark.parametrize(("kind", "name"), list(documented()))
def test_names_that_the_docs_describe_exist_and_have_a_docstring(kind, name):
    """As Sphinx looks for them, which takes minutes."""
    found = importlib.import_module("forgetting")
    for end, part in enumerate(name.split(".")[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(name.split(".")[:end]))
        found = getattr(found, part)
    assert found.__doc__, name
    assert {"class": isinstance(found, type), "function": callable(found), "module": inspect.ismodule(found)}.get(
        kind, 1
    )


def test_every_page_of_the_site_is_in_one_list_of_pages():
    """A page in two lists fails `make docs` after minutes, or makes one of the lists a lie."""
    docs = ROOT / "docs"
    listed = []
    for page in sorted(docs.rglob("index.md")):
        for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for entry in (line for line in block.splitlines() if line and not line.startswith(":")):
                here = (page.parent / entry).relative_to(docs).as_posix()
                listed += [path.relative_to(docs).with_suffix("").as_posix() for path in docs.glob(f"{here}.md")]
                listed += [here] if entry == "auto_gallery/index" or entry == "registered" else []  # made by the build
    listed += [f"auto_gallery/{example.stem}" for example in EXAMPLES]  # by auto_gallery/index
    assert len(listed) == len(set(listed)), sorted(listed)
    written = [path for folder in (docs, docs / "api", docs / "decisions") for path in folder.glob("[!_]*.md")]
    pages = {path.relative_to(docs).with_suffix("").as_posix() for path in written} - {"index"}
    assert pages <= set(listed) | {"registered"}
    named = re.findall(r"^auto_gallery/\w+$", (docs / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named == ["auto_gallery/index"]
