"""The numbers that bounds depend on, from a problem or typed in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from forgetting.core.arrays import Array, as_count, as_flag, as_kind, as_number
from forgetting.core.numerical import EPS
from forgetting.core.registry import letters
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.orderings import Ordering, TaskView, laws
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.schemes import Kaczmarz, natural_scheme
from forgetting.schemes.base import SchemeLike, as_scheme
from forgetting.tasks import LinearTasks, Problem
from forgetting.tasks.problem import Kind as ProblemKind
from forgetting.tasks.problem import as_problem
from forgetting.theory.misfit import MOST_DIMENSIONS, Misfit, minimiser

DIGITS = 1e-6  # by which 1 - spectral_gap and `contraction` may differ, both rounded away from the truth
UP = 1 + 16 * EPS  # for rounding errors of |w_0 - w*|^2 and of R, so that bounds made of them are none too small
HUGE = 1e100  # numbers below it can be squared and multiplied with each other
PROBE = TaskView(3, np.array([1.0, 2.0, 3.0]))  # tasks of which only the norms are known
#: What a bound may cover; "i.i.d." is sampling with replacement with any weights.
ORDERINGS = (
    "with replacement",
    "without replacement",
    "reshuffled",
    "norm-weighted",
    "i.i.d.",
    "cyclic",
    "greedy",
    "greedy single pass",
    "full gradient",
    "any",
)
#: Why no statement is about an ordering that `describe_ordering` gives no name.
LEARNS_ALWAYS = 'covers orderings that learn a task at every step, and this one may say "no update"'
#: What `describe_scheme` reads off a scheme.
SCHEMES = (
    "projection",
    "sgd",
    "nonexpansive",
    "ridge",
    "ridge tuned to k",
    "ridge with an increasing strength",
    "any",
)
#: Schemes of other papers that no scheme of this library states to be: their bounds are listed, and never apply.
SCHEMES_ELSEWHERE = ("gradient descent on the logistic loss",)
#: Kinds of problems.
PROBLEMS: tuple[ProblemKind, ...] = get_args(ProblemKind)


def ordering_named(ordering: Any) -> Any:
    """The name in `ORDERINGS` of an ordering, or of a word for one; what has none there is given back as it is.

    Words are those of `run`, in any spelling.

    >>> ordering_named("WithReplacement"), ordering_named("random"), ordering_named("norm weighted")
    ('with replacement', 'with replacement', 'norm-weighted')
    >>> from forgetting.orderings import Reshuffled
    >>> ordering_named("GreedyDistance"), ordering_named(Reshuffled()), ordering_named("sideways")
    ('greedy', 'reshuffled', 'sideways')
    """
    if isinstance(ordering, str):
        folded = letters(ordering)
        if (name := next((name for name in ORDERINGS if letters(name) == folded), None)) is not None:
            return name
    try:
        tags = describe_ordering(as_ordering(ordering))
    except InvalidInputError:
        return ordering
    return next((name for name in ORDERINGS if name in tags and name != "any"), ordering)


def known(value: float | None) -> float:
    """A parameter that a bound lists in its `needs`, so that it is there when the formula is evaluated.

    >>> known(2.0)
    2.0
    """
    if value is None:
        raise InvalidInputError("a formula uses a parameter that its bound does not list in `needs`")
    return value


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The parameters of a problem and of a method; None where a number is not known.

    Attributes:
        T: number of tasks.
        d: dimension of w (None where it is not known, as with a kernel).
        rank_avg: average rank of the data matrices.
        rank_max: largest rank.
        rank_joint: D, the rank of all tasks together.
        dist_sq: |w_0 - w*|^2.
        radius: R, the largest spectral norm (classification: the largest row norm; sets: 1).
        radius_sq_mean: the paper's R-bar, the mean squared spectral norm.
        weight_ratio: max_m |X_m|^2 / (T p_m) for sampling with probabilities p: R-bar when norm-weighted, R^2 when
            uniform.
        rarest_draw: max_m 1 / (T p_m) over the tasks that can have a loss: 1 when uniform.
        rare: why weight_ratio and rarest_draw are not known, where a task is drawn never or hardly ever.
        spectral_gap: the least eigenvalue of sum_m p_m P_m on the joint row space, for sampling with probabilities p
            (1/T for reshuffled epochs) and P_m the projection onto the row space of task m; 0 where tasks with p_m > 0
            span less.
        contraction: 1 - spectral_gap, where it is known to more digits than the difference has.
        rank_weighted: r_p = sum_m p_m rank(X_m) for sampling with probabilities p: rank_avg when uniform.
        mean_projection: the Frobenius norm of sum_m p_m P_m, P_m as above.
        eta: step size of SGD.
        beta: smoothness of the SGD objective (1 for the modified one, R^2 for the loss).
        penalty: lam of ridge to the previous solution with one strength.
        sigma: standard deviation of the stochastic gradients.
        G: largest norm of a stochastic gradient.
        previous_loss: E L(w_(k-1)), for `lem:in_to_all_sample`.
        from_zero: whether w_0 = 0, which some bounds need.
        programs: whether bounds that are optimisation problems are solved for these numbers (up to 0.1 s each), in
            place of stored solutions that are within a few percent.
        problem: regression, classification or convex sets.
        misfit: the noise of tasks that no w solves, None for tasks with a common solution. With a misfit w* is the
            minimiser of the mean loss nearest to w_0.

    >>> Setting(T=2, d=2, rank_avg=1, dist_sq=4, radius=3).scale
    36.0
    """

    T: int | None = None
    d: int | None = None
    rank_avg: float | None = None
    rank_max: int | None = None
    rank_joint: int | None = None
    dist_sq: float = 1.0
    radius: float = 1.0
    radius_sq_mean: float | None = None
    weight_ratio: float | None = None
    rarest_draw: float | None = None
    rare: str = ""
    spectral_gap: float | None = None
    contraction: float | None = None
    rank_weighted: float | None = None
    mean_projection: float | None = None
    eta: float | None = None
    beta: float | None = None
    penalty: float | None = None
    sigma: float | None = None
    G: float | None = None
    previous_loss: float | None = None
    from_zero: bool = True
    programs: bool = False
    problem: ProblemKind = "regression"
    misfit: Misfit | None = None

    def __post_init__(self) -> None:
        for name, least in (("T", 1), ("d", 0), ("rank_max", 0), ("rank_joint", 0)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_count(value, name, least=least))
        drawn = ("weight_ratio", "rarest_draw", "spectral_gap", "contraction", "rank_weighted", "mean_projection")
        for name in ("dist_sq", "radius", "rank_avg", "radius_sq_mean", *drawn, "penalty", "sigma", "G"):
            if (value := getattr(self, name)) is not None or name in ("dist_sq", "radius"):
                object.__setattr__(self, name, as_number(value, name, least=0, below=HUGE))
        for name in ("eta", "beta", "previous_loss"):  # the range of eta and beta is a matter for each bound
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_number(value, name, below=HUGE))
        if self.contraction is not None and abs(1 - (self.spectral_gap or 0.0) - self.contraction) > DIGITS:
            raise InvalidInputError(
                f"contraction = {self.contraction:g} is not 1 - spectral_gap, with spectral_gap = {self.spectral_gap}; "
                "leave contraction out, or give both"
            )
        as_flag(self.programs, "programs")
        as_kind(self.rare, str, "a reason", "rare: ")
        if self.misfit is not None:
            as_kind(self.misfit, Misfit, "fg.bounds.Misfit(floor=...), the noise of tasks that no w solves", "misfit: ")
        self._check_ranks()

    def _check_ranks(self) -> None:
        slack = 1 + 1e-12
        for name, value in (("rank_avg", self.rank_avg), ("rank_max", self.rank_max), ("rank_joint", self.rank_joint)):
            if value is not None and self.d is not None and value > self.d * slack:
                raise InvalidInputError(f"{name} = {value:g} is larger than d = {self.d}")
        if self.rank_joint is not None and self.rank_avg is not None:
            most = math.inf if self.T is None else self.T * self.rank_avg * slack
            if not self.rank_avg <= self.rank_joint * slack or self.rank_joint > most:
                raise InvalidInputError(
                    f"rank_joint = {self.rank_joint} must lie between rank_avg = {self.rank_avg:g} and "
                    f"T rank_avg = {most:g}"
                )

    @property
    def num_tasks(self) -> int | None:
        """T, by the name that problems have for it."""
        return self.T

    @property
    def norms(self) -> None:
        """The norms of the single tasks, which no setting knows."""
        return None

    @property
    def scale(self) -> float:
        """|w_0 - w*|^2 R^2."""
        return self.dist_sq * self.radius**2

    @property
    def span(self) -> float | None:
        """The joint rank if it is known, else the best bound on it: min(d, T rank_avg)."""
        if self.rank_joint is not None:
            return float(self.rank_joint)
        if self.T is not None and self.rank_avg is not None:
            rows = self.T * self.rank_avg
            return rows if self.d is None else min(float(self.d), rows)
        return None if self.d is None else float(self.d)

    @property
    def sgd_dist_sq(self) -> float | None:
        """|w_0 - w*|^2 for the minimiser w* of the objective of SGD; dist_sq for tasks with a common solution."""
        return self.dist_sq if self.misfit is None else self.misfit.sgd_dist_sq

    @property
    def sigma_star(self) -> float | None:
        """sigma if given, else the standard deviation of the gradients at the minimiser, where tasks have a misfit."""
        return self.sigma if self.sigma is not None or self.misfit is None else self.misfit.sigma

    def trivial(self, quantity: str) -> float | None:
        """The trivial value, which holds since steps do not lengthen the error, and L_m <= |X_m|^2 |z|^2 / 2.

        None for tasks that no w solves: there a step may lengthen the error.

        >>> Setting(dist_sq=2, radius=3, radius_sq_mean=5).trivial("loss")
        5.0
        """
        as_kind(quantity, str, "the name of a quantity", "quantity: ")
        if self.misfit is not None:
            return None
        if quantity in ("loss", "averaged_loss") and self.radius_sq_mean is not None:
            return self.radius_sq_mean * self.dist_sq / 2
        if quantity == "residual":
            return self.dist_sq / 2
        if quantity == "error":
            return self.dist_sq
        if quantity in ("objective", "averaged_objective"):
            return None if self.beta is None else self.beta * self.dist_sq / 2
        return self.scale / 2

    @classmethod
    def of(
        cls,
        problem: Problem | Setting,
        w0: Any = None,
        scheme: SchemeLike | None = None,
        ordering: OrderingLike | None = None,
        **more: Any,
    ) -> Setting:
        """Read the parameters off a problem; `more` overrides or adds (sigma, G, previous_loss).

        Of regression tasks that no w solves, `misfit` holds the noise. For a kernel d is unknown, so only bounds in the
        joint rank apply.

        >>> import forgetting as fg
        >>> s = Setting.of(fg.families.two_lines(0.5))
        >>> s.T, s.d, s.rank_avg, s.rank_joint, round(s.scale, 12), s.eta, s.beta
        (2, 2, 1.0, 2, 1.0, 1.0, 1.0)
        """
        if isinstance(problem, Setting):
            if scheme is not None:
                _, eta, beta = describe_scheme(scheme, radius=problem.radius)
                more = {"eta": eta, "beta": beta, "penalty": as_scheme(scheme).penalty, **more}
            return replace(problem, **more)
        for name in ("eta", "beta"):
            if name in more:
                raise InvalidInputError(
                    f"{name} = {more[name]!r} is a matter of the scheme: give scheme=fg.schemes.SGD(...), or a Setting"
                )
        names = as_problem(problem).names
        ordering = None if ordering is None else as_ordering(ordering, names)
        start = np.zeros(problem.point_shape) if w0 is None else problem.point(w0, "w0")
        linear = problem.linear
        base = _of_sets(problem, start) if linear is None else _of_linear(linear, start, ordering)
        _, eta, beta = describe_scheme(scheme, as_regression(problem), base.radius)
        penalty = None if scheme is None else as_scheme(scheme).penalty
        drawn = _drawn(as_regression(problem), ordering)
        if linear is not None and not linear.realizability.holds:
            drawn |= {"misfit": _misfit(linear, start, scheme, ordering)}
        if "spectral_gap" in more:
            drawn.pop("contraction", None)
        return replace(base, **{"eta": eta, "beta": beta, "penalty": penalty, **drawn, **more})


