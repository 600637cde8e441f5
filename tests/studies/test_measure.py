"""The function of most studies: the numbers are those of `fg.expect` and `fg.bounds.evaluate`."""

import pytest

import forgetting as fg
from forgetting.errors import ForgettingError, InvalidInputError


def test_rows_are_the_expectation_and_the_tightest_bounds():
    tasks = fg.families.gaussian(4, 8, 2, seed=7)
    rows = fg.studies.measure("gaussian", T=4, d=8, rank=2, seed=7, k=[3, 30], ordering="cyclic", bounds=True)
    found = fg.expect(tasks, "cyclic", [3, 30])
    for place, row in enumerate(rows):
        assert row["k"] == (3, 30)[place]
        assert row["method"] == found.method
        evaluated = fg.bounds.evaluate(tasks, "cyclic", row["k"])
        for name in ("loss", "forgetting"):
            assert row[name] == pytest.approx(found.values[name][place], rel=1e-12)
            upper = [
                one for one in evaluated if one.applies and one.bound.quantity == name and one.bound.kind == "upper"
            ]
            assert row[f"{name}_bound"] == pytest.approx(min(one.value for one in upper), rel=1e-12)
            assert row[name] <= row[f"{name}_bound"]


def test_any_file_of_tasks_can_be_measured(tmp_path):
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0], 0.5)])
    sets.save(tmp_path / "sets.npz")
    (row,) = fg.studies.measure(file=str(tmp_path / "sets.npz"), ordering="cyclic", k=5)
    assert row["loss"] == pytest.approx(fg.expect(sets, "cyclic", 5).loss, rel=1e-12)
    assert row["loss_uncertainty"] is None


def test_cells_that_differ_in_what_is_asked_have_the_same_tasks():
    study = fg.Study.grid(
        family="gaussian", T=3, d=5, rank=1, ordering=["cyclic", "with-replacement"],
        scheme=["kaczmarz", "ridge lam=1"], store=None, repeats=2,
    )  # fmt: skip
    seeds = {(cell.values["repeat"], cell.seed) for cell in study.cells}
    assert len(seeds) == 2


@pytest.mark.parametrize(
    "values",
    [{}, {"family": "two_lines", "file": "a.npz", "theta": 0.5}],
)
def test_a_family_or_a_file(values):
    with pytest.raises(ForgettingError, match="either family, with its parameters, or file"):
        fg.studies.measure(**values)
    with pytest.raises(ForgettingError, match="a file has no option 'theta'"):
        fg.studies.measure(file="a.npz", theta=0.5)


def test_k_that_is_a_text_is_named_as_it_was_given():
    with pytest.raises(ForgettingError, match="k must be a whole number, got 'ten'"):
        fg.studies.measure("two_lines", theta=0.5, k="ten")


def test_a_quantity_that_does_not_exist_is_named_before_anything_is_computed():
    with pytest.raises(InvalidInputError, match=r"cell 0: no quantity 'los'; did you mean 'loss'"):
        fg.Study.grid(family="orthogonal", d=[2, 3], k=5, quantities=["los"], store=None)


def test_a_scheme_within_a_scheme_is_measured_and_is_named_as_a_user_types_it():
    cell = {"family": "gaussian", "T": 3, "d": 6, "rank": 2, "k": 3}
    within = [
        (fg.schemes.Decay(0.9, fg.schemes.Ridge(0.5)), "decay alpha=0.9 'scheme=ridge lam=0.5'"),
        (fg.schemes.Replay(fg.schemes.Ridge(0.5)), "replay 'scheme=ridge lam=0.5' memory=1 policy=first per=task"),
        (fg.schemes.Scheduled([fg.schemes.Ridge(t) for t in (1, 2, 3)]), None),
    ]
    study = fg.Study([{**cell, "scheme": scheme} for scheme, _ in within], store=None).run(progress=False)
    for (scheme, words), row in zip(within, study.to_frame().to_dict("records"), strict=True):
        expected = fg.expect(fg.families.gaussian(T=3, d=6, rank=2, seed=row["seed"]), "with-replacement", 3, scheme)
        assert row["loss"] == pytest.approx(float(expected.loss), rel=1e-9)
        assert words in (None, row["scheme"])
        assert words is None or fg.schemes.base.as_scheme(words) == scheme
