"""A package of somebody else adds one thing of each kind, in one file, and it is everywhere: the table in CONTRIBUTING.

The package is not imported by the tests: its entry point is what makes the command line find it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import forgetting as fg

ROOT = Path(__file__).parent.parent
PLUGIN = '''
import numpy as np
import forgetting as fg
from forgetting import expectation, report, sets
from forgetting.expectation.engines.moments import MomentsEngine
from forgetting.theory.expression import K, S

@fg.orderings.register
class Favourite(fg.orderings.Ordering):
    """The first task as often as all others together."""
    law = fg.orderings.laws.Independent(
        lambda tasks: np.array([0.5] + [0.5 / (tasks.num_tasks - 1)] * (tasks.num_tasks - 1)))

@fg.schemes.register
class Timid(fg.schemes.LinearScheme):
    """A tenth of the way."""
    def gains(self, sigma):
        return np.full_like(sigma, 0.1)

@sets.register
class Ray(sets.ConvexSet):
    """{w: w_1 = ... = w_d >= level}."""
    parts = ("dim", "level")
    def __init__(self, dim, level=0.0):
        self._freeze(dim=int(dim), level=float(level))
    def nearest(self, w):
        return np.full(self.dim, max(float(w.mean()), self.level))

fg.bounds.register(fg.bounds.Bound(
    "newer2027/loss", "a newer rate", "Newer 2027, Theorem 1", "loss", ("i.i.d.",), expression=S / K))

@expectation.register_engine
class Again(MomentsEngine):
    """The moments once more."""
    name = "again"

expectation.register_quantity(expectation.Quantity(
    "residual", "E of the mean half squared distance", form=expectation.HALF_SQUARED_DISTANCE))

@report.section("sizes")
def sizes(settings, progress):
    """How many tasks there are."""
    return report.Section("sizes", "Sizes", f"There are exactly {settings.problem.num_tasks} tasks.", ())
'''


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """A folder in which a package is installed that adds one thing of each kind."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "outside.py").write_text(PLUGIN, encoding="utf-8")
    about = folder / "outside-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[forgetting]\noutside = outside\n", encoding="utf-8")
    return folder