def as_covered(ordering: OrderingLike, problem: Problem | Setting) -> Ordering | str:
    """The ordering that a caller means; for a `Setting` also a name of orderings in `ORDERINGS`, which stays a name.

    >>> as_covered("with-replacement", Setting(T=3)), as_covered("non-repetitive", Setting(T=3))
    ('with replacement', NonRepetitive())
    """
    if isinstance(problem, Setting) and isinstance(ordering, str):
        if "=" not in ordering and ordering_named(ordering) in ORDERINGS:
            return str(ordering_named(ordering))
        try:
            return as_ordering(ordering)
        except InvalidInputError as error:
            raise InvalidInputError(f"{error}; for a Setting also {', '.join(ORDERINGS)}") from None
    return as_ordering(ordering, None if isinstance(problem, Setting) else as_problem(problem).names)


def as_regression(problem: Problem) -> Problem:
    """The problem as linear tasks where every task is affine, because more bounds cover linear tasks."""
    return problem if problem.linear is None else problem.linear


def _of_linear(problem: LinearTasks, start: Array, ordering: OrderingLike | None) -> Setting:
    geometry = problem.geometry
    gap = geometry.start(start)
    # outputs are learned apart, so that bounds on each add up; an order that looks at all of them learns them as one
    # task of c times as many dimensions
    times = problem.outputs or 1 if ordering is not None and as_ordering(ordering).adaptive else 1
    if not problem.realizability.holds and 0 < geometry.dim <= MOST_DIMENSIONS:
        gap = gap - minimiser(geometry, geometry.loss_weights**2, gap)
    return Setting(
        T=problem.num_tasks,
        d=times * problem.dim if problem.kernel is None else None,
        rank_avg=times * problem.rank_avg,
        rank_max=times * problem.rank_max,
        rank_joint=times * problem.rank_joint,
        dist_sq=float(np.vdot(gap, gap)) * UP,
        radius=problem.radius,
        radius_sq_mean=problem.radius_sq_mean,
        from_zero=not start.any(),
    )


