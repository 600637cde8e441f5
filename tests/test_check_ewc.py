"""`check_ewc` passes EWCs that equal joint training, and names the fault of others."""

import numpy as np
import pytest

from forgetting.checks import check_ewc
from forgetting.errors import InvalidInputError


def ewc(
    *,
    loss="sum",
    fisher_of="full",
    fisher_rows=None,
    factor=1.0,
    enters=lambda strength: strength,
    centre="last",
    sums="all",
    gamma=1.0,
    decay=0.0,
):
    """An EWC of linear tasks that solves its linear equations; each argument but `loss` can plant a fault."""

    def fit(Xs, ys, strength):
        d = Xs[0].shape[1]
        weights, fishers, total = [], [], np.zeros((d, d))
        for X, y in zip(Xs, ys, strict=True):
            share = 1 / len(X) if loss == "mean" else 1.0
            A, b = share * X.T @ X + decay * np.eye(d), share * X.T @ y
            rows = X / np.sqrt(len(X)) if (fisher_rows or loss) == "mean" else X
            if weights:
                mean = total / len(weights)
                matrix = {"all": total, "last": fishers[-1], "current": rows.T @ rows, "mean": mean}[sums]
                pairs = {
                    "last": [(matrix, weights[-1])],
                    "first": [(matrix, weights[0])],
                    "own": list(zip(fishers, weights, strict=True)),
                }[centre]
                for F, c in pairs:
                    A, b = A + enters(strength) * factor * F, b + enters(strength) * factor * F @ c
            w = np.linalg.solve(A, b)
            missed = X @ w - y
            gradients = missed[:, None] * rows
            batches = [gradients[i : i + 4].sum(axis=0) for i in (0, 4, 8)]
            F = {
                "full": rows.T @ rows,
                "diagonal": np.diag((rows**2).sum(axis=0)),
                "squares": gradients.T @ gradients,
                "squares of batches": sum(np.outer(g, g) for g in batches),
                "square of the mean": np.outer(gradients.sum(axis=0), gradients.sum(axis=0)),
                "none": np.eye(d),
            }[fisher_of]
            weights.append(w)
            fishers.append(F)
            total = gamma * total + F
        return weights

    return fit


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_an_ewc_that_equals_joint_training_passes_with_sums_and_with_means(loss, seed):
    report = check_ewc(ewc(loss=loss), seed=seed)
    assert (report.fisher, report.loss, report.lost) == ("full", loss, 0.0)
    assert report.gap < 1e-12
    assert "equals joint training" in str(report)


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_a_diagonal_fisher_is_a_finding_that_says_what_it_costs(loss):
    report = check_ewc(ewc(loss=loss, fisher_of="diagonal"))
    assert (report.fisher, report.loss) == ("diagonal", loss)
    assert report.gap < 1e-12 < 1e-2 < report.lost
    assert "no fault" in str(report)


FAULTS = {
    "does nothing": ({"factor": 0.0}, "^does nothing: each task is learned as if it were alone"),
    "full batch": ({"fisher_of": "square of the mean"}, "^does nothing: .* square of a mean gradient"),
    "sign": ({"factor": -1.0}, "^wrong sign"),
    "no half": ({"factor": 2.0}, "^wrong scale: the penalty is 2 times .* without the 1/2"),
    "half": ({"factor": 0.5}, "^wrong scale: the penalty is 0.5 times .* loss has no 1/2"),
    "tiny": ({"factor": 1e-6}, "^wrong scale: the penalty is 1e-06 times"),
    "slightly": ({"factor": 1.003}, "^wrong scale: the penalty is 1.003 times"),
    "sum in a mean": ({"loss": "mean", "fisher_rows": "sum"}, "^wrong scale: the Fisher is a sum .*; divide"),
    "mean in a sum": ({"loss": "sum", "fisher_rows": "mean"}, "^wrong scale: the Fisher is a mean .* a sum; multiply"),
    "first centre": ({"centre": "first"}, "^centre not moved: it stays at the weights after the first task"),
    "own centres": ({"centre": "own"}, "^separate centres, .* original EWC"),
    "current": ({"sums": "current"}, "^the Fisher is that of the current task only"),
    "last": ({"sums": "last"}, "^the Fisher is that of the last task only"),
    "mean": ({"sums": "mean"}, "^the Fisher is the mean over the earlier tasks"),
    "gamma": ({"gamma": 0.9}, "^the Fisher is accumulated with decay, gamma = 0.9:"),
    "ignored": ({"enters": lambda strength: 1.0}, "^strength ignored"),
    "squared": ({"enters": lambda strength: strength**2}, "^strength 2 gives a penalty that is 4 times"),
    "empirical": ({"fisher_of": "squares"}, r"^the Fisher is the squared gradients .* \(the empirical Fisher\)"),
    "batches": ({"fisher_of": "squares of batches"}, "^does nothing on tasks that are solved exactly"),
    "no Fisher": ({"fisher_of": "none"}, "^there is no Fisher"),
    "weight decay": ({"decay": 0.5}, "^weight decay: .* 0.5 .* beside half their sum"),
    "two at once": ({"factor": -2.0, "centre": "first"}, "^wrong sign.*; wrong scale: .* 2 times.*; centre not"),
}


