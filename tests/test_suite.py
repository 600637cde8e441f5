"""The suite itself: its order can be repeated, warnings of this package are errors, other machines are imitated."""

import ast
import contextlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import forgetting.errors

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Item:
    nodeid: str

    @property
    def location(self):
        return (self.nodeid.partition("::")[0], 0, self.nodeid)


def load(path):
    spec = importlib.util.spec_from_file_location(f"suite_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shuffled(order):
    items = [Item(f"tests/{file}.py::test_{number}") for file in "abc" for number in range(20)]
    load(ROOT / "conftest.py").pytest_collection_modifyitems(
        SimpleNamespace(option=SimpleNamespace(order=order)), items
    )
    return [item.nodeid for item in items]


def test_a_seed_is_an_order_and_the_tests_of_a_file_stay_together():
    assert shuffled("1") == shuffled("1")
    assert shuffled("1") != shuffled("2")
    assert shuffled("file") == [f"tests/{file}.py::test_{number}" for file in "abc" for number in range(20)]
    assert sorted(shuffled("1")) == sorted(shuffled("file"))
    files = [name[6] for name in shuffled("1")]
    assert sum(one != other for one, other in pairwise(files)) == 2


def warn(module, category, stacklevel=1):
    """A warning by a function of `module`."""
    names = {"__name__": module}
    code = f"import warnings\ndef warn(): warnings.warn('something', {category}, stacklevel={stacklevel})"
    exec(code, names)
    names["warn"]()


@pytest.mark.parametrize("module", ["forgetting", "forgetting.bounds.catalogue"])
@pytest.mark.parametrize("category", ["UserWarning", "RuntimeWarning"])
@pytest.mark.parametrize("stacklevel", [1, 2])
def test_warnings_of_this_package_are_errors(module, category, stacklevel):
    with pytest.raises(Warning, match="something"):
        warn(module, category, stacklevel)


@pytest.mark.parametrize("module", ["numpy._core.fromnumeric", "matplotlib.axes"])
@pytest.mark.parametrize("category", ["UserWarning", "RuntimeWarning", "DeprecationWarning", "FutureWarning"])
def test_warnings_within_other_libraries_are_shown_and_no_errors(module, category):
    with warnings.catch_warnings(record=True) as shown:
        warn(module, category)
    assert len(shown) == 1


def test_deprecations_of_what_tests_call_are_shown_and_no_errors():
    with warnings.catch_warnings(record=True) as shown:
        warn("numpy", "DeprecationWarning", stacklevel=3)
    assert len(shown) == 1


def test_every_category_of_warnings_of_this_package_is_an_error(pytestconfig):
    kinds = [value for value in vars(forgetting.errors).values() if isinstance(value, type)]
    for kind in kinds:
        if issubclass(kind, Warning):
            action = "ignore" if kind is forgetting.errors.ChoiceWarning else "error"  # no fault: tests mix rows
            assert f"{action}::forgetting.errors.{kind.__name__}" in pytestconfig.getini("filterwarnings")


OLD = ["SSE42"]
NEW = [*OLD, "AVX", "FMA3", "AVX2", "X86_V3", "AVX512F", "AVX512_SKX", "X86_V4", "AVX512_ICL"]
CHOSEN_BY = ["X86_V3", "X86_V4", "AVX512_ICL"]  # NumPy 2.4


@pytest.mark.parametrize(
    ("core", "here", "reason"),
    [
        ("Nehalem", ("arm64", ["ARMV8"], [], []), "arm64 is no x86 processor"),
        ("Nehalem", ("x86_64", [], NEW, CHOSEN_BY), "NumPy or SciPy is not built on OpenBLAS"),
        ("Nehalem", ("x86_64", ["None", "None"], NEW, CHOSEN_BY), "NumPy or SciPy is not built on OpenBLAS"),
        ("SkylakeX", ("x86_64", ["Haswell", "Haswell"], NEW[:5], ["X86_V3"]), "this processor has no AVX512_SKX"),
        ("Haswell", ("AMD64", ["Nehalem"], OLD, []), "this processor has no AVX2 and no FMA3"),
        ("SkylakeX", ("x86_64", ["SkylakeX"], NEW, CHOSEN_BY), "it is this processor"),
        ("Haswell", ("x86_64", ["SkylakeX"], NEW, CHOSEN_BY), "OpenBLAS takes SkylakeX instead"),
    ],
)
def test_a_machine_that_cannot_be_imitated_is_left_out_with_the_reason(core, here, reason, monkeypatch):
    machines = load(ROOT / "tests" / "machines.py")
    monkeypatch.setattr(machines.platform, "machine", lambda: here[0])
    monkeypatch.setattr(machines, "probe", lambda environment: here[1:])
    (machine,) = (machine for machine in machines.MACHINES if machine.core == core)
    assert machines.obstacle(machine, {}) == reason


def test_a_machine_disables_what_it_lacks_and_keeps_its_compiled_code_apart():
    machines = load(ROOT / "tests" / "machines.py")
    of = {machine.core: machine.environment(CHOSEN_BY) for machine in machines.MACHINES}
    assert of["Nehalem"]["NPY_DISABLE_CPU_FEATURES"] == "X86_V3 X86_V4 AVX512_ICL"
    assert of["Sandybridge"]["NPY_DISABLE_CPU_FEATURES"] == "X86_V3 X86_V4 AVX512_ICL"
    assert of["Haswell"]["NPY_DISABLE_CPU_FEATURES"] == "X86_V4 AVX512_ICL"
    assert of["SkylakeX"]["NPY_DISABLE_CPU_FEATURES"] == "AVX512_ICL"
    for environment in of.values():
        assert ("NUMBA_CPU_NAME" in environment) == ("NUMBA_CACHE_DIR" in environment)
    assert {environment["OPENBLAS_NUM_THREADS"] for environment in of.values()} == {"1", "2"}


def test_the_figure_of_the_architecture_shows_the_imports_of_today():
    """`python docs/_tools/architecture.py` draws it again."""
    pytest.importorskip("grimp")
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "_tools" / "architecture.py")
    architecture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(architecture)
    assert architecture.drawn_graph() == architecture.import_graph()