def _of_sets(problem: Problem, start: Array) -> Setting:
    """The parameters of convex sets and classification tasks; R is 1 where the problem has no radius."""
    try:
        gap = problem.nearest_solution(start) - start
    except NotSupportedError as error:
        raise NotSupportedError(
            f"{error}; or pass a Setting(T=..., dist_sq=..., problem={problem.kind!r}) in place of the problem"
        ) from error
    return Setting(
        T=problem.num_tasks,
        d=problem.dim,
        dist_sq=float(gap @ gap) * UP,
        radius=1.0 if problem.radius is None else problem.radius,
        problem=problem.kind,
        from_zero=not start.any(),
    )


def _misfit(problem: LinearTasks, start: Array, scheme: SchemeLike | None, ordering: OrderingLike | None) -> Misfit:
    """The noise of tasks without a common solution."""
    step = as_scheme(scheme).as_sgd(2.0) if scheme is not None else None
    objective = "modified" if step is None or step.smoothness == 1 else "loss"  # that of the loss grows with the radius
    geometry, tested = problem.geometry, problem.realizability
    message = f"no w solves task {tested.first_offender} and all others (relative residual {tested.residual:.2g})"
    return Misfit.of(geometry, geometry.start(start), _probabilities(problem, ordering), objective, message)