@pytest.mark.parametrize("fisher_of", ["full", pytest.param("diagonal", marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault, fisher_of):
    planted, said = FAULTS[fault]
    with pytest.raises(AssertionError, match=said):
        check_ewc(ewc(**{"fisher_of": fisher_of, **planted}))


def test_an_exact_fit_of_finite_accuracy_passes_within_the_tolerance_and_its_faults_are_named():
    def rounded(fit):
        return lambda Xs, ys, strength: np.round(fit(Xs, ys, strength), 5)

    assert check_ewc(rounded(ewc())).fisher == "full"
    for fault in ("no half", "own centres", "gamma", "current"):
        planted, said = FAULTS[fault]
        with pytest.raises(AssertionError, match=said):
            check_ewc(rounded(ewc(**planted)))


@pytest.mark.parametrize("fisher_of", ["full", "diagonal"])
@pytest.mark.parametrize("tol", [0.01, 0.03])
def test_errors_of_a_stochastic_optimiser_within_the_tolerance_are_no_fault(tol, fisher_of):
    rng = np.random.default_rng(0)

    def disturbed(Xs, ys, strength):
        weights = np.array(ewc(fisher_of=fisher_of, loss="mean")(Xs, ys, strength))
        return weights * (1 + 0.3 * tol * rng.standard_normal(weights.shape))

    assert [check_ewc(disturbed, tol=tol).fisher for _ in range(4)] == 4 * [fisher_of]


@pytest.mark.parametrize("fault", ["gamma", "weight decay"])
def test_a_small_fault_is_named_at_a_large_tolerance(fault):
    planted, said = FAULTS[fault]
    with pytest.raises(AssertionError, match=said):
        check_ewc(ewc(**planted), tol=0.01, seed=3)


def test_a_fit_that_has_not_converged_is_compared_with_the_nearest_penalty():
    def disturbed(Xs, ys, strength, factor):
        weights = np.array(ewc(factor=factor, loss="mean")(Xs, ys, strength))
        weights[1:] += 1e-3 * np.random.default_rng(0).standard_normal(weights[1:].shape)
        return weights

    with pytest.raises(AssertionError, match=r"have not converged .* weights away: the right penalty"):
        check_ewc(lambda *given: disturbed(*given, 1.0))
    with pytest.raises(AssertionError, match=r"have not converged .* weights away: none: it does nothing"):
        check_ewc(lambda *given: disturbed(*given, 0.0))


@pytest.mark.parametrize("centre", ["last", "own"])
def test_a_penalty_that_is_multiplied_by_the_number_of_mini_batches_is_named(centre):
    def fit(Xs, ys, strength):
        """Mini-batches of 4 rows; the equations of the mean over the batches."""
        weights, fishers = [], []
        for X, y in zip(Xs, ys, strict=True):
            A, b = X.T @ X, X.T @ y
            for s, F in enumerate(fishers):
                c = weights[s if centre == "own" else -1]
                A, b = A + -(-len(X) // 4) * strength * F, b + -(-len(X) // 4) * strength * F @ c
            weights.append(np.linalg.solve(A, b))
            fishers.append(X.T @ X)
        return weights

    said = r"^wrong scale: the penalty is 3, 3, 5 times .* number of mini-batches"
    with pytest.raises(AssertionError, match=said + (".*; separate centres" if centre == "own" else "[^;]*$")):
        check_ewc(fit)


def test_an_intercept_is_named():
    def fit(Xs, ys, strength):
        return ewc()([X - X.mean(axis=0) for X in Xs], [y - y.mean() for y in ys], strength)

    with pytest.raises(AssertionError, match=r"^an intercept: .*bias=False"):
        check_ewc(fit)


def descent(steps, sign=1.0):
    """An EWC by gradient descent with a step size of 0.01 on sums."""

    def fit(Xs, ys, strength):
        w = np.zeros(Xs[0].shape[1])
        F, weights = np.zeros((len(w), len(w))), []
        for X, y in zip(Xs, ys, strict=True):
            centre = w.copy()
            for _ in range(steps):
                w = w - 0.005 * (X.T @ (X @ w - y) + sign * strength * F @ (w - centre))
            F = F + X.T @ X
            weights.append(w)
        return np.array(weights)

    return fit


def test_steps_that_have_not_converged_are_named_and_those_that_have_pass():
    assert check_ewc(descent(2000)).fisher == "full"
    with pytest.raises(AssertionError, match=r"^the first task is not minimised"):
        check_ewc(descent(20))


def test_a_wrong_sign_that_makes_descent_diverge_is_found_at_a_smaller_strength():
    with pytest.raises(AssertionError, match=r"^diverges at strength 1, but not at 0.01: wrong sign"):
        check_ewc(descent(2000, sign=-1.0))


def test_weights_that_never_move_and_a_penalty_on_the_first_task_are_named():
    def frozen(Xs, ys, strength):
        return np.tile(ewc()(Xs, ys, strength)[0], (len(Xs), 1))

    def early(Xs, ys, strength):
        w, weights = np.zeros(Xs[0].shape[1]), []
        for X, y in zip(Xs, ys, strict=True):
            w = np.linalg.solve(2 * X.T @ X, X.T @ y + X.T @ X @ w)
            weights.append(w)
        return weights

    with pytest.raises(AssertionError, match=r"^no task after the first changes the weights"):
        check_ewc(frozen)
    with pytest.raises(AssertionError, match=r"^the first task is penalised, .* 0.5 times"):
        check_ewc(early)


def test_results_of_another_shape_and_wrong_arguments_are_refused():
    with pytest.raises(AssertionError, match=r"shape \(3, 6\), expected \(4, 6\)"):
        check_ewc(lambda Xs, ys, strength: ewc()(Xs, ys, strength)[1:])
    with pytest.raises(InvalidInputError, match="fit"):
        check_ewc(3)
    with pytest.raises(InvalidInputError, match="loss"):
        check_ewc(ewc(), loss="huber")
    with pytest.raises(InvalidInputError, match="tol"):
        check_ewc(ewc(), tol=0)
    # an EWC of sums is none of means
    with pytest.raises(AssertionError):
        check_ewc(ewc(), loss="mean")


def torch_ewc(factor=0.5):
    """An EWC written for torch: a layer, a mean squared error, a Fisher by automatic differentiation, LBFGS."""
    torch = pytest.importorskip("torch")

    def fit(Xs, ys, strength):
        layer = torch.nn.Linear(Xs[0].shape[1], 1, bias=False, dtype=torch.float64)
        criterion = torch.nn.MSELoss()
        fisher, centre, weights = None, None, []
        for X, y in zip(map(torch.tensor, Xs), map(torch.tensor, ys), strict=True):
            optimiser = torch.optim.LBFGS(
                layer.parameters(),
                max_iter=500,
                tolerance_grad=1e-11,
                tolerance_change=1e-14,
                line_search_fn="strong_wolfe",
            )

            def objective(X=X, y=y, centre=centre, fisher=fisher, optimiser=optimiser):
                optimiser.zero_grad()
                value = criterion(layer(X)[:, 0], y)
                if fisher is not None:
                    change = (layer.weight - centre)[0]
                    value = value + factor * strength * change @ fisher @ change
                value.backward()
                return value

            optimiser.step(objective)
            centre = layer.weight.detach().clone()
            own = torch.autograd.functional.hessian(lambda w, X=X, y=y: criterion(X @ w, y), centre[0])
            fisher = own if fisher is None else fisher + own
            weights.append(centre[0].numpy().copy())
        return np.array(weights)

    return fit


def test_an_ewc_written_for_torch_passes():
    report = check_ewc(torch_ewc())
    assert (report.fisher, report.loss) == ("full", "mean")


def test_a_penalty_without_the_half_is_named_in_torch():
    with pytest.raises(AssertionError, match=r"^wrong scale: the penalty is 2 times"):
        check_ewc(torch_ewc(factor=1.0))
