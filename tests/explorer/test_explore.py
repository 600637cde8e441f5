"""fg.explore and the data of its page, without a browser."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.explorer.data import STEPS, bounds_source, own_tasks
from forgetting.explorer.javascript import Translator, Untranslatable


def test_the_page_is_written_once_and_replaced_only_by_force(tmp_path):
    path = tmp_path / "page.html"
    page = fg.explore(out=path)
    assert path.read_text(encoding="utf-8") == page.html
    with pytest.raises(ProblemFileError, match="exists"):
        fg.explore(out=path)
    assert fg.explore(fg.families.two_lines(0.5), path, force=True).html == path.read_text(encoding="utf-8")


def test_another_ending_is_refused_before_anything_is_computed(tmp_path):
    with pytest.raises(InvalidInputError, match="must end in"):
        fg.explore(out=tmp_path / "page.png")


def test_a_notebook_gets_a_frame_with_the_whole_page():
    shown = fg.explore()._repr_html_()
    assert shown.startswith("<iframe")
    assert 'sandbox="allow-scripts' in shown
    assert "&lt;!doctype html&gt;" in shown


def test_tasks_are_reduced_to_their_joint_row_space():
    tasks = fg.families.gaussian(T=4, d=300, rank=2, seed=1)
    own = own_tasks(tasks)
    small = fg.RegressionTasks(own["X"], [np.array(X) @ np.array(own["w"][0]) for X in own["X"]])
    k = [1, 5, 20]
    one, two = (fg.expect(one, "with-replacement", k) for one in (tasks, small))
    assert np.allclose(one.loss, two.loss, rtol=1e-10)
    assert (own["d"], len(own["w"][0]), small.dim) == (300, 8, 8)


def test_what_no_w_fits_within_a_task_is_half_the_squared_residual_of_least_squares():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3, 5, 3)), rng.standard_normal((3, 5))
    own = own_tasks(fg.RegressionTasks(list(X), list(y)))
    assert not own["realizable"]
    floors = [np.linalg.lstsq(*task, rcond=None)[1][0] / 2 for task in zip(X, y, strict=True)]
    assert np.allclose(own["floors"], floors)


@pytest.mark.parametrize(
    ("tasks", "error", "words"),
    [
        (lambda: fg.families.gaussian(13, 5), InvalidInputError, "13 tasks, and the explorer shows at most 12"),
        (lambda: fg.families.gaussian(4, 30, rank=4), InvalidInputError, "16 dimensions of the joint row space"),
        (lambda: fg.families.separable(3, 4, 2), NotSupportedError, "shows linear tasks"),
        (lambda: "tasks.csv", InvalidInputError, "fg.load makes one"),
        (lambda: fg.RegressionTasks([np.zeros((1, 2))], [[0.0]]), InvalidInputError, "only rows of zeros"),
    ],
)
def test_tasks_that_cannot_be_shown_are_refused_with_the_remedy(tasks, error, words):
    with pytest.raises(error, match=words):
        fg.explore(tasks())


def test_every_bound_on_loss_or_forgetting_is_translated_or_named():
    source = bounds_source()
    for bound in fg.bounds.all_bounds():
        if bound.quantity in ("loss", "forgetting") and "regression" in bound.problems:
            covered = {"with replacement", "without replacement", "cyclic", "i.i.d.", "any", "norm-weighted", "greedy"}
            learned = {"projection", "sgd", "nonexpansive", "any", "ridge", "ridge tuned to k"}
            if covered & set(bound.orderings) and learned & set(bound.schemes) and "previous_loss" not in bound.needs:
                assert f'"{bound.key}"' in source or bound.status == "refuted", bound.key


def test_what_depends_on_k_alone_becomes_a_table_and_what_depends_on_more_is_refused():
    translator = Translator(STEPS, (2,), {})
    assert "stepIndex" in translator.formula(lambda s, k: sum(range(k)))
    with pytest.raises(Untranslatable):
        translator.formula(lambda s, k: sum(range(int(s.radius))))


def test_a_bound_of_ones_own_is_shown_or_named():
    def awkward(s, k):
        return max(sorted(vars(s).items()))[0] and s.dist_sq / k

    for name, compute in (("easy", lambda s, k: 2 * s.scale / k), ("awkward", awkward)):
        fg.bounds.declare(
            key=f"own2027:{name}",
            title=name,
            source="someone",
            quantity="loss",
            orderings="with replacement",
            formula="c/k",
        )(compute)
    try:
        source = bounds_source()
    finally:
        for key in ("own2027:easy", "own2027:awkward"):
            fg.bounds.unregister(key)
    assert '"own2027:easy"' in source
    assert '"own2027:awkward"' not in source
    assert "awkward" in source


def test_the_command_writes_the_page(tmp_path, monkeypatch, capsys):
    from forgetting.cli import run_app

    monkeypatch.chdir(tmp_path)
    assert run_app(["explore", "two_lines", "theta=0.5"]) == 0
    assert "wrote explorer.html" in capsys.readouterr().out
    assert (tmp_path / "explorer.html").stat().st_size < 10**6
