"""Many runs at once on a device, in float64, written to the array API; on the CPU compiled loops make them.

The state of all runs is one array (runs, D). In a step each run gathers the rows of its task from a table in which all
tasks have as many rows, so that tasks of smaller rank have rows of zeros. Nothing is read back before the last step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.compute.devices import Device
from forgetting.core.arrays import Array, IntArray
from forgetting.geometry import Geometry
from forgetting.schemes import LinearScheme
from forgetting.schemes.linear import linear_gains

BLOCK = 64  # steps whose losses before and after are computed together
SHARE = 0.25  # of the free memory of the device, for the runs that are made at once


@dataclass(frozen=True, eq=False)
class DeviceRuns:
    """Runs of a linear scheme on tasks with one output, from one start, on a device.

    Attributes:
        rank: the largest rank of a task.
        table: (tasks, rank * D), the rows of each task.
        gains, targets, sigma: (tasks, rank); gains are None where all are 1, targets None where all are 0.
        start: z_0.
        index: for each task, the number of its distinct task; None where all are distinct.
    """

    device: Device
    geometry: Geometry
    rank: int
    table: Any
    gains: Any
    targets: Any
    sigma: Any
    start: Any
    index: Any

    @classmethod
    def made(cls, device: Device, geometry: Geometry, scheme: LinearScheme, w0: Array) -> DeviceRuns:
        """The runs of a scheme on these tasks, with their arrays moved to the device."""
        ranks, rank = geometry.ranks, max(1, int(np.max(geometry.ranks, initial=0)))
        there = np.arange(rank) < ranks[:, None]  # which rows of the table stand for a direction
        gains = linear_gains(geometry, scheme)

        def padded(numbers: Array) -> Array:
            table = np.zeros((len(ranks), rank, *numbers.shape[1:]))
            table[there] = numbers
            return table

        distinct = np.array_equal(geometry.index, np.arange(geometry.num_tasks))
        return cls(
            device,
            geometry,
            rank,
            device.put(padded(geometry.rows).reshape(len(ranks), -1)),
            None if np.all(gains == 1) else device.put(padded(gains)),
            device.put(padded(geometry.targets)) if geometry.targets.any() else None,
            device.put(padded(geometry.sigma)),
            device.put(geometry.start(w0)),
            None if distinct else device.put_index(geometry.index),
        )

    def losses(self, orders: IntArray, keep: IntArray) -> tuple[Array, Array, Array]:
        """Mean losses at the steps `keep`, and at every step the loss of the task learned, before and after.

        All losses are without the part that no w can fit. Cost of a step: some ten passes over runs * rank * D numbers.
        """
        form, shift, constant = self.geometry.loss_form
        matrix, shifts = self.device.put(form.T), self.device.put(shift)
        parts = [self._losses(part, keep, matrix, shifts, constant) for part in self._parts(orders)]
        if len(parts) == 1:
            return parts[0]
        losses, before, after = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return losses, before, after

    def forgetting(self, orders: IntArray, keep: IntArray) -> Array:
        """Forgetting at the steps `keep`, all at least 1; (runs, len(keep))."""
        return np.concatenate([self._forgetting(part, keep) for part in self._parts(orders)])

    # ------------------------------------------------------------------------------------------------------ all at once

    def _parts(self, orders: IntArray) -> Iterator[Any]:
        """The orders of distinct tasks on the device, in parts with as many runs as fit in its memory."""
        dim, tasks, k = self.geometry.dim, self.table.shape[0], orders.shape[1]
        each = 8.0 * (dim * (4 + 3 * self.rank) + 2 * tasks * self.rank + k * (4 + 2 * self.rank))
        count = max(1, int(SHARE * self.device.memory / each))
        for first in range(0, len(orders), count):
            part = self.device.put_index(orders[first : first + count])
            if self.index is not None:
                flat = self.device.xp.reshape(part, (-1,))
                part = self.device.xp.reshape(self.device.xp.take(self.index, flat, axis=0), part.shape)
            yield part

    def _start(self, runs: int) -> Any:
        return self.device.zeros(runs, self.geometry.dim) + self.start[None, :]

    def _step(self, z: Any, tasks: Any) -> Any:
        """Learn one task in each run, changing z in place; the errors in the directions of the task before it."""
        xp, runs, dim = self.device.xp, z.shape[0], z.shape[1]
        rows = xp.take(self.table, tasks, axis=0)
        if self.rank == 1:  # passes over the numbers are faster than a product for each run
            errors = xp.sum(rows * z, axis=1)[:, None]
        else:
            rows = xp.reshape(rows, (runs, self.rank, dim))
            errors = (rows @ z[:, :, None])[:, :, 0]
        if self.targets is not None:
            errors = errors - xp.take(self.targets, tasks, axis=0)
        moves = errors if self.gains is None else errors * xp.take(self.gains, tasks, axis=0)
        if self.rank == 1:
            rows *= moves
            z -= rows
        else:
            z -= (moves[:, None, :] @ rows)[:, 0, :]
        return errors

    def _losses(
        self, orders: Any, keep: IntArray, form: Any, shift: Any, constant: float
    ) -> tuple[Array, Array, Array]:
        xp, device, (runs, k) = self.device.xp, self.device, orders.shape
        z, wanted = self._start(runs), set(keep.tolist())
        kept, before, after, errors = [], [], [], []
        for t in range(k + 1):
            if t > 0:
                errors.append(self._step(z, orders[:, t - 1]))
            if t in wanted:
                missed = z @ form - shift
                missed *= missed
                kept.append(xp.sum(missed, axis=1))
            if errors and (len(errors) == BLOCK or t == k):
                tasks = xp.reshape(xp.permute_dims(orders[:, t - len(errors) : t], (1, 0)), (-1,))
                parts = self._weighed(xp.reshape(xp.stack(errors), (-1, self.rank)), tasks)
                steps = [xp.permute_dims(xp.reshape(part, (len(errors), runs)), (1, 0)) for part in parts]
                before.append(steps[0])
                after += steps[1:]
                errors = []
        losses = device.take(xp.stack(kept, axis=1)) + constant if kept else np.empty((runs, 0))
        lost = device.take(xp.concat(before, axis=1)) if before else np.empty((runs, 0))
        return losses, lost, device.take(xp.concat(after, axis=1)) if after else np.zeros((runs, k))

    def _weighed(self, errors: Any, tasks: Any) -> list[Any]:
        """The loss of each task at such errors, and where some gain is not 1 the loss after the step."""
        xp = self.device.xp
        scaled = errors * xp.take(self.sigma, tasks, axis=0)
        losses = [0.5 * xp.sum(scaled * scaled, axis=1)]
        if self.gains is not None:
            left = scaled * (1 - xp.take(self.gains, tasks, axis=0))
            losses.append(0.5 * xp.sum(left * left, axis=1))
        return losses

    def _forgetting(self, orders: Any, keep: IntArray) -> Array:
        xp, device, (runs, k) = self.device.xp, self.device, orders.shape
        count, wanted, forgotten = self.table.shape[0], set(keep.tolist()), []
        z, visits, learned = self._start(runs), device.zeros(runs, count), device.zeros(runs)
        each = device.put_index(np.arange(count))
        rows = xp.reshape(self.table, (count * self.rank, self.geometry.dim))
        for t in range(1, k + 1):
            tasks = orders[:, t - 1]
            errors = self._step(z, tasks)
            if self.gains is not None:
                learned += self._weighed(errors, tasks)[1]
            visits += xp.astype(tasks[:, None] == each[None, :], xp.float64)
            if t in wanted:
                missed = xp.reshape(z @ rows.T, (runs, count, self.rank))
                if self.targets is not None:
                    missed = missed - self.targets[None, :, :]
                missed = missed * self.sigma[None, :, :]
                losses = 0.5 * xp.sum(missed * missed, axis=2)
                forgotten.append((xp.sum(visits * losses, axis=1) - learned) / t)
        return device.take(xp.stack(forgotten, axis=1)) if forgotten else np.empty((runs, 0))
