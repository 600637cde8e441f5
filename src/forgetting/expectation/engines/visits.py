"""Means over visits in the affine recursion: sum_t sum_m p_m <f_m, L^(k-t) P_m L^(t-1) x_0> in closed form.

L is one step on x = (W, mu, K) and P_m that of task m. In eigenvectors of Q and M the powers of L are divided
differences over an eigenvalue of Q and a node (an eigenvalue of M, or 1), so that sums over t are divided differences
over three of these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetting._arrays import Array
from forgetting._progress import track
from forgetting.expectation.engines.affine import Functional
from forgetting.expectation.engines.divided import differences, second_differences
from forgetting.expectation.engines.krylov import pack, unpack
from forgetting.expectation.engines.modes import Estimate, Modes
from forgetting.expectation.engines.pairs import EPS

__all__ = ["OverVisits"]

PART = 2**19  # numbers held at once in a table of second differences


class OverVisits:
    """sum_t f_tau(t) at w_k, expected, with one functional f_m for each distinct task.

    Cost: order^2 (D + 1) second differences at each k, with order = D (D + 1) / 2.
    """

    def __init__(self, modes: Modes, forms: Sequence[Functional]) -> None:
        affine, basis = modes.affine, modes.basis
        assert basis is not None
        self.modes, p = modes, affine.moments.probability[0]
        size, order, first = affine.size, len(basis), affine.first
        matrices = np.array([form.matrix for form in forms]) @ basis.T  # tasks x order
        pulled = affine.adjoint(unpack(basis, size))  # order x D x q: what mu adds to each mode in a step
        reached = np.einsum("ihq,jq->ihj", pulled, first)  # with the start of node j
        self.floor = float(sum(p[m] * forms[m].floor for m in affine.drawn))
        self.crossed, self.crossed_size = np.zeros((order, order)), np.zeros((order, order))  # W to W
        self.lifted, self.lifted_size = np.zeros((order, size + 1)), np.zeros((order, size + 1))  # nodes to W
        self.straight, self.straight_size = np.zeros((size, size + 1)), np.zeros((size, size + 1))  # nodes to mu
        self.bent, self.bent_size = (
            np.zeros((order, size, size + 1)),
            np.zeros((order, size, size + 1)),
        )  # and then to W
        self.constant = np.zeros(order)  # K to K, and then to W
        for m in track(affine.drawn, "forgetting"):
            step, push, mine = affine.steps[m], affine.pushes[m], p[m] * matrices[m]
            moved = [pack(affine.moments.step(m, unpack(basis[i : i + 256], size))) for i in range(0, order, 256)]
            cross = mine[:, None] * (basis @ np.concatenate(moved).T) if moved else np.zeros((0, 0))
            pushed = step.T[:, :, None] * (first @ push.T)[:, None, :]
            pushed = np.concatenate([pushed + np.swapaxes(pushed, 1, 2), (push @ affine.constants @ push.T)[None]])
            lift = mine[:, None] * (basis @ pack(pushed).T)
            after = push @ affine.constants  # mu that a constant becomes
            ahead = p[m] * np.column_stack(
                [step * (forms[m].linear @ first.T), np.sum(forms[m].linear * after, axis=1)]
            )
            bend = np.concatenate([step * reached, np.einsum("ihq,hq->ih", pulled, after)[:, :, None]], axis=2)
            bend *= mine[:, None, None]
            self.crossed += cross
            self.crossed_size += np.abs(cross)
            self.lifted += lift
            self.lifted_size += np.abs(lift)
            self.straight += ahead
            self.straight_size += np.abs(ahead)
            self.bent += bend
            self.bent_size += np.abs(bend)
            self.constant += mine * modes.coupling[:, -1]
        self.scale = float(sum(p[m] * np.linalg.norm(forms[m].matrix) for m in affine.drawn))

    def at(self, k: int) -> Estimate:
        """The sum over the k visits, and an estimate of its error."""
        modes, one = self.modes, np.ones(1)
        values, nodes, off, loose = modes.values, modes.nodes, modes.off, modes.loose
        start, coupling = modes.start, modes.coupling
        value, spread, raised = k * self.floor, k * abs(self.floor), k * abs(self.floor)

        def add(coefs: Array, sizes: Array, x: Array, y: Array, dx: float, dy: Array) -> None:
            """Terms over two points."""
            nonlocal value, spread, raised
            value += float(np.vdot(coefs, differences(x[:, None], y, k)))
            spread += float(np.vdot(sizes, differences(np.abs(x)[:, None], np.abs(y), k)))
            raised += float(np.vdot(sizes, differences(np.abs(x)[:, None] + dx, np.abs(y) + dy, k)))

        def add_three(coefs: Array, sizes: Array, x: Array, y: Array, z: Array, dy: Array, dz: Array) -> None:
            """Terms over three points, the first an eigenvalue of Q."""
            nonlocal value, spread, raised
            points = x[:, None, None], y[:, None], z
            table = second_differences(*points, k)
            value += float(np.vdot(coefs, table))
            plain = all(np.all(part >= 0) for part in points)
            sure = table if plain else second_differences(np.abs(points[0]), np.abs(points[1]), np.abs(points[2]), k)
            spread += float(np.vdot(sizes, sure))
            larger = np.abs(points[0]) + off, np.abs(points[1]) + dy[:, None], np.abs(points[2]) + dz
            raised += float(np.vdot(sizes, second_differences(*larger, k)))

        with np.errstate(over="ignore", invalid="ignore"):
            vague = np.full(len(values), off)
            add(self.crossed * start, self.crossed_size * np.abs(start), values, values, off, vague)
            add(self.lifted, self.lifted_size, values, nodes, off, loose)
            add(self.straight, self.straight_size, nodes[:-1], nodes, off, loose)
            chunk = max(1, PART // max(1, len(values) * len(nodes)))
            for i in range(0, len(values), chunk):
                rows = slice(i, i + chunk)
                coefs = self.crossed[rows][:, :, None] * coupling
                sizes = self.crossed_size[rows][:, :, None] * np.abs(coupling)
                add_three(coefs, sizes, values[rows], values, nodes, vague, loose)
                add_three(self.bent[rows], self.bent_size[rows], values[rows], nodes[:-1], nodes, loose[:-1], loose)
                mine = self.constant[rows][:, None, None]
                add_three(mine, np.abs(mine), values[rows], one, one, np.zeros(1), np.zeros(1))
            doubt = (raised - spread) + 8 * EPS * spread + 16 * EPS * self.scale * modes.room(k, summed=True)
        return Estimate(value, doubt)