def concrete_classes() -> dict[type, str]:
    """Every ordering, scheme, convex set and problem of the package, with the folder that may know it."""
    from forgetting import orderings, schemes, sets, tasks

    registries = {"orderings": orderings.registry, "schemes": schemes.registry, "sets": sets.registry}
    known = {registry.get(name): folder for folder, registry in registries.items() for name in registry}
    problems = (tasks.RegressionTasks, tasks.KernelTasks, tasks.ClassificationTasks, tasks.ConvexSets)
    return known | dict.fromkeys(problems, "tasks")


def asked_classes(tree: ast.AST, module: Any) -> Iterator[tuple[int, Any]]:
    """The classes that a module asks for by isinstance, issubclass or match, each with its line."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            asked = [part for part in ast.walk(node.args[1]) if isinstance(part, ast.Name | ast.Attribute)]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        for part in asked:
            with contextlib.suppress(Exception):  # a name of a function, or of an import within one
                yield node.lineno, eval(ast.unparse(part), vars(module))


def test_no_module_asks_for_a_class_of_another_package():
    """Classes state what they can do; the source says where that is not so."""
    known, source = concrete_classes(), ROOT / "src" / "forgetting"
    branches = []
    for file in sorted(source.rglob("*.py")):
        name = ".".join(("forgetting", *file.relative_to(source).with_suffix("").parts)).removesuffix(".__init__")
        if name.endswith("__main__"):
            continue
        tree, folder = ast.parse(file.read_text(encoding="utf-8")), file.relative_to(source).parts[0]
        for line, cls in asked_classes(tree, importlib.import_module(name)):
            if isinstance(cls, type) and known.get(cls, folder) != folder:
                branches.append(f"{name}, line {line}: {cls.__name__}")
    assert branches == []


def test_the_search_for_branches_finds_one():
    import forgetting as fg

    tree = ast.parse("def f(x):\n    return isinstance(x, int | fg.Ball)")
    assert (2, fg.Ball) in set(asked_classes(tree, SimpleNamespace(fg=fg)))


def test_make_quick_begins_with_the_tests_of_what_changed():
    quick = load(ROOT / "tools" / "quick.py")
    (module,) = (path for path in (ROOT / "src").rglob("*.py") if "class GreedyDistance(" in path.read_text())
    chosen = quick.tests_of([Path("tests/test_checks.py"), module.relative_to(ROOT)])
    assert chosen[:2] == ["tests/test_checks.py", str(module.relative_to(ROOT))]
    assert "tests/orderings/test_rules.py" in chosen
    assert len(chosen) == len(set(chosen)) < 20
    assert quick.tests_of([Path("README.md")]) == ["tests/test_readme.py"]
    for other, named in (
        ("src/forgetting/theory/sources.bib", "tests/theory/test_bibliography.py"),
        ("src/forgetting/tasks/known_worst/loss-T3-k2.json", "tests/worstcase/test_frontier.py"),
        ("tools/ratios.py", "tests/test_tools.py"),
        ("tests/faults/damage.py", "tests/faults/test_files_fuzz.py"),
    ):
        assert named in quick.tests_of([Path(other)])


def test_tests_that_have_not_begun_in_time_are_skipped():
    def item(seconds):
        return SimpleNamespace(config=SimpleNamespace(option=SimpleNamespace(seconds=seconds)))

    conftest = load(ROOT / "conftest.py")
    conftest.pytest_runtest_setup(item(None))
    conftest.pytest_runtest_setup(item(1e6))
    with pytest.raises(pytest.skip.Exception, match="not begun after 0 seconds"):
        conftest.pytest_runtest_setup(item(0.0))


def test_no_module_imports_itself_by_way_of_others():
    """Imports within functions count; those for annotations alone (`if TYPE_CHECKING`) do not."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("forgetting", cache_dir=None, exclude_type_checking_imports=True)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    list(TopologicalSorter(imports).static_order())  # raises an error that names a cycle


