"""The semidefinite programs of worst cases, against concrete tasks, all words written out, and other bases."""

from fractions import Fraction
from itertools import product
from math import factorial

import clarabel
import numpy as np
import pytest
from concrete import convex_moments_of, enumerated, filled, moments_of, random_projections, tasks_of
from scipy import sparse

import forgetting as fg
from effort import rounds
from forgetting.worstcase import inner_products
from forgetting.worstcase.moment_blocks import ReachedErrors
from forgetting.worstcase.program import program
from forgetting.worstcase.representations import partitions, representation
from forgetting.worstcase.tree import TaskWalk, tree

QUANTITIES = ("loss", "forgetting", "next_loss")


def rules(kind, walk):
    return (inner_products.ConvexProjections if kind == "convex" else kind)(walk.num_tasks, walk.symmetric)


def laws(T, k, rng):
    """Each law: as `concrete.runs` calls it, as a walk, as an ordering."""
    parts = [Fraction(int(part)) for part in rng.integers(0, 5, T)]
    parts[0] += 1  # some weights are 0
    weights = tuple(part / sum(parts) for part in parts)
    cycle, given = tuple(step % T for step in range(k + 1)), tuple(rng.integers(0, T, k + 1).tolist())
    shuffled = fg.orderings.WithoutReplacement() if k < T else fg.orderings.Reshuffled()
    return {
        "uniform": ("uniform", TaskWalk(T, "uniform"), fg.orderings.WithReplacement()),
        "weighted": (
            {"weights": weights},
            TaskWalk(T, "weights", weights),
            fg.orderings.WithReplacement([*map(float, weights)]),
        ),
        "shuffles": ("shuffles", TaskWalk(T, "shuffles"), shuffled),
        "cyclic": ({"order": cycle}, TaskWalk(T, "order", cycle), fg.orderings.Cyclic()),
        "given": ({"order": given}, TaskWalk(T, "order", given), fg.orderings.Explicit(given)),
    }


def unit(d, rng):
    z = rng.standard_normal(d)
    return z / np.linalg.norm(z)


@pytest.mark.parametrize("law", ["uniform", "weighted", "shuffles", "cyclic", "given"])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_concrete_subspaces_are_feasible_and_have_their_expected_quantity(law, quantity) -> None:
    rng = np.random.default_rng(0)
    for T, k in product(range(1, 6), range(1, rounds(4, 5))):
        if T**k > (100 if law == "weighted" else 260):
            continue
        runs, walk, ordering = laws(T, k, rng)[law]
        posed = program(tree(walk, k, quantity), rules(inner_products.Projections if law in ("cyclic", "given")
                                                       else inner_products.Reflections, walk))  # fmt: skip
        d = int(rng.integers(1, 5))
        P, z = random_projections(T, d, rng), unit(d, rng)
        moments = moments_of(posed, P, z)
        value = posed.objective @ moments
        exact = fg.expect(tasks_of(P, z), ordering, k, quantities=(quantity,))
        assert value == pytest.approx(enumerated([p.__matmul__ for p in P], z, runs, k, quantity), abs=1e-12)
        assert value == pytest.approx(float(getattr(exact, quantity)), abs=1e-12)
        assert min(np.linalg.eigvalsh(filled(matrix, moments))[0] for matrix in posed.matrices) > -1e-12


@pytest.mark.parametrize("ranks", [(0, 0, 0), (3, 3, 3), (0, 3, 1), (1, 1, 1), (2, 2, 2)])
def test_tasks_of_rank_zero_and_of_full_rank_are_feasible(ranks) -> None:
    rng = np.random.default_rng(1)
    P, z = random_projections(3, 3, rng, ranks), unit(3, rng)
    for quantity, k in product(QUANTITIES, (1, 2, 3)):
        posed = program(tree(TaskWalk(3, "uniform"), k, quantity), inner_products.Reflections(3, True))
        moments = moments_of(posed, P, z)
        expected = enumerated([p.__matmul__ for p in P], z, "uniform", k, quantity)
        assert posed.objective @ moments == pytest.approx(expected, abs=1e-12)
        assert min(np.linalg.eigvalsh(filled(matrix, moments))[0] for matrix in posed.matrices) > -1e-12


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_independent_draws_are_feasible_for_infinitely_many_tasks(quantity, k) -> None:
    """Tasks that are drawn from two subspaces are infinitely many tasks, half of them equal to each."""
    rng = np.random.default_rng(2)
    P, z = random_projections(2, 3, rng, (1, 2)), unit(3, rng)
    posed = program(tree(TaskWalk(None, "uniform"), k, quantity), inner_products.Reflections(None, True))
    moments = moments_of(posed, P, z, drawn=True)
    expected = enumerated([p.__matmul__ for p in P], z, "uniform", k, quantity)
    assert posed.objective @ moments == pytest.approx(expected, abs=1e-12)
    assert min(np.linalg.eigvalsh(filled(matrix, moments))[0] for matrix in posed.matrices) > -1e-12