def python(plugin, *arguments, cwd=None):
    """What a new Python prints that sees the package."""
    path = os.pathsep.join([str(plugin), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(plugin, *arguments, cwd=None):
    return python(plugin, "-m", "forgetting", *arguments, cwd=cwd)


def test_an_ordering_a_scheme_and_an_engine_from_outside_are_in_the_command_line(plugin):
    words = ("expect", "orthogonal", "d=3", "-o", "favourite", "--scheme", "timid", "-k", "5", "--json")
    found, again = (json.loads(command(plugin, *words, "--method", method)) for method in ("auto", "again"))
    assert found["meta"]["method"] == "moments"
    assert again["meta"]["method"] == "again"
    assert found["sections"][0]["items"][0]["rows"] == again["sections"][0]["items"][0]["rows"]


def test_a_quantity_from_outside_is_in_the_command_line_and_all_names_in_its_help(plugin):
    words = ("expect", "orthogonal", "d=3", "-o", "favourite", "-k", "5", "--quantity", "residual", "--json")
    assert json.loads(command(plugin, *words))["sections"][0]["items"][0]["columns"] == ["k", "residual"]
    words = " ".join(command(plugin, "expect", "--help").split())
    for name in ("favourite", "timid", "again", "residual", "monte-carlo", "seen_loss"):
        assert name in words


def test_a_bound_from_outside_is_evaluated(plugin):
    text = command(plugin, "bounds", "orthogonal", "d=3", "-o", "favourite", "-k", "5", "--json")
    assert "newer2027/loss" in text


def test_a_section_from_outside_is_in_the_report(plugin, tmp_path):
    command(plugin, "report", "orthogonal", "d=3", "--out", str(tmp_path / "out"), "--sections", "sizes")
    assert "There are exactly 3 tasks." in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_all_of_it_works_in_python_and_passes_the_conformance_suites(plugin, tmp_path):
    script = """
import numpy as np, forgetting as fg, outside
fg.checks.check_ordering(outside.Favourite()), fg.checks.check_scheme(outside.Timid())
fg.checks.check_convex_set(outside.Ray(3, 1.0))
tasks = fg.families.gaussian(T=3, d=5, rank=1, seed=0)
e = fg.expect(tasks, outside.Favourite(), 4, scheme=outside.Timid(), quantities=("loss", "residual"))
s = fg.expect(tasks, outside.Favourite(), 4, scheme=outside.Timid(), quantities="residual", method="monte-carlo")
low, high = s.interval("residual")
print(e.method, low <= e.values["residual"] <= high)
rays = fg.ConvexSets([outside.Ray(3), outside.Ray(3, 1.0)])
fg.claims.Instance(rays, fg.orderings.Cyclic(), 2).save("rays.npz")
print(fg.claims.Instance.load("rays.npz").problem.distances([0.0, 0.0, 3.0]).round(3).tolist())
print(fg.bounds.get("newer2027/loss").value(fg.bounds.Setting(), 4))
"""
    assert python(plugin, "-c", script, cwd=tmp_path).split("\n")[:3] == ["moments True", "[2.449, 2.449]", "0.25"]


def test_all_of_it_is_in_the_listing_of_the_docs(plugin):
    page = python(plugin, str(ROOT / "docs" / "_tools" / "listing.py"))
    for name in ("favourite", "timid", "ray", "again", "residual", "newer2027/loss", "sizes"):
        assert f"| `{name}` |" in page


def test_a_plugin_that_cannot_be_imported_is_named_and_left_out(plugin, tmp_path):
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[forgetting]\nbroken = no_such_module\n", encoding="utf-8")
    script = "import sys; from forgetting.core.plugins import load_plugins; print(load_plugins())"
    assert python(f"{plugin}{os.pathsep}{tmp_path}", "-W", "ignore", "-c", script).strip() == "['outside']"


# ---------------------------------------------------------------------------------------------- plugins with mistakes


def installed(folder, **sources):
    """A folder in which a package of these modules is installed, each an entry point."""
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    about = folder / "several-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: several\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[forgetting]\n" + "".join(f"{name} = {name}\n" for name in sources))
    return folder


ORDERING = "import forgetting as fg\n\n\n@fg.orderings.register\nclass {}(fg.orderings.Cyclic):\n    pass\n\n\n"
MISTAKES = {
    "exits": ("raise SystemExit(0)", "SystemExit: 0"),
    "recurs": ("def f():\n    return f()\nf()", "RecursionError"),
    "odd_base": ("class Odd(BaseException):\n    pass\nraise Odd('x')", "Odd: x"),
    "speechless": (
        "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\nraise Mute",
        "Mute, whose message raises ValueError",
    ),
    "colours": ("raise ValueError('\\x1b[31m\\n' + 9000 * 'x')", r"ValueError: \x1b[31m xxx"),
    "half": (ORDERING.format("HalfDone") + "raise ValueError('later')", "ValueError: later"),
    "replaces": (
        "import forgetting as fg\nfg.orderings.registry.add('cyclic', int, replace=True)",
        "replaces the ordering",
    ),
    "removes": ("import forgetting as fg\nfg.schemes.registry.remove('ridge')", "removes the scheme 'ridge'"),
    "pretends": (
        "import forgetting as fg\nclass SGD(fg.schemes.Kaczmarz):\n    pass\n"
        "SGD.__module__ = fg.schemes.SGD.__module__\nfg.schemes.register(SGD)",
        "replaces the scheme 'sgd'",
    ),
    "unregisters": ("import forgetting as fg\nfg.bounds.unregister('trivial/loss')", "removes the statement"),
    "section": (
        "from forgetting import report\n@report.section('rates')\ndef rates(settings, progress):\n    return 3",
        "already a section 'rates'",
    ),
    "no_quantity": ("from forgetting import expectation\nexpectation.register_quantity(3)", "expected a Quantity"),
    "no_engine": (
        "from forgetting import expectation\n@expectation.register_engine\nclass Bare:\n    name = 'bare'",
        "expected a class derived from Engine",
    ),
}


def test_a_plugin_that_fails_is_named_and_nothing_of_it_or_of_the_package_changes(tmp_path, monkeypatch, capsys):
    from forgetting import report, solver  # noqa: F401  (the registry of its methods)
    from forgetting.core import plugins, registry

    report.section_makers()
    sources = {name: source for name, (source, _) in MISTAKES.items()}
    good = "print('a word')\n" + ORDERING.format("AllRight")
    monkeypatch.syspath_prepend(installed(tmp_path, a_good=good, **sources))
    monkeypatch.setattr(plugins, "loaded", [])
    monkeypatch.setattr(plugins, "_modules", {})
    before = [dict(table) for _, table in registry._tables]
    try:
        with pytest.warns(UserWarning, match="was left out") as caught:
            assert "a_good" in plugins.load_plugins()
        after = [dict(table) for _, table in registry._tables]
        assert fg.orderings.registry.get("all-right").__name__ == "AllRight"
    finally:
        fg.orderings.registry.remove("all-right")
    said = [str(warning.message) for warning in caught]
    assert len(said) == len(MISTAKES)
    for name, (_, words) in MISTAKES.items():
        (line,) = (line for line in said if line.startswith(f"the plugin '{name}' ({name}) was left out: "))
        assert words in line
        assert len(line) < 500
    assert [{name: table[name] for name in table if name != "all-right"} for table in after] == before
    assert capsys.readouterr().out == ""


def test_damaged_entry_points_of_some_package_are_named_and_others_are_found(tmp_path, monkeypatch):
    from forgetting.core import plugins

    monkeypatch.syspath_prepend(installed(tmp_path, fine=""))
    about = tmp_path / "damaged-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: damaged\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_bytes(b"[forgetting]\n\xff\xfe\n")
    with pytest.warns(UserWarning, match="the entry points of 'damaged' were left out: UnicodeDecodeError"):
        assert "fine" in [plugin.name for plugin in plugins._entry_points()]


def test_an_interrupt_in_a_plugin_is_an_interrupt(tmp_path, monkeypatch):
    from forgetting.core import plugins

    monkeypatch.syspath_prepend(installed(tmp_path, interrupted="raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        plugins.load_plugins()


def test_what_fails_in_use_is_named_with_its_plugin_and_what_can_do_without_it_goes_on(tmp_path):
    source = (
        ORDERING.format("Base")
        + """
from dataclasses import replace
from forgetting import expectation
from forgetting.expectation.engines import MomentsEngine
from forgetting.theory.expression import K, S

@fg.orderings.register
class Fails(fg.orderings.Ordering):
    def visits(self, tasks, rng):
        raise RuntimeError("no idea")

@fg.orderings.register
class Leaves(fg.orderings.Ordering):
    def visits(self, tasks, rng):
        raise SystemExit(0)

@expectation.register_engine
class Unsure(MomentsEngine):
    name = "unsure"
    def covers(self, request):
        raise RuntimeError("covers what?")

fg.bounds.register(fg.bounds.Bound(
    "newer2027/loss", "a rate", "Newer", "loss", ("i.i.d.",), expression=replace(S / K, compute=lambda s, k: 1 / 0)))
"""
    )
    script = """
from forgetting.cli import run_app
import sys
for words in sys.argv[1:]:
    print(run_app(words.split()), file=sys.stderr)
"""
    path = os.pathsep.join([str(installed(tmp_path, outside=source)), str(ROOT / "src")])
    tasks = "orthogonal d=2 -k 2 --json"
    commands = [f"run {tasks} -o fails", f"run {tasks} -o leaves", f"expect {tasks}", f"bounds {tasks}"]
    done = subprocess.run(
        [sys.executable, "-c", script, *commands],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, timeout=300,
    )  # fmt: skip
    said = done.stderr
    assert "error: the plugin 'outside' failed: RuntimeError: no idea" in said
    assert "error: the plugin 'outside' failed: SystemExit: 0" in said
    assert "the method 'unsure' of outside was left out: RuntimeError: covers what?" in said
    assert "newer2027/loss was left out: the plugin 'outside' failed: ZeroDivisionError: division by zero" in said
    assert [line for line in said.splitlines() if line.isdigit()] == ["2", "2", "0", "0"]