def _probabilities(problem: Problem, ordering: OrderingLike | None) -> Array | None:
    """The probabilities p of independent draws, and 1/T for reshuffled epochs; None for other orderings."""
    law = None if ordering is None else as_ordering(ordering).law
    if not isinstance(law, laws.Independent | laws.Reshuffled):
        return None
    if problem.norms is None and isinstance(law, laws.Independent) and callable(law.p):
        return None  # may ask for norms
    T = problem.num_tasks
    return law.probabilities(TaskView(T, problem.norms)) if isinstance(law, laws.Independent) else np.full(T, 1 / T)


def _rarest(p: Array, alpha: Array) -> dict[str, Any]:
    """weight_ratio and rarest_draw, or the reason why they are not known: the task that is hardly ever drawn.

    >>> _rarest(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    {'rare': 'task 1 is never drawn, and may keep all of its loss'}
    """
    seen = np.flatnonzero(alpha > 0)
    if not len(seen):
        return {"weight_ratio": 0.0, "rarest_draw": 0.0}
    with np.errstate(divide="ignore", over="ignore"):
        draws = 1 / p[seen] / len(p)
        ratios = alpha[seen] * draws
    result = {name: float(np.max(of)) for name, of in (("weight_ratio", ratios), ("rarest_draw", draws))}
    if max(result.values()) < HUGE:
        return result
    task, chance = seen[np.argmin(p[seen])], np.min(p[seen])
    why = "never drawn" if chance == 0 else f"drawn with probability {chance:.2g}, too small to compute with"
    known_still = {name: value for name, value in result.items() if value < HUGE}
    return {**known_still, "rare": f"task {task} is {why}" + (", and may keep all of its loss" if chance == 0 else "")}


def _drawn(problem: Problem, ordering: OrderingLike | None) -> dict[str, Any]:
    """The parameters that depend on the probabilities p of the tasks, where they are known."""
    p = _probabilities(problem, ordering)
    if p is None:
        return {}
    if problem.norms is None:  # convex sets or classification, where distances count
        return {name: value for name, value in _rarest(p, np.ones(len(p))).items() if name != "weight_ratio"}
    alpha = problem.norms**2
    result = _rarest(p, alpha)
    if problem.linear is not None:
        result["rank_weighted"] = float(p @ problem.linear.ranks)
        geometry = problem.linear.geometry
        if 0 < geometry.dim <= MOST_DIMENSIONS:
            mixing = geometry.mixing(p)
            result |= {"spectral_gap": mixing.least, "mean_projection": mixing.norm}
            result["contraction"] = mixing.rest if abs(1 - mixing.least - mixing.rest) <= DIGITS else None
    return result


