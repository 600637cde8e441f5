"""The state of a solve in a file, from which a later call goes on: a killed solve ends as an uninterrupted one does.

A checkpoint is written atomically: after a kill there is the old state or the new one. What decides later steps is
saved: x and the other numbers of the method, the visits made, the current round, the estimates. The visits of the
ordering are drawn again. Marks of the system and of the settings say to what the state belongs.
"""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass, fields
from math import inf
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from forgetting.core.arrays import as_path, fingerprint
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.files.arrays import damaged, entry
from forgetting.files.records import checked_fields, read_record, write_record
from forgetting.solver.loop import RULED, Loop, Stops
from forgetting.solver.methods import Accuracy, Method
from forgetting.solver.methods.base import registry
from forgetting.solver.noise_rules import Rule
from forgetting.solver.request import SolveRequest

KIND = "state of a solve"
COSTLY = 20  # times the seconds that a save took pass before the next one
COUNTS = ("spent", "steps", "rows", "unchecked", "touched")
HISTORY = (("0", "f"), ("1", "f"), ("2", "f"), ("3", "b"))  # the columns and what they hold
LARGEST = 2**53  # of counts
VARIABLE = {"moves", "ratios"}  # arrays of a method that grow


@dataclass
class Checkpoint:
    """The file of a solve.

    Attributes:
        path: the file.
        marks: what a resumed solve must share, by name.
        every: seconds between two saves, at least; more if saving takes more than 1/20 of the time. 0 saves always.
    """

    path: Path
    marks: dict[str, str]
    every: float
    switched: bool = False  # whether the method of the loop is the one that goes on after a stall
    due: float = -inf

    def save(self, loop: Loop, *, always: bool = False) -> None:
        """Save the state of a loop, unless it was saved a short time ago."""
        started = perf_counter()
        if started < self.due and not always:
            return
        measured = None if loop.measured is None else list(astuple(loop.measured))
        columns = {
            name: np.array(column) for name, column in zip("0123", zip(*loop.entries, strict=True), strict=False)
        }
        state = {
            "marks": self.marks,
            "switched": self.switched,
            "method": loop.method.name,
            "earlier": list(loop.earlier),
            "arrays": loop.method.arrays(),
            "counts": {name: getattr(loop, name) for name in COUNTS},
            "left": loop.left,
            "seen": loop.seen,
            "seconds": loop.seconds,
            "history": columns,
            "estimates": np.array(loop.estimates, dtype=np.float64),
            "measured": measured,
        }
        if loop.rule is not None:
            state["rule"] = {"arrays": loop.rule.arrays(), "share": loop.share, "ended": loop.ruled}
        write_record(self.path, KIND, state)
        now = perf_counter()
        self.due = now + max(self.every, COSTLY * (now - started)) if self.every else now

    def start(self, request: SolveRequest, stops: Stops) -> Loop:
        """The loop where the saved state ends, or at its start if there is no file."""
        if not os.path.exists(self.path):
            loop = request.loop(stops)
            loop.save = self.save
            self.save(loop)  # now, so that a path that cannot be written is no surprise after hours
            return loop
        state: dict[str, Any] = read_record(self.path, KIND, dict)
        self._compare(state.get("marks"))
        self.switched = state.get("switched") is True
        if self.switched and not request.falls_back:
            raise ProblemFileError(f"{self.path}: damaged {KIND} (it went on by another method, which it cannot)")
        method = self._following(state, request) if self.switched else request.method()
        ordering = method.usual_order() if self.switched else request.ordering
        rule = None if request.stopping is None else request.stopping.of(method, method.x)
        with damaged(self.path, KIND):
            fields = _restored(state, method)
            earlier = tuple(
                registry.get(name).name for name in state.get("earlier", [request.first.name] * self.switched)
            )
            if rule is not None:
                fields |= _restored_rule(state["rule"], rule)
        may_stall = request.may_switch and not (self.switched and method.least_squares)
        seed = request.seed + self.switched
        relaxation = None if self.switched else request.relaxation
        if self.switched and not request.relaxation.constant:
            request.system.sweeper.relax(1.0)
        loop = Loop(method, ordering, stops, seed, may_stall, self.switched, relaxation, save=self.save, **fields)
        loop.slow_ends = request.may_hurry and not self.switched
        loop.earlier = earlier
        return loop

    def _following(self, state: dict[str, Any], request: SolveRequest) -> Method:
        """The method that went on when the state was saved."""
        known = {method.name: method for method in request.followers}
        if state.get("method") not in known:
            given = f"{state.get('method')!r:.40} instead of {' or '.join(known)}"
            raise ProblemFileError(f"{self.path}: damaged {KIND} (method {given})")
        return known[state["method"]](request.system, request.system.x0)

    def _compare(self, marks: Any) -> None:
        """Raise if the file belongs to another system or to other settings."""
        if not isinstance(marks, dict):
            marks = {}
        for name in {**self.marks, **marks}:  # the file may have a rule where there is none now
            then, now = marks.get(name), self.marks.get(name)
            if then != now:
                short = isinstance(then, str) and isinstance(now, str) and len(then) + len(now) < 80
                values = f" ({then} in the file, {now} now)" if short else ""
                raise InvalidInputError(
                    f"{self.path} holds the state of another solve: {name} differs{values}; give the same arguments, "
                    "or another checkpoint= to start anew"
                )


