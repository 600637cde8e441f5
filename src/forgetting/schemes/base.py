"""The base class of schemes, the properties that a scheme states about itself, and the registry of schemes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_kind
from forgetting.core.registry import Registry, class_decorator, from_settings, made_from, saved_settings
from forgetting.files.records import Codec, add_codec
from forgetting.geometry import Recorded
from forgetting.tasks.problem import Problem

if TYPE_CHECKING:
    from forgetting.geometry import Geometry
    from forgetting.schemes.affine import AffineStep
    from forgetting.schemes.linear import LinearScheme
    from forgetting.tasks.turned import TurnedTasks

__all__ = [
    "LearnInTurn",
    "Learned",
    "LinearStep",
    "LinearSteps",
    "OtherCoordinates",
    "SGDStep",
    "Scheme",
    "SchemeLike",
    "as_scheme",
    "register",
    "registry",
]

MemoryLaw = Literal["nothing", "set", "multiset", "order", "iterate", "random", "unknown"]

registry: Registry[type] = Registry("scheme")
register: Callable[[type], type] = class_decorator(registry, lambda: Scheme)


class Learned(NamedTuple):
    """The result of learning a task: the new iterate, the number of inner steps, and a complaint without convergence.

    `before` and `after` are the losses of the task before and after, if the scheme knows them; else the loop computes
    them.

    >>> Learned(np.zeros(2)).inner_steps
    1
    """

    w: Array
    inner_steps: int = 1
    complaint: str | None = None
    before: float | None = None
    after: float | None = None


#: (order, w, recorded, inner_steps) -> the number of steps made; see `Scheme.learn_in_turn`
LearnInTurn = Callable[[IntArray, Array, Recorded, IntArray], int]


class SGDStep(NamedTuple):
    """A scheme written as SGD: its fixed step size and the smoothness of the losses.

    >>> SGDStep(step_size=1.0, smoothness=1.0).step_size
    1.0
    """

    step_size: float
    smoothness: float


class OtherCoordinates(NamedTuple):
    """The same losses in other coordinates, in which a scheme is linear.

    Attributes:
        problem: the tasks in these coordinates; orders and predictions are as for the tasks that were given.
        scheme: the linear scheme that makes the same steps there.
        w0: the start there.

    >>> import forgetting as fg
    >>> scheme = fg.schemes.GeneralizedRidge([1.0, 4.0])
    >>> there = scheme.in_coordinates(fg.RegressionTasks([[[1.0, 1.0]]], [[1.0]]), np.zeros(2))
    >>> there.scheme, there.problem.task(0)[0].tolist()
    (Ridge(lam=1.0), [[1.0, 0.5]])
    """

    problem: TurnedTasks
    scheme: LinearScheme
    w0: Array


class LinearStep(NamedTuple):
    """One step of a scheme: w <- keep w, and then the step of a linear scheme.

    >>> import forgetting as fg
    >>> LinearStep(fg.schemes.Kaczmarz())
    LinearStep(scheme=Kaczmarz(), keep=1.0)
    """

    scheme: LinearScheme
    keep: float = 1.0


@dataclass(frozen=True)
class LinearSteps:
    """The steps of a scheme, each of which is linear.

    Attributes:
        at: gives the `LinearStep` of step t = 1, 2, ...
        alike: whether all steps are the same and keep all of w.

    >>> import forgetting as fg
    >>> steps = fg.schemes.Kaczmarz().linear_steps_on(fg.families.two_lines(0.5))
    >>> steps.alike, steps.at(7)
    (True, LinearStep(scheme=Kaczmarz(), keep=1.0))
    """

    at: Callable[[int], LinearStep]
    alike: bool = False

    @classmethod
    def of(cls, scheme: LinearScheme) -> LinearSteps:
        """Steps that all are those of one linear scheme."""
        step = LinearStep(scheme)
        return cls(lambda t: step, alike=True)


@dataclass(frozen=True)
class Scheme(ABC):
    """Base class of schemes: implement `learn`, and `start` if the scheme keeps a memory from task to task.

    The frozen object holds the settings; the memory holds what changes during a run. The class states its properties:
    `projects`, `solves_task`, `nonexpansive`, `random`, `remembers`, `linear_on`, `as_sgd`. Engines and bounds
    read these properties and never ask for the class. `@fg.schemes.register` makes a scheme known to the command line.

    A scheme with a `start` of its own counts as random, since `start` gets the generator: it is simulated, also in a
    fixed order. Set `random = False` if it draws nothing, and `remembers = False` if its memory only saves work.

    >>> import forgetting as fg
    >>> class Halfway(Scheme):
    ...     def learn(self, problem, task, w, memory):
    ...         return Learned((w + problem.project(task, w)) / 2)
    >>> fg.run(fg.families.orthogonal(2), fg.orderings.Cyclic(), k=4, scheme=Halfway()).iterates[-1].round(4)
    array([0.5303, 0.5303])
    >>> class Slowing(Scheme):  # its step size is 1/k
    ...     random = False
    ...     def start(self, problem, w0, rng):
    ...         return [0]
    ...     def learn(self, problem, task, w, memory):
    ...         memory[0] += 1
    ...         return Learned(w + (problem.project(task, w) - w) / memory[0])
    >>> e = fg.expect(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=4, scheme=Slowing())
    >>> e.method, Slowing().remembers
    ('deterministic', True)
    """

    #: True for schemes of regression that commute with rotations and never leave w_0 + row space: `learn` then gets a
    #: `Geometry` as its problem and the error z (D numbers) as w, for any d, from data or from a kernel.
    intrinsic: ClassVar[bool] = False
    #: whether an intrinsic scheme learns all outputs at once: `learn` then gets w of shape (c, D) where there are c
    all_outputs: ClassVar[bool] = False
    #: whether the scheme needs tasks that have a common solution
    needs_realizable: ClassVar[bool] = False
    #: whether a step depends on the single rows of a task, and not only on its loss
    reads_rows: ClassVar[bool] = False
    #: why bounds for the limit of the scheme do not cover the scheme itself; empty if the scheme is its own limit
    short_of_its_limit: ClassVar[str] = ""

    @property
    def random(self) -> bool:
        """Whether learning draws random numbers; by default, whether the class overrides `start`, which gets the
        generator."""
        return type(self).start is not Scheme.start

    @property
    def remembers(self) -> bool:
        """Whether a step depends on earlier tasks by more than the iterate, so that a run cannot go on from its last
        iterate alone; by default, whether the class overrides `start`."""
        return type(self).start is not Scheme.start

    @property
    def depends_on_k(self) -> bool:
        """Whether a step depends on the number of steps of the call (see `fitted_to`)."""
        return False

    @property
    def memory_law(self) -> MemoryLaw:
        """What the memory of the scheme is a function of, beside the tasks themselves.

        "nothing": there is no memory that a step depends on. "set": the set of the tasks seen. "multiset": how often
        each task was seen. "order": the order of the tasks seen. "iterate": the iterates, too. "random": random
        numbers, too. Exact engines follow "set", "multiset" and "order", through `remember` and `affine_step`. A class
        that states nothing has "nothing" where it has no memory, and else "unknown".

        >>> import forgetting as fg
        >>> [scheme.memory_law for scheme in (fg.schemes.Kaczmarz(), fg.schemes.EWC(), fg.schemes.EWC(gamma=0.5))]
        ['nothing', 'multiset', 'order']
        """
        return "unknown" if self.remembers or self.random else "nothing"

    def remember(self, geometry: Geometry, seen: Hashable, task: int) -> Hashable:
        """What is remembered once the task was learned, from what was remembered before; () at step 0.

        Equal values stand for equal memories: exact engines take runs together whose memories are equal.
        """
        return seen

    def affine_step(self, geometry: Geometry, task: int, seen: Hashable) -> AffineStep | None:
        """The step on a task in the coordinates of a geometry, where `seen` is remembered; None if it is not affine."""
        return None

    @property
    def projects(self) -> bool:
        """Whether learning a task moves the iterate to the nearest solution of the task."""
        return False

    @property
    def solves_task(self) -> bool:
        """Whether the loss of a task is minimal right after the task was learned."""
        return self.projects

    @property
    def nonexpansive(self) -> bool:
        """Whether no step moves the iterate away from a common solution, for any tasks."""
        return self.projects

    @property
    def scale_of_iterates(self) -> float:
        """The number by which iterates are divided before losses and distances are computed.

        It differs from 1 for schemes whose iterates grow without bound.
        """
        return 1.0

    def linear_on(self, problem: Problem) -> LinearScheme | None:
        """The linear scheme that makes the same steps on this problem; None if no linear scheme does."""
        return None

    def in_coordinates(self, problem: Problem, w0: Array) -> OtherCoordinates | None:
        """Other coordinates in which the scheme is linear, for exact expectations of losses; None if none are known.

        A scheme that is linear as it is (`linear_on`) needs none.
        """
        return None

    def linear_steps_on(self, problem: Problem) -> LinearSteps | None:
        """The steps of the scheme on this problem, if each is linear; None if some step is not.

        By default all steps are those of `linear_on`.
        """
        linear = self.linear_on(problem)
        return None if linear is None else LinearSteps.of(linear)

    def fitted_to(self, problem: Problem, k: int) -> Scheme:
        """The scheme for k steps on this problem: all settings that depend on either of them have values.

        `run`, `expect` and bounds ask for it once, before the first step.
        """
        return self

    def at_step(self, t: int) -> Scheme:
        """The scheme that makes step t = 1, 2, ..., whose steps are all alike."""
        return self

    def kept_at(self, t: int) -> float:
        """The factor that step t leaves of the part of w that no task sees; 1 unless the scheme decays."""
        return 1.0

    def left_after(self, steps: IntArray) -> Array | None:
        """The factor that so many steps leave of the part of w_0 that no task sees; None if the scheme cannot decay."""
        if type(self).kept_at is Scheme.kept_at:
            return None
        factors = [self.kept_at(t) for t in range(1, int(np.max(steps, initial=0)) + 1)]
        return np.asarray(np.cumprod([1.0, *factors])[steps])

    def as_sgd(self, radius: float) -> SGDStep | None:
        """The scheme as SGD, for tasks of spectral norm at most `radius`; None if the scheme is not SGD.

        >>> import forgetting as fg
        >>> fg.schemes.Kaczmarz().as_sgd(radius=3.0), fg.schemes.Ridge(1.0).as_sgd(radius=3.0)
        (SGDStep(step_size=1.0, smoothness=1.0), None)
        """
        return SGDStep(1.0, 1.0) if self.projects else None

    @property
    def known_as(self) -> str:
        """The name under which bounds cover the scheme, beside those of its other traits; empty for most schemes."""
        return ""

    @property
    def penalty(self) -> float | None:
        """lam of ridge to the previous solution, where it is the same at every step; None for all other schemes."""
        return None

    def settings(self) -> dict[str, Any]:
        """The arguments with which the class makes the same scheme again; None is left out."""
        known = fields(self) if is_dataclass(self) else ()
        values = {field.name: getattr(self, field.name) for field in known}
        return {name: value for name, value in values.items() if value is not None}

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> Any:
        """The memory at step 0."""
        return None

    def learn_in_turn(self, problem: Problem, memory: Any) -> LearnInTurn | None:
        """A function that makes many steps by one call, with the results of `learn`; None if there is none.

        It learns the tasks of `order` in turn, changes w in place, and fills arrays with states, losses before and
        after, and inner steps. It may end early, and returns the number of steps that it made; `learn` then makes the
        next one.
        """
        return None

    @abstractmethod
    def learn(self, problem: Problem, task: int, w: Array, memory: Any) -> Learned:
        """Learn a task, starting from w; w must not be changed in place."""


add_codec(Codec("scheme", Scheme, partial(saved_settings, registry), partial(from_settings, registry)))


SchemeLike = Scheme | str


def as_scheme(value: SchemeLike) -> Scheme:
    """The scheme that a caller means: a scheme, or its name and parameters as typed in a shell.

    >>> as_scheme("ridge lam=0.1"), as_scheme("sgd")
    (Ridge(lam=0.1), SGD(step_size=1.0, objective='modified'))
    """
    if isinstance(value, str):
        named: Scheme = made_from(registry, value)
        return named
    return as_kind(value, Scheme, "a scheme such as fg.schemes.Kaczmarz() or 'ridge lam=0.1'", "scheme: ")
