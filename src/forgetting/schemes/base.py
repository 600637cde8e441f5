"""The base class of schemes, the properties that a scheme states about itself, and the registry of schemes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_kind
from forgetting.core.registry import Registry, class_decorator, from_settings, made_from, saved_settings
from forgetting.files.records import Codec, add_codec
from forgetting.tasks.problem import Problem

if TYPE_CHECKING:
    from forgetting.schemes.linear import LinearScheme

__all__ = [
    "Learned",
    "LinearStep",
    "LinearSteps",
    "SGDStep",
    "Scheme",
    "SchemeLike",
    "as_scheme",
    "register",
    "registry",
]

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


class SGDStep(NamedTuple):
    """A scheme written as SGD: its fixed step size and the smoothness of the losses.

    >>> SGDStep(step_size=1.0, smoothness=1.0).step_size
    1.0
    """

    step_size: float
    smoothness: float


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

    def settings(self) -> dict[str, Any]:
        """The arguments with which the class makes the same scheme again; None is left out."""
        known = fields(self) if is_dataclass(self) else ()
        values = {field.name: getattr(self, field.name) for field in known}
        return {name: value for name, value in values.items() if value is not None}

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> Any:
        """The memory at step 0."""
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