def _restored(state: dict[str, Any], method: Method) -> dict[str, Any]:
    """The fields of the loop; the method goes on from its saved numbers. Every value is checked: it decides steps."""
    if state["method"] != method.name:
        raise ForgettingError(f"method {state['method']!r:.40} instead of {method.name!r}")
    _check_arrays(state["arrays"], method.arrays())
    method.restore(state["arrays"])
    columns = [entry(state["history"], name, kind, 1).tolist() for name, kind in HISTORY] if state["history"] else []
    counts = {name: _count(state["counts"], name) for name in COUNTS}
    left = None if state["left"] is None else _count(state, "left")
    length, rounds = method.system.sweeper.num_blocks, len(columns[0] if columns else ()) + 1
    if counts["steps"] > rounds * length or (left or 0) > length:
        raise ForgettingError(f"{counts['steps']} visits and {left} to come in {rounds} rounds of {length} at most")
    before = float(state["seconds"])
    if not 0 <= before < inf:
        raise ForgettingError(f"seconds is {before}")
    return {
        "before": before,
        "entries": list(zip(*columns, strict=True)),
        "estimates": entry(state, "estimates", "f", 1).tolist(),
        "measured": None if state["measured"] is None else _measured(state["measured"], method),
        "left": left,
        "seen": np.zeros(0) if left is None else _like(state["seen"], method.sizes, "squared errors"),
        **counts,
    }


def _restored_rule(values: Any, rule: Rule) -> dict[str, Any]:
    """The fields of the loop that belong to its rule, which goes on from its saved numbers."""
    _check_arrays(values["arrays"], rule.arrays())
    rule.restore(values["arrays"])
    share, ended = float(values["share"]), values["ended"]
    if not 0 < share <= 1 or ended not in ("", *RULED):
        raise ForgettingError(f"share {share} of the relaxation, ending {ended!r:.40}")
    return {"rule": rule, "share": share, "ruled": ended}


def _measured(values: Any, method: Method) -> Accuracy:
    names = [field.name for field in fields(Accuracy)]
    measured = Accuracy(**checked_fields(Accuracy, dict(zip(names, values, strict=True))))
    for part in measured.each or ():
        _like(part, method.sizes, "measures")
    return measured


def _like(given: Any, own: Any, what: str) -> Any:
    """An array, if it has the dtype and the shape of the method's own."""
    if not isinstance(given, np.ndarray) or (given.dtype, given.shape) != (own.dtype, own.shape):
        raise ForgettingError(f"{what} of another number of right-hand sides")
    return given


def as_checkpoint(path: str | PathLike[str], every: float, request: SolveRequest) -> Checkpoint:
    """The checkpoint of a request."""
    if request.ordering.adaptive:
        raise NotSupportedError(
            f"checkpoint= does not go with the ordering {request.ordering.in_words!r}: its visits depend on x, and "
            "cannot be drawn again when a solve is resumed; leave ordering= or checkpoint= out"
        )
    system = request.system
    limits = system.sweeper.limits
    marks = {
        **system.sweeper.marks(),
        "b": fingerprint(system.b).hex(),
        "x0": fingerprint(system.x0).hex(),
        "method": request.name,
        "damp": repr(system.damp),
        "ordering": repr(request.ordering),
        "nearest": repr(system.nearest),
        "relations": fingerprint(limits.relations).hex(),
        "bounds": fingerprint(limits.low, limits.high).hex(),
        "sets": repr(system.sets),
        "seed": repr(system.seed),
    }
    if not request.relaxation.constant:
        marks["relaxation"] = request.relaxation.mark
    if request.stopping is not None:
        marks |= request.stopping.marks
    return Checkpoint(as_path(path, "checkpoint"), marks, every)


def _count(values: Any, name: str) -> int:
    number = values[name]
    if type(number) is not int or not 0 <= number <= LARGEST:
        raise ForgettingError(f"{name} is {number!r:.40}")
    return number


def _check_arrays(arrays: Any, fresh: dict[str, Any]) -> None:
    """Raise unless the arrays have the names, shapes and dtypes that the method's own arrays have at the start."""
    if not isinstance(arrays, dict) or set(arrays) != set(fresh):
        raise ForgettingError("arrays of another method")
    for name, own in fresh.items():
        given = arrays[name]
        fits = isinstance(given, np.ndarray) and given.dtype == own.dtype
        if not fits or (given.ndim != 1 if name in VARIABLE else given.shape != own.shape):
            raise ForgettingError(f"array {name!r} does not fit")
        if own.dtype.kind in "iu" and given.size and not 0 <= given.min() <= given.max() <= LARGEST:
            raise ForgettingError(f"array {name!r} has counts outside of 0 to 2^53")
