"""What is packaged: the page of a package index, and a recipe for conda with the dependencies of pyproject.toml."""

import doctest
import re
import tomllib
from pathlib import Path

import forgetting as fg

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
#: packages that conda calls otherwise: matplotlib without a window system, Dask without what distributed brings
OTHER_NAMES = {"matplotlib": "matplotlib-base", "dask": "dask-core"}


def listed(section: str) -> dict[str, str]:
    """The packages and versions of a list in the recipe."""
    block = re.search(rf"^( *){section}:.*\n((?:\1  +- .*\n)+)", RECIPE, re.MULTILINE)
    lines = (line.strip(" -").split() for line in block[2].splitlines())
    return {name: "".join(version) for name, *version in lines}


def declared(lines: list[str]) -> dict[str, str]:
    """The packages and versions of a list in pyproject.toml, under the names that conda has for them."""
    pairs = (re.fullmatch(r"([\w.-]+)(.*)", line).groups() for line in lines)
    return {OTHER_NAMES.get(name, name): version for name, version in pairs}


def test_the_recipe_has_the_dependencies_of_the_package():
    project = PROJECT["project"]
    python = {"python": project["requires-python"]}
    assert listed("run") == declared(project["dependencies"]) | python
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name != "all"}
    assert listed("run_constraints") == declared([line for lines in extras.values() for line in lines])
    (build,) = PROJECT["build-system"]["requires"]
    assert declared([build]).items() <= listed("host").items()


def test_the_recipe_says_what_the_package_says_of_itself():
    project = PROJECT["project"]
    assert f'version: "{fg.__version__}"' in RECIPE
    assert f'summary: "{project["description"]}"' in RECIPE
    assert f"license: {project['license']}" in RECIPE
    assert (ROOT / re.search(r"license_file: (\S+)", RECIPE)[1]).is_file()
    for name, function in project["scripts"].items():
        assert f"- {name} = {function}" in RECIPE


def test_the_page_of_a_package_index_is_whole_by_itself():
    """An index shows no files of the repository: links to them, and pictures, would lead nowhere."""
    page = ROOT / PROJECT["project"]["readme"]
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"\]\((?!https://)|<img|<picture|src=", text)
    assert doctest.testfile(str(page), module_relative=False).failed == 0
    assert text.split("```")[0] == (ROOT / "README.md").read_text(encoding="utf-8").split("<picture>")[0]


def test_the_source_distribution_has_these_files():
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"conda", "*.md"} <= set(included)
