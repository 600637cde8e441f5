"""What a notebook offers after a dot: `dir` of a public module lists its public names, and nothing else."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import forgetting as fg

MODULES = [
    "forgetting",
    "forgetting.auditing",
    "forgetting.bounds",
    "forgetting.checks",
    "forgetting.claims",
    "forgetting.datasets",
    "forgetting.dynamics.metrics",
    "forgetting.errors",
    "forgetting.estimators",
    "forgetting.expectation",
    "forgetting.orderings",
    "forgetting.orderings.laws",
    "forgetting.reductions",
    "forgetting.references",
    "forgetting.report",
    "forgetting.schemes",
    "forgetting.sets",
    "forgetting.solver",
    "forgetting.studies",
    "forgetting.tasks",
    "forgetting.tasks.families",
    "forgetting.worstcase",
]


@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_the_public_names_and_all_of_them_are_there(name):
    module = importlib.import_module(name)
    assert dir(module) == sorted(module.__all__)
    assert [name for name in dir(module) if name.startswith("_")] in ([], ["__version__"])
    for public in dir(module):
        assert getattr(module, public) is not None


def test_every_public_module_is_among_them():
    def modules(of):
        for name in of.__all__:
            thing = getattr(of, name)
            if inspect.ismodule(thing):
                yield thing.__name__
                yield from modules(thing)

    assert {"forgetting", *modules(fg)} <= set(MODULES)


def test_names_that_are_imported_when_first_asked_for_are_listed_before():
    code = (
        "import sys, forgetting as fg\n"
        "assert {'audit', 'bounds', 'claims', 'ContinualRegressor'} <= set(dir(fg))\n"
        "assert not {'forgetting.auditing', 'forgetting.theory', 'sklearn'} & set(sys.modules)\n"
        "import rlcompleter\n"
        "names = rlcompleter.Completer({'fg': fg}).attr_matches('fg.')\n"
        "assert not [name for name in names if 'TYPE_CHECKING' in name or name.startswith('fg._')], names\n"
        "assert [name for name in names if name.startswith('fg.audit')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_slow_to_import_waits_until_it_is_needed():
    slow = {"numba", "matplotlib", "sklearn", "pandas", "pyarrow", "scipy.stats", "scipy.sparse", "typer", "rich"}
    code = f"import sys, forgetting; print(sorted({slow!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["orderings", "schemes", "sets"])
def test_every_registered_class_of_the_package_is_public(package):
    module = importlib.import_module(f"forgetting.{package}")
    registered = [module.registry.get(name) for name in module.registry]
    own = {thing.__name__ for thing in registered if thing.__module__.startswith("forgetting.")}
    assert own
    assert own <= set(module.__all__), "add the name to the __init__.py of the package"


@pytest.mark.parametrize("package", ["paper", "later"])
def test_every_file_of_statements_is_imported(package):
    folder = importlib.import_module(f"forgetting.theory.{package}")
    files = {path.stem for path in Path(folder.__file__).parent.glob("[!_]*.py")}
    left = {name for name in files if f"forgetting.theory.{package}.{name}" not in sys.modules}
    assert left == set(), f"add a line to theory/{package}/__init__.py"
