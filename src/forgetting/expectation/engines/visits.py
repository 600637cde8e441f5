"""Means over visits in the affine recursion: sum_t sum_m p_m <f_m, L^(k-t) P_m L^(t-1) x_0> in closed form.

L is one step on x = (W, mu, K) and P_m that of task m. In eigenvectors of Q and M the powers of L are divided
differences over an eigenvalue of Q and a node (an eigenvalue of M, or 1), so that sums over t are divided differences
over three of these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.progress import track
from forgetting.expectation.engines.affine import Functional
from forgetting.expectation.engines.divided import differences, second_differences
from forgetting.expectation.engines.krylov import stepped, unpack
from forgetting.expectation.engines.modes import Estimate, Modes
from forgetting.expectation.engines.pairs import EPS

__all__ = ["OverVisits"]

PART = 2**18  # numbers held at once in a table of second differences
FAR = 0.03  # the relative distance of two points from which dividing by it costs no digits of note


class OverVisits:
    """sum_t f_tau(t) at w_k, expected, with one functional f_m for each distinct task.

    Cost: at most order^2 (D + 1) second differences at each k, with order = D (D + 1) / 2; a twentieth of that where
    most eigenvalues of Q and M are far apart.
    """

    def __init__(self, modes: Modes, forms: Sequence[Functional]) -> None:
        affine, basis = modes.affine, modes.basis
        assert basis is not None
        self.modes, p = modes, affine.moments.probability[0]
        device, take = affine.moments.device, affine.moments.device.take
        size, order, first = affine.size, basis.shape[0], affine.first
        matrices = take(device.xp.stack([form.matrix for form in forms]) @ basis.T)  # tasks x order
        pulled = take(affine.adjoint(unpack(basis, size, device)))  # order x D x q: what mu adds to each mode in a step
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
            cross = mine[:, None] * take(basis @ stepped(affine.moments, m, basis).T)
            pushed = step.T[:, :, None] * (first @ push.T)[:, None, :]
            pushed = np.concatenate([pushed + np.swapaxes(pushed, 1, 2), (push @ affine.constants @ push.T)[None]])
            lift = mine[:, None] * take(basis @ affine.packed(pushed).T)
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
        self.scale = float(sum(p[m] * forms[m].size for m in affine.drawn))

        # a node far from an eigenvalue of Q takes a difference of divided differences over two points
        values, nodes, coupling = modes.values, modes.nodes, modes.coupling
        gaps = values[:, None] - nodes
        far = np.abs(gaps) > FAR * np.maximum(np.abs(values)[:, None], np.abs(nodes))
        apart = np.where(far, coupling, 0.0) / np.where(far, gaps, 1.0)
        start = modes.start + apart.sum(axis=1)
        start_size = np.abs(modes.start) + np.abs(apart).sum(axis=1)
        self.plain, self.plain_size = self.crossed * start, self.crossed_size * start_size
        self.lifted -= self.crossed @ apart
        self.lifted_size += self.crossed_size @ np.abs(apart)
        self.near = np.nonzero(~far)  # (eigenvalues of Q, nodes)

    def at(self, k: int) -> Estimate:
        """The sum over the k visits, and an estimate of its error."""
        modes = self.modes
        values, nodes, off, loose = modes.values, modes.nodes, modes.off, modes.loose
        at, with_node = self.near
        coupling = modes.coupling[self.near]
        value, spread, raised = k * self.floor, k * abs(self.floor), k * abs(self.floor)

        def add(coefs: Array, sizes: Array, x: Array, y: Array, dy: Array | float) -> None:
            """Terms over two points."""
            nonlocal value, spread, raised
            value += float(np.vdot(coefs, differences(x[:, None], y, k)))
            spread += float(np.vdot(sizes, differences(np.abs(x)[:, None], np.abs(y), k)))
            raised += float(np.vdot(sizes, differences(np.abs(x)[:, None] + off, np.abs(y) + dy, k)))

        def add_three(
            coefs: Array, sizes: Array, points: tuple[Array, Array, Array], dy: Array | float, dz: Array | float
        ) -> None:
            """Terms over three points, the first an eigenvalue of Q."""
            nonlocal value, spread, raised
            table = second_differences(*points, k)
            value += float(np.sum(coefs * table))
            x, y, z = (np.abs(part) for part in points)
            positive = all(np.all(part >= 0) for part in points)
            spread += float(np.sum(sizes * (table if positive else second_differences(x, y, z, k))))
            raised += float(np.sum(sizes * second_differences(x + off, y + dy, z + dz, k)))

        with np.errstate(over="ignore", invalid="ignore"):
            add(self.plain, self.plain_size, values, values, off)
            add(self.lifted, self.lifted_size, values, nodes, loose)
            add(self.straight, self.straight_size, nodes[:-1], nodes, loose)
            chunk = max(1, PART // max(1, len(at), modes.affine.size**2))
            for i in range(0, len(values), chunk):
                rows = slice(i, i + chunk)
                x = values[rows][:, None]
                points = x, values[at], nodes[with_node]
                coefs, sizes = self.crossed[rows][:, at] * coupling, self.crossed_size[rows][:, at] * np.abs(coupling)
                add_three(coefs, sizes, points, off, loose[with_node])
                bends = x[:, :, None], nodes[:-1, None], nodes
                add_three(self.bent[rows], self.bent_size[rows], bends, loose[:-1, None], loose)
                mine = self.constant[rows][:, None]
                add_three(mine, np.abs(mine), (x, np.ones(1), np.ones(1)), 0.0, 0.0)
            doubt = (raised - spread) + 8 * EPS * spread + 16 * EPS * self.scale * modes.room(k, summed=True)
        return Estimate(value, doubt)
