"""A package of somebody else adds one thing of each kind, in one file, and it is everywhere: the table in CONTRIBUTING.

The package is not imported by the tests: its entry point is what makes the command line find it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    script = "import sys; from forgetting._plugins import load_plugins; print(load_plugins())"
    assert python(f"{plugin}{os.pathsep}{tmp_path}", "-W", "ignore", "-c", script).strip() == "['outside']"