def random_convex_sets(T, d, rng):
    """Projections on half-spaces, balls and boxes that contain the origin."""
    made = []
    for m in range(T):
        if m % 3 == 0:
            made.append(fg.Halfspace(rng.standard_normal(d), -abs(rng.standard_normal()) * 0.1))
        elif m % 3 == 1:
            centre = rng.standard_normal(d)
            made.append(fg.Ball(centre, float(np.linalg.norm(centre))))
        else:
            made.append(fg.Box(-rng.random(d) * 0.3, rng.random(d) * 0.3))
    return [member.project for member in made]


@pytest.mark.parametrize("law", ["uniform", "weighted", "shuffles", "cyclic", "given"])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_concrete_convex_sets_are_feasible_and_have_their_expected_quantity(law, quantity) -> None:
    rng = np.random.default_rng(3)
    for T, k in [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 2)]:
        runs, walk, _ = laws(T, k, rng)[law]
        posed = program(tree(walk, k, quantity), rules("convex", walk))
        projects, z = random_convex_sets(T, 3, rng), unit(3, rng)
        moments = convex_moments_of(posed, projects, z)
        assert posed.objective @ moments == pytest.approx(enumerated(projects, z, runs, k, quantity), abs=1e-12)
        assert min(np.linalg.eigvalsh(filled(matrix, moments))[0] for matrix in posed.matrices) > -1e-12
        slack = [sum(value * moments[at] for at, value in normal.form.items()) for normal in posed.normals]
        assert min(slack, default=0.0) > -1e-12


# all words written out


def cancelled(word):
    """A word of reflections, s s = 1."""
    left = []
    for letter in word:
        if left and left[-1] == letter:
            left.pop()
        else:
            left.append(letter)
    return tuple(left)


def merged(word):
    """A word of projections, P P = P."""
    return tuple(letter for at, letter in enumerate(word) if at == 0 or word[at - 1] != letter)


def by_appearance(word):
    names = {}
    return tuple(names.setdefault(letter, len(names)) for letter in word)


def inertia(matrix):
    values = np.linalg.eigvalsh(matrix)
    return np.array([(values < -1e-9).sum(), (values > 1e-9).sum()])


def irreducible_dimension(name, T):
    """The dimension of the representation that a block belongs to, by the hook length formula."""
    numbers = [int(part) for part in name.strip("()").removeprefix("n-").split(",") if part.strip()]
    shape = [T - 1 - numbers[0], *numbers[1:]] if name.startswith("(n-") else numbers
    hooks = [row - at + sum(other > at for other in shape[index + 1 :])
             for index, row in enumerate(shape) for at in range(row)]  # fmt: skip
    return factorial(T - 1) // int(np.prod(hooks, dtype=object))