def describe_scheme(
    scheme: SchemeLike | None, problem: Problem | Setting | None = None, radius: float = 1.0
) -> tuple[frozenset[str], float | None, float | None]:
    """The names under which bounds cover a scheme, with its step size and smoothness where it is SGD.

    For a `Setting` without a scheme: projections, unless it has another step size or smoothness than 1.

    >>> import forgetting as fg
    >>> sorted(describe_scheme(fg.schemes.Kaczmarz())[0])
    ['any', 'nonexpansive', 'projection', 'sgd']
    >>> describe_scheme(fg.schemes.SGD(0.1, objective="loss"), radius=2.0)[1:]
    (0.1, 4.0)
    """
    if scheme is None:
        if isinstance(problem, Problem):  # a Setting has no tasks, and so no scheme of its own
            scheme = natural_scheme(problem)
        elif problem is not None and {problem.eta, problem.beta} - {None, 1.0}:
            return frozenset({"any", "sgd"}), problem.eta, problem.beta
        else:
            scheme = Kaczmarz()
    scheme = as_scheme(scheme)
    step = scheme.as_sgd(radius)
    named = {"projection": scheme.projects, "sgd": step is not None, "nonexpansive": scheme.nonexpansive}
    tags = frozenset({"any", *(name for name, states in named.items() if states)} | ({scheme.known_as} - {""}))
    return (tags, None, None) if step is None else (tags, step.step_size, step.smoothness)


def describe_ordering(
    ordering: Ordering | str, problem: Problem | Setting | None = None, k: int | None = None
) -> frozenset[str]:
    """The names under which bounds cover an ordering, by its law.

    The first epoch of reshuffling is an ordering without replacement, too; a cycle that is given is cyclic if it has
    every task once; an ordering that skips steps is none of them; weights that happen to be uniform, or proportional
    to the squared norms, count as such.

    >>> from forgetting.orderings import Cyclic, WithReplacement
    >>> sorted(describe_ordering(WithReplacement()))
    ['any', 'i.i.d.', 'with replacement']
    >>> sorted(describe_ordering(Cyclic())), sorted(describe_ordering("cyclic"))
    (['any', 'cyclic'], ['any', 'cyclic'])
    """
    if isinstance(ordering, str):
        ordering = ordering_named(ordering)
        if ordering not in ORDERINGS:
            raise InvalidInputError(f"ordering must be one of {', '.join(ORDERINGS)}, got {ordering!r}")
        if ordering == "reshuffled":
            return frozenset({"any", *_tags(laws.Reshuffled(), problem, k)})
        independent = ordering in ("with replacement", "norm-weighted")
        return frozenset({"any", ordering, "i.i.d."} if independent else {"any", ordering})
    if ordering.skips:  # statements count the steps, and each of them learns a task
        return frozenset()
    return frozenset({"any", *_tags(ordering.law, problem, k)})


def _tags(law: laws.Law, problem: Problem | Setting | None, k: int | None) -> set[str]:
    tasks = None if problem is None else problem.num_tasks
    match law:
        case laws.Independent():
            return {"i.i.d.", *_weights(law, problem)}
        case laws.Permutation():
            return {"without replacement"}
        case laws.Reshuffled():
            one_epoch = k is not None and tasks is not None and k <= tasks
            return {"reshuffled", "without replacement"} if one_epoch else {"reshuffled"}
        case laws.Cycle():
            return {"cyclic"} if law.order is None or law.permutes(tasks or len(law.order)) else set()
        case laws.Adaptive(greedy=True):
            return {"greedy" if law.repeat else "greedy single pass"}
    return set()


def _weights(law: laws.Independent, problem: Problem | Setting | None) -> set[str]:
    """Whether the probabilities are uniform, and whether they are proportional to the squared norms."""
    tasks = PROBE
    if problem is not None and problem.num_tasks is not None and (problem.norms is not None or not callable(law.p)):
        tasks = TaskView(problem.num_tasks, problem.norms)
    if tasks is PROBE and not (law.p is None or callable(law.p)):
        return set()  # weights of tasks whose norms are not known
    p, norms = law.probabilities(tasks), tasks.norms
    tags = set()
    if np.allclose(p, 1 / len(p), rtol=1e-12, atol=0):
        tags.add("with replacement")
    if norms is not None and norms.any() and np.allclose(p, norms**2 / np.sum(norms**2), rtol=1e-12, atol=0):
        tags.add("norm-weighted")
    return tags


add_codec(dataclass_codec(Setting, "setting"))