def test_constants_of_the_numerical_policy_are_named_once():
    package = ROOT / "src" / "forgetting"
    policy = package / "core" / "numerical.py"
    names = set(assigned(policy))
    assert {"EPS", "SQUARED", "VANISHING", "ROUNDING"} <= names
    for path in package.rglob("*.py"):
        if path != policy:
            assert not names & set(assigned(path)), path
            assert ").eps" not in path.read_text(), f"{path}: the distance of floats is forgetting.core.numerical.EPS"


def assigned(path):
    """The names that a module gives to constants."""
    for node in ast.parse(path.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_what_is_left_out_on_windows_is_there_and_nothing_else_is_left_out(monkeypatch):
    module = load(ROOT / "tests" / "conftest.py")
    for name in module.NOT_ON_WINDOWS:
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / "tests" / file).read_text(encoding="utf-8") or not test, name
    items = []
    for nodeid in (
        "tests/studies/test_store.py::test_number_of_a_dead_process_that_another_has_now",
        "tests/a.py::test",
    ):
        marks: list[Any] = []
        items.append(SimpleNamespace(nodeid=nodeid, marks=marks, add_marker=marks.append))
    files = [ROOT / "tests" / "faults" / "campaign.py", ROOT / "tests" / "faults" / "test_outputs.py", ROOT / "src"]
    for platform, ignored, skipped in (("win32", [True, None, None], [1, 0]), ("linux", [None] * 3, [0, 0])):
        monkeypatch.setattr(sys, "platform", platform)
        assert [module.pytest_ignore_collect(path) for path in files] == ignored
        assert bool(module.pytest_report_header()) == (platform == "win32")
        for item in items:
            item.marks.clear()
        module.pytest_collection_modifyitems(items)
        assert [len(item.marks) for item in items] == skipped