@pytest.mark.parametrize(
    ("T", "k"), [(2, 1), (2, 3), (3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (6, 2), (3, 3), (4, 3), (7, 3)]
)
def test_blocks_have_as_many_positive_and_negative_directions_as_the_matrix_of_all_words(T, k) -> None:
    """At moments that belong to no tasks, so that a block that is missing, or one too many, shows."""
    runs, names = tree(TaskWalk(T, "uniform"), k, "loss"), inner_products.Reflections(T, True)
    posed = program(runs, names)
    words = ReachedErrors(runs, names).errors()
    assert set(words) == {cancelled(word) for j in range(k + 1) for word in product(range(T), repeat=j)} or T == 2
    points = sorted({*words, *(cancelled((*word, 0)) for word in words)})
    inner = [[cancelled((*u, *v[::-1])) for v in points] for u in points]
    inner = [[min(by_appearance(word), by_appearance(word[::-1])) for word in row] for row in inner]
    rng, negative = np.random.default_rng(4), 0
    for _ in range(3):
        moments = np.concatenate([[2.0], rng.uniform(-1, 1, posed.num_variables)])
        value = dict(zip(posed.names, moments, strict=True))
        full = [[value[name] for name in row] for row in inner]
        parts = [irreducible_dimension(m.block.name, T) * inertia(filled(m, moments)) for m in posed.matrices]
        assert sum(parts).tolist() == inertia(np.array(full)).tolist()
        negative += inertia(np.array(full))[0]
    assert negative > 0 or T == 2 or k == 1


def unreduced(T, k, quantity):
    """The worst case as one moment matrix of all words of up to k + 1 projections, without any symmetry."""
    words = [word for j in range(k + 2) for word in product(range(T), repeat=j) if merged(word) == word]
    index, rows, cols = {(): 0}, [], []
    for b, v in enumerate(words):
        for a, u in enumerate(words[: b + 1]):
            word = merged((*u, *v[::-1]))
            rows.append(b * (b + 1) // 2 + a)
            cols.append(index.setdefault(min(word, word[::-1]), len(index)))
    objective = np.zeros(len(index))
    for order in product(range(T), repeat=k):
        for m in range(T) if quantity == "loss" else order:
            for end, sign in ((order, 1), ((*order, m), -1)):
                word = merged((*end, *end[::-1]))
                objective[index[min(word, word[::-1])]] += sign / (2 * T**k * (T if quantity == "loss" else k))
    scale = [1.0 if a == b else np.sqrt(2.0) for b in range(len(words)) for a in range(b + 1)]
    full = sparse.csc_matrix((scale, (rows, cols)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    size = len(index) - 1
    found = clarabel.DefaultSolver(
        sparse.csc_matrix((size, size)), -objective[1:], -full[:, 1:].tocsc(), full[:, [0]].toarray().ravel(),
        [clarabel.PSDTriangleConeT(len(words))], settings,
    ).solve()  # fmt: skip
    return -found.obj_val


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
@pytest.mark.parametrize(("T", "k"), [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (3, 2)])
def test_the_reduced_program_has_the_value_of_the_program_of_all_words(T, k, quantity) -> None:
    assert fg.worst_case(T, k, quantity=quantity).value == pytest.approx(unreduced(T, k, quantity), abs=1e-7)


def test_the_reduced_program_has_the_value_of_the_program_of_all_words_of_four_tasks() -> None:
    assert fg.worst_case(4, 2).value == pytest.approx(unreduced(4, 2, "loss"), abs=1e-7)


@pytest.mark.parametrize("T", [2, 3, 4])
def test_equal_weights_are_uniform_draws(T) -> None:
    """One program without symmetry, one with: a row for each word and task against blocks."""
    weights = fg.orderings.WithReplacement([1 / T] * T)
    for quantity in QUANTITIES:
        k = 1 if T == 4 else 2
        plain = fg.worst_case(T, k, quantity=quantity, ordering=weights)
        assert plain.num_variables >= fg.worst_case(T, k, quantity=quantity).num_variables
        assert plain.value == pytest.approx(fg.worst_case(T, k, quantity=quantity).value, abs=1e-7)


@pytest.mark.parametrize("k", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_the_number_of_variables_stops_growing_with_the_number_of_tasks(k) -> None:
    def variables(T):
        return program(tree(TaskWalk(T, "uniform"), k, "loss"), inner_products.Reflections(T, True)).num_variables

    last = {1: 4, 2: 19, 3: 168, 4: 2788}[k]
    fewer = [variables(T) for T in range(2, min(2 * k + 1, 7))]
    assert [*fewer, last] == sorted([*fewer, last])
    assert fewer[0] < last
    assert variables(2 * k + 1) == variables(2 * k + 2) == variables(10**9) == last


# representations


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_representations_are_orthogonal_homomorphisms_of_the_right_dimensions(n) -> None:
    rng = np.random.default_rng(5)
    shapes = [representation(shape) for shape in partitions(n)]
    assert sum(shape.dim**2 for shape in shapes) == factorial(n)
    for shape in shapes:
        for _ in range(5):
            g, h = rng.permutation(n), rng.permutation(n)
            G, H = shape.of(g), shape.of(h)
            assert np.allclose(G @ G.T, np.eye(shape.dim))
            assert np.allclose(G @ H, shape.of(g[h]))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_kept_vectors_are_those_that_the_first_letters_leave_alone(n) -> None:
    for shape in map(representation, partitions(n)):
        for count in range(n + 1):
            swaps = [[*range(at), at + 1, at, *range(at + 2, n)] for at in range(count - 1)]
            moved = np.array([shape.of(swap) - np.eye(shape.dim) for swap in swaps]).reshape(-1, shape.dim)
            fixed = shape.dim - np.linalg.matrix_rank(moved) if len(moved) else shape.dim
            kept = shape.kept_by_first(count)
            assert len(kept) == fixed
            assert np.allclose(moved[:, kept], 0)
