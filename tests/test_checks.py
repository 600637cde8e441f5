"""The conformance suites pass what is right and catch what is wrong."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.checks import check_ordering, check_scheme
from forgetting.errors import InvalidInputError
from forgetting.orderings import Cyclic, Reshuffled, WithoutReplacement, WithReplacement

ORDERINGS = [
    fg.orderings.WithReplacement(),
    fg.orderings.WithReplacement(p=[1, 2, 3, 4, 5, 6, 7]),
    fg.orderings.NormWeighted(),
    fg.orderings.WithoutReplacement(),
    fg.orderings.Cyclic(),
    fg.orderings.Reshuffled(),
    fg.orderings.Explicit([3, 1, 1, 0]),
    fg.orderings.GreedyDistance(),
    fg.orderings.GreedyDistance(repeat=False),
    fg.orderings.GreedyResidual(),
    fg.orderings.GreedyResidual(repeat=False),
    fg.orderings.Cyclic(order=[6, 1, 0, 2, 5, 4, 3]),
    fg.orderings.Cyclic(order=[3, 3, 0]),
    fg.orderings.NonRepetitive(),
    fg.orderings.NonRepetitive(p=[1, 2, 3, 4, 5, 6, 7]),
    fg.orderings.Steinerberger(),
    fg.orderings.RelaxedGreedy(),
    fg.orderings.Quantile(),
    fg.orderings.Quantile(0.6, sample=4),
    fg.orderings.GreedyThenRandom(),
    fg.orderings.GreedyThenRandom(0.3, repeat=True),
    fg.orderings.PeripheryFirst(),
    fg.orderings.PeripheryFirst("solutions", repeat=True),
    fg.orderings.DissimilarNeighbours(),
    fg.orderings.DissimilarNeighbours("solutions", repeat=True),
    fg.orderings.HermanMeyer(),
]
SOLVERS = [
    fg.schemes.GradientDescent(),
    fg.schemes.GradientDescent(accelerated=True),
    fg.schemes.Kaczmarz(),
    fg.schemes.SGD(),
    fg.schemes.RecursiveLeastSquares(),
]
OTHERS = [
    fg.schemes.SGD(0.3),
    fg.schemes.SGD(1.9),
    fg.schemes.SGD(0.02, objective="loss"),
    fg.schemes.FiniteSteps(5, 0.02),
    fg.schemes.Ridge(0.5),
    fg.schemes.GeneralizedRidge(np.linspace(0.5, 2.0, 9)),
    fg.schemes.NLMS(),
    fg.schemes.NLMS(0.5, eps=0.1),
]


@pytest.mark.parametrize("ordering", ORDERINGS, ids=str)
def test_every_ordering_conforms(ordering):
    check_ordering(ordering)


@pytest.mark.parametrize("scheme", SOLVERS, ids=str)
def test_every_scheme_that_converges_solves_its_task(scheme):
    check_scheme(scheme, solves=True)


@pytest.mark.parametrize("scheme", OTHERS, ids=str)
def test_every_other_scheme_conforms(scheme):
    check_scheme(scheme)


def test_stochastic_gradient_descent_conforms():
    check_scheme(fg.schemes.GradientDescent(batch_size=1), solves=True)


class OutOfRange(fg.orderings.Ordering):
    def visits(self, tasks, rng):
        while True:
            yield tasks.num_tasks


class GlobalRandomness(fg.orderings.Ordering):
    def visits(self, tasks, rng):
        own = np.random.default_rng()
        while True:
            yield int(own.integers(tasks.num_tasks))


class RunsOutUnannounced(fg.orderings.Ordering):
    def visits(self, tasks, rng):
        yield from range(3)


class LongerThanItSays(fg.orderings.Ordering):
    def limit(self, num_tasks):
        return 2

    def visits(self, tasks, rng):
        yield from [0, 1, 2]


class PeeksWithoutSaying(fg.orderings.Ordering):
    def visits(self, tasks, rng):
        while True:
            yield int(np.argmax(tasks.losses()))


@pytest.mark.parametrize(
    ("ordering", "message"),
    [
        (OutOfRange(), "named task 7"),
        (GlobalRandomness(), "same seed gave two different orders"),
        (RunsOutUnannounced(), "ran out after 3"),
        (LongerThanItSays(), "limit"),
        (PeeksWithoutSaying(), "adaptive = True"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_wrong_ordering_is_caught(ordering, message):
    with pytest.raises((AssertionError, fg.errors.OrderingError), match=message):
        check_ordering(ordering)


class Drawn(fg.orderings.Ordering):
    """States one law, and visits by another."""

    def visits(self, tasks, rng):
        while True:
            yield int(rng.integers(tasks.num_tasks))


def lying(law, visits=Drawn.visits):
    """An ordering that states this law but visits tasks otherwise."""
    return type("Lying", (fg.orderings.Ordering,), {"law": law, "visits": visits})()


def sticky(self, tasks, rng):
    """Each task as often as any other in the long run, but the same task again more often than not."""
    task = int(rng.integers(tasks.num_tasks))
    while True:
        yield task
        task = task if rng.random() < 0.7 else int(rng.integers(tasks.num_tasks))


def almost_shuffled(self, tasks, rng):
    """Epochs that visit every task once, but in one of T orders only."""
    while True:
        yield np.roll(np.arange(tasks.num_tasks), 1 + int(rng.integers(tasks.num_tasks - 1)))


def rotated(self, tasks, rng):
    """Epochs in which each task is as likely at each place, but always comes after the same other."""
    while True:
        yield np.roll(np.arange(tasks.num_tasks), int(rng.integers(tasks.num_tasks)))


laws = fg.orderings.laws


@pytest.mark.parametrize(
    ("ordering", "message"),
    [
        (lying(laws.Reshuffled()), "does not visit every task once"),
        (lying(laws.Reshuffled(), almost_shuffled), "visits task . .* times in 400"),
        (lying(laws.Reshuffled(), rotated), "its law gives it a probability of"),
        (lying(laws.Independent([1, 2, 3, 4, 5, 6, 7])), "its law gives it a probability of"),
        (lying(laws.Independent(), sticky), "its law gives it a probability of"),
        (lying(laws.Cycle()), "differs from seed to seed"),
        (lying(laws.Cycle(), lambda self, tasks, rng: iter([6, 5, 4, 3, 2, 1, 0] * 50)), "is not cyclic"),
        (lying(laws.Fixed([0, 1, 2]), lambda self, tasks, rng: iter([0, 2, 1])), "other tasks than the sequence"),
    ],
    ids=["iid", "rotations", "all rotations", "weights", "sticky", "random", "reversed", "sequence"],
)
def test_an_ordering_that_does_not_keep_to_its_law_is_caught(ordering, message):
    with pytest.raises(AssertionError, match=message):
        check_ordering(ordering)


class SaysItProjects(fg.schemes.Scheme):
    """Goes past the projection, and states otherwise."""

    projects = True

    def learn(self, problem, task, w, memory):
        return fg.schemes.Learned(1.5 * problem.project(task, w) - 0.5 * w)


class SaysItSolves(fg.schemes.Scheme):
    solves_task = True

    def learn(self, problem, task, w, memory):
        return fg.schemes.Learned((w + problem.project(task, w)) / 2)


class SaysItIsLinear(SaysItSolves):
    solves_task = False

    def linear_on(self, problem):
        return fg.schemes.SGD(0.4)


class SaysItRemembersNothing(fg.schemes.RecursiveLeastSquares):
    remembers = False


class Mutates(fg.schemes.Scheme):
    def learn(self, problem, task, w, memory):
        w += problem.project(task, w) - w
        return fg.schemes.Learned(w)


class Wanders(fg.schemes.Scheme):
    def learn(self, problem, task, w, memory):
        return fg.schemes.Learned(problem.project(task, w) + 1e-3)


class Lazy(fg.schemes.Scheme):
    def learn(self, problem, task, w, memory):
        return fg.schemes.Learned((w + problem.project(task, w)) / 2)


class Diverges(fg.schemes.LinearScheme):
    def gains(self, sigma):
        return np.full_like(sigma, 3.0)


@pytest.mark.parametrize(
    ("scheme", "options", "message"),
    [
        (Wanders(), {}, "left w_0"),
        (Lazy(), {"solves": True}, "of the loss"),
        (Diverges(), {}, "moved away"),
        (Mutates(), {}, "wrote into w"),
        (SaysItProjects(), {}, "of the loss of the task it learned"),
        (SaysItSolves(), {}, "of the loss of the task it learned"),
        (SaysItRemembersNothing(), {}, "where it goes on from an iterate: it has to state `remembers`"),
        (SaysItIsLinear(), {}, "against what it states by `linear_on`"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_wrong_scheme_is_caught(scheme, options, message):
    with pytest.raises(AssertionError, match=message):
        check_scheme(scheme, **options)


def test_a_lazy_scheme_is_fine_unless_it_claims_to_solve():
    check_scheme(Lazy())


# ------------------------------------------------------------------------- what is known by more than what it does


@pytest.mark.parametrize("known", [WithReplacement, WithoutReplacement, Reshuffled, Cyclic])
def test_an_ordering_that_exact_engines_know_cannot_be_made_to_visit_differently(known):
    def visits(self, tasks, rng):
        yield from iter(lambda: 0, 1)

    with pytest.raises(InvalidInputError, match=f"Sticky visits tasks differently than {known.__name__}: derive from"):
        type("Sticky", (known,), {"visits": visits})
    mine = type("Mine", (fg.orderings.Ordering,), {"visits": visits})
    type("MineToo", (mine,), {"visits": visits})  # a user's own may be changed again


def test_a_linear_scheme_is_its_gains():
    with pytest.raises(InvalidInputError, match="Half learns differently than by its gains: derive from Scheme"):
        type("Half", (fg.schemes.Kaczmarz,), {"learn": lambda self, problem, task, w, memory: w})
