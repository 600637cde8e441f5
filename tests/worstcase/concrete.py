"""Concrete tasks, and the numbers that words have for them: what programs and certificates are compared with.

Nothing here uses the words, trees or blocks of the package: words are multiplied out, runs are listed one by one.
"""

from itertools import permutations, product

import numpy as np

import forgetting as fg


def random_projections(T, d, rng, ranks=None):
    """Projections on random subspaces; `ranks` are those of what a task takes away."""
    found = []
    for m in range(T):
        rank = int(rng.integers(0, d + 1)) if ranks is None else ranks[m]
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :rank]
        found.append(np.eye(d) - Q @ Q.T)
    return found


def tasks_of(projections, z):
    """Regression tasks with these projections, |w*| = 1."""
    rows = []
    for P in projections:
        values, vectors = np.linalg.eigh(P)
        X = vectors[:, values < 0.5].T
        rows.append(X if len(X) else np.zeros((1, len(z))))
    return fg.RegressionTasks(rows, [X @ z for X in rows])


def namings(letters, T, alike):
    """All ways to name letters: by different tasks, by independent ones if `alike` is "drawn", or as they are."""
    names = sorted(set(letters))
    if not alike:
        return [{name: name for name in names}]
    ways = product(range(T), repeat=len(names)) if alike == "drawn" else permutations(range(T), len(names))
    return [dict(zip(names, way, strict=True)) for way in ways]


def number(word, operators, z, alike):
    """<z, A_1 ... A_j z> for the operators of a word, averaged over the names of its letters."""
    ways = namings(word, len(operators), alike)
    total = 0.0
    for way in ways:
        vector = z
        for letter in word[::-1]:
            vector = operators[way[letter]] @ vector
        total += z @ vector
    return total / len(ways)


def pair_number(name, projects, start, alike):
    """<x_u, x_v> for points that are projected along the words u and v; their name is (*u, -1, *v)."""
    at = name.index(-1)
    ways = namings([letter for letter in name if letter >= 0], len(projects), alike)
    total = 0.0
    for way in ways:
        ends = []
        for word in (name[:at], name[at + 1 :]):
            point = start
            for letter in word:
                point = projects[way[letter]](point)
            ends.append(point)
        total += ends[0] @ ends[1]
    return total / len(ways)


def runs(law, T, k):
    """All runs of k steps, with their probabilities."""
    if law == "uniform":
        return [(order, T**-k) for order in product(range(T), repeat=k)]
    if law == "shuffles":
        passes = list(permutations(range(T)))
        count = -(-k // T)
        return [(sum(chosen, ())[:k], len(passes) ** -count) for chosen in product(passes, repeat=count)]
    if "order" in law:
        return [(tuple(law["order"][:k]), 1.0)]
    return [(order, float(np.prod([law["weights"][m] for m in order]))) for order in product(range(T), repeat=k)]


def enumerated(projects, start, law, k, quantity):
    """The expected quantity, run by run."""
    T = len(projects)
    total = 0.0
    for order, weight in runs(law, T, k + (quantity == "next_loss")):
        x = start
        for m in order[:k]:
            x = projects[m](x)
        losses = [0.5 * np.sum((x - project(x)) ** 2) for project in projects]
        if quantity == "loss":
            total += weight * np.mean(losses)
        elif quantity == "next_loss":
            total += weight * losses[order[k]]
        else:
            total += weight * np.mean([losses[m] for m in order])
    return total


def moments_of(program, projections, z, drawn=False):
    """The moments of a program for concrete subspaces."""
    alike = program.tree.walk.symmetric and ("drawn" if drawn else "relabelled")
    letters = [2 * P - np.eye(len(z)) for P in projections] if program.algebra.kind == "reflections" else projections
    return np.array([number(name, letters, z, alike) for name in program.names])


def convex_moments_of(program, projects, start, drawn=False):
    """The moments of a program for concrete convex sets that contain the origin."""
    alike = program.tree.walk.symmetric and ("drawn" if drawn else "relabelled")
    return np.array([pair_number(name, projects, start, alike) for name in program.names])


def filled(matrix, moments):
    """A matrix of a program at given moments."""
    found = np.zeros((matrix.size, matrix.size))
    np.add.at(found, (matrix.rows, matrix.cols), matrix.factors * moments[matrix.names])
    return found + np.triu(found, 1).T
