"""Hunt every statement of docs/one-over-k.md on 10^5 small problems and by searches: `python -m tools.hunt_rates`.

Small problems are made in batches, and both sides are computed with dense matrices and all orders, not with the engines
of the library; w_0 - w* is the worst one where the left side is a quadratic form. Then `fg.adversarial_search` looks
for the worst tasks of independent draws, on which every bound that applies is compared with the exact expectation, and
a local search goes on from the worst problem of each statement. Records grow by what is found. The largest ratios of
both sides become the table of docs/one-over-k.md; one above 1 is an error.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import forgetting as fg
from forgetting.claims import Instance
from forgetting.files.atomic import write
from forgetting.theory.claim import Claim
from forgetting.theory.later.one_over_k import every_order, reach, unseen
from forgetting.theory.later.rate_constants import fresh, least_fresh, visited
from forgetting.theory.record import claim_of, record_of
from tools.ratios import improve

PAGE = Path(__file__).parents[1] / "docs" / "one-over-k.md"
BEGIN, END = "<!-- made by python -m tools.hunt_rates -->", "<!-- end of hunts -->"
BATCH = 500
STEPS = 40
SEARCHED = ((2, 2, 1), (3, 3, 1), (4, 4, 3), (6, 4, 2))  # T, d, rank
AT = (1, 2, 5, 20, 100, 1000)
ONCE = (1 + math.sqrt(27 / 16)) ** 2


@dataclass(frozen=True)
class Worst:
    """The largest ratio of a statement, on how many problems, and the problem that has it."""

    ratio: float = 0.0
    problems: int = 0
    instance: Callable[[], Instance] | None = None


Found = dict[str, Worst]


def note(found: Found, name: str, left: Any, right: Any, instance: Callable[[int], Instance]) -> None:
    """Keep the largest ratio, and how to make its problem; values of rounding size do not count."""
    ratios = np.where(left > 1e-9, left, 0.0) / np.maximum(right, 1e-300)
    at = int(np.argmax(ratios))
    if name not in found or ratios[at] > found[name].ratio:
        found[name] = Worst(float(ratios[at]), BATCH, lambda: instance(at))


def worst(forms: Any) -> Any:
    """The largest eigenvalue of each matrix."""
    return np.linalg.eigvalsh(forms)[..., -1]


def posed(tasks: Any, form: Any, k: int, p: Any = None, step: float | None = None, epochs: bool = False) -> Instance:
    """The tasks X_m^T X_m with the worst w_0 - w* for a form: independent draws p, else one pass or several epochs."""
    start = np.linalg.eigh(form)[1][:, -1]
    values, vectors = np.linalg.eigh(tasks)
    rows = [(np.sqrt(a.clip(0)) * V).T[a > 1e-12] for a, V in zip(values, vectors, strict=True)]
    rows = [X if len(X) else np.zeros((1, len(start))) for X in rows]
    if p is not None:
        ordering: Any = fg.orderings.WithReplacement(None if np.ptp(p) == 0 else p)
    else:
        ordering = fg.orderings.Reshuffled() if epochs else fg.orderings.WithoutReplacement()
    scheme = None if step is None else fg.schemes.SGD(step, "loss")
    return Instance(fg.RegressionTasks(rows, [X @ start for X in rows]), ordering, k, scheme=scheme)


# Small problems -------------------------------------------------------------------------------------------------------


def laws(rng: np.random.Generator, T: int, d: int) -> tuple[Any, Any]:
    """Weights (B, T) and projections (B, T, d, d): random subspaces, nearly parallel lines, lines near a simplex."""
    shape, kind = (BATCH, T, d), rng.integers(3)
    if kind == 0:
        rank = int(rng.integers(1, d + 1))
        q, _ = np.linalg.qr(rng.standard_normal((BATCH, T, d, rank)))
        q = q * (rng.random((BATCH, T, 1, rank)) < 0.8)
    else:
        v = rng.standard_normal((BATCH, 1, d)) + 10.0 ** rng.uniform(-2.5, 0.5, (BATCH, 1, 1)) * rng.standard_normal(
            shape
        )
        q = (v / np.linalg.norm(v, axis=-1, keepdims=True))[..., None]
    onto = q @ np.swapaxes(q, -1, -2)
    if kind == 2:  # tasks that leave one line free
        onto = np.eye(d) - onto
    return weights(rng, T), onto


def weights(rng: np.random.Generator, T: int) -> Any:
    """Uniform ones (B, T), or random ones."""
    return np.full((BATCH, T), 1 / T) if rng.random() < 0.5 else rng.dirichlet(np.ones(T), BATCH) + 1e-9


def independent(found: Found, rng: np.random.Generator) -> None:
    """Loss, next loss, spectral gap, moments and forgetting of independent draws."""
    T, d = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    p, onto = laws(rng, T, d)
    p = p / p.sum(1, keepdims=True)
    uniform = bool(np.ptp(p) == 0)
    # |X_m|^2, largest 1: as large as S_p allows, or any
    sizes = p / p.max(1, keepdims=True) if rng.random() < 0.5 else rng.uniform(0, 1, (BATCH, T)) ** 2
    factor = (sizes / (T * p)).max(1)
    steps, mean = np.eye(d) - onto, np.einsum("bm,bmij->bij", p, onto)
    gap, norm, rank = np.linalg.eigvalsh(mean)[:, 0].clip(0), np.linalg.norm(mean, axis=(1, 2)), np.trace(mean, 0, 1, 2)
    settings = [
        fg.bounds.Setting(rank_joint=d, rank_weighted=float(min(r, d)), mean_projection=float(min(s, math.sqrt(d))))
        for r, s in zip(rank, norm, strict=True)
    ]
    next_form, loss_form = mean, np.einsum("bm,bmij->bij", sizes / T, onto)
    here = "here:last-iterate ({})".format
    for n in range(1, STEPS):
        next_form, loss_form = _mapped(p, steps, next_form), _mapped(p, steps, loss_form)
        nexts, losses = worst(next_form), worst(loss_form)

        def next_case(i: int, form: Any = next_form, n: int = n) -> Instance:
            return posed(onto[i], form[i], n, p[i])

        def loss_case(i: int, form: Any = loss_form, n: int = n) -> Instance:
            return posed(sizes[i, :, None, None] * onto[i], form[i], n, p[i])

        note(found, here("loss, weights"), losses, factor * fresh(n), loss_case)
        rate = np.min([(1 - gap) ** (n - j) * fresh(j) for j in range(n + 1)], axis=0)
        note(found, here("loss, gap"), losses, factor * rate, loss_case)
        if uniform:
            note(found, here("loss"), nexts, 2 / (n + 1), next_case)
            note(found, here("loss, longer"), nexts, 27 / 16 / (n + 1), next_case)
            note(found, here("loss, universal"), nexts, fresh(n), next_case)
        if n in (1, 2, 5, 13, 39):
            moments = np.array([least_fresh(s, n) for s in settings])
            note(found, here("loss, moments, weights"), losses, factor * moments, loss_case)
            note(found, here("next loss"), nexts, moments, next_case)
            if uniform:
                note(found, here("loss, moments"), nexts, moments, next_case)
    k = int(rng.integers(1, 12))
    seen = _seen_form(p, onto, k)

    def seen_case(i: int) -> Instance:
        return posed(onto[i], seen[i], k, p[i])

    def most(left: float) -> float:
        return k * (math.sqrt(left) + math.sqrt(visited(k, left) / k)) ** 2

    note(found, here("forgetting"), worst(seen), most(fresh(k - 1)), seen_case)
    moments = np.array([most(least_fresh(s, k - 1)) for s in settings])
    note(found, here("forgetting, moments"), worst(seen), moments, seen_case)


def _mapped(p: Any, steps: Any, A: Any) -> Any:
    return np.einsum("bm,bmij->bij", p, steps @ A[:, None] @ np.swapaxes(steps, -1, -2))


def _seen_form(p: Any, onto: Any, k: int) -> Any:
    """sum_t E |P_t z_k|^2 as a quadratic form in z_0, by the adjoint: visits to a task count, weighted by its form."""
    steps = np.eye(onto.shape[-1]) - onto
    total = np.zeros_like(onto[:, 0])
    for t in range(1, k + 1):  # the form of task tau(t) at time k, pulled back to before step t, then averaged
        forms = onto
        for _ in range(k - t):
            forms = np.einsum("bn,bnij,bmjk,bnkl->bmil", p, steps, forms, steps, optimize=True)
        pulled = np.einsum("bm,bmij,bmjk,bmkl->bil", p, steps, forms, steps, optimize=True)
        for _ in range(t - 1):
            pulled = _mapped(p, steps, pulled)
        total = total + pulled
    return total


def _over_orders(T: int, k: int, steps: Any, forms: Any, seen: int | None = None) -> Any:
    """The mean over all orders of the forms of the first `seen` tasks, or of the one after k, pulled back k steps."""
    orders = list(itertools.permutations(range(T), min(k + 1, T)))
    total = np.zeros_like(forms[:, 0])
    for order in orders:
        product = np.broadcast_to(np.eye(forms.shape[-1]), total.shape)
        for task in order[:k]:
            product = steps[:, task] @ product
        chosen = [order[k]] if seen is None else list(order[:seen])
        total = total + np.swapaxes(product, -1, -2) @ forms[:, chosen].sum(1) @ product / len(orders)
    return total


def single_pass(found: Found, rng: np.random.Generator) -> None:
    """Next loss, its conjecture, forgetting and the loss of a single pass, by all orders."""
    T, d = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    _, onto = laws(rng, T, d)
    steps, whole = np.eye(d) - onto, onto.mean(1)
    for k in range(1, T + 1):
        seen = _over_orders(T, k, steps, onto, k)

        def case(forms: Any, k: int = k) -> Callable[[int], Instance]:
            return lambda i: posed(onto[i], forms[i], k)

        note(found, "here:single-pass (forgetting)", worst(seen), ONCE, case(seen))
        loss = _over_orders(T, k, steps, np.broadcast_to(whole[:, None], onto.shape), 1)
        right = ONCE / T + (T - k) / T * 27 / 16 / (k + 1)
        note(found, "here:single-pass (loss)", worst(loss), right, case(loss))
        if k < T:
            after = _over_orders(T, k, steps, onto)
            note(found, "here:single-pass (next loss)", worst(after), 27 / 16 / (k + 1), case(after))
            note(found, "conjecture:next-loss (subspaces)", worst(after), every_order(k + 1), case(after))


def reshuffled(found: Found, rng: np.random.Generator) -> None:
    """The mean of the losses at the ends of epochs."""
    T, d = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    _, onto = laws(rng, T, d)
    steps = np.eye(d) - onto
    form, total = onto.mean(1), np.zeros_like(onto[:, 0])
    for ended in range(1, 7):
        form = _over_orders(T, T, steps, np.broadcast_to(form[:, None], onto.shape), 1)
        total = total + form

        def case(i: int, total: Any = total, k: int = ended * T) -> Instance:
            return posed(onto[i], total[i], k, epochs=True)

        right = (1 + math.sqrt(27 / 8)) ** 2 / (ended * T)
        note(found, "here:epochs (mean of epochs)", worst(total) / ended, right, case)


def _gradients(rng: np.random.Generator, T: int, d: int) -> tuple[float, Any, Any]:
    """A step x in (0, 2), weights, and matrices M_m of which the largest has the norm x."""
    x = float(rng.choice([0.3, 1.0, 1.5, 1.9, rng.uniform(0, 2)]))
    p, onto = laws(rng, T, d)
    sizes = rng.uniform(0, 1, (BATCH, T)) ** rng.integers(0, 4)
    sizes = sizes / (sizes * np.trace(onto, 0, 2, 3).clip(1e-9, 1)).max(1, keepdims=True)
    return x, p / p.sum(1, keepdims=True), x * sizes.clip(0, 1)[..., None, None] * onto


def descents(found: Found, rng: np.random.Generator) -> None:
    """The objective and forgetting of SGD with every step, independent draws."""
    T, d = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    x, p, moves = _gradients(rng, T, d)
    steps, left = np.eye(d) - moves, np.einsum("bm,bmij->bij", p, moves)
    for n in range(1, STEPS):
        left = _mapped(p, steps, left)
        value = worst(left)

        def case(i: int, form: Any = left, n: int = n) -> Instance:
            return posed(moves[i] / x, form[i], n, p[i], step=x)

        right = 1 / ((2 - x) * reach(x) * (n + 1))
        note(found, "here:sgd-last-iterate (objective)", value, right, case)
        if x <= 1:
            note(found, "here:sgd-last-iterate (objective, universal)", value, fresh(n), case)
    k = int(rng.integers(1, 8))
    seen = _seen_form(p, moves, k)

    def seen_case(i: int) -> Instance:
        return posed(moves[i] / x, seen[i], k, p[i], step=x)

    right = (reach(x) ** -0.5 + x) ** 2 / (2 - x)
    note(found, "here:sgd-last-iterate (forgetting)", worst(seen), right, seen_case)


def descents_once(found: Found, rng: np.random.Generator) -> None:
    """SGD with every step, without replacement, by all orders."""
    T, d = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    x, _, moves = _gradients(rng, T, d)
    steps, rho = np.eye(d) - moves, reach(x)
    whole = np.broadcast_to(moves.mean(1, keepdims=True), moves.shape)
    for k in range(1, T + 1):
        seen = _over_orders(T, k, steps, moves, k)
        loss = _over_orders(T, k, steps, whole, 1)

        def case(forms: Any, k: int = k) -> Callable[[int], Instance]:
            return lambda i: posed(moves[i] / x, forms[i], k, step=x)

        learned, next_at_most = (rho**-0.5 + x) ** 2 / (2 - x), 1 / ((2 - x) * rho * (k + 1))
        note(found, "here:single-pass-sgd (forgetting)", worst(seen), learned, case(seen))
        right = learned / T + (T - k) / T * next_at_most
        note(found, "here:single-pass-sgd (loss)", worst(loss), right, case(loss))
        if k < T:
            after = _over_orders(T, k, steps, moves)
            note(found, "here:single-pass-sgd (next loss)", worst(after), next_at_most, case(after))
            right = (learned + next_at_most) / (k + 1)
            note(found, "here:single-pass-sgd (objective)", worst(seen + after) / (k + 1), right, case(seen + after))


def halfspaces(found: Found, rng: np.random.Generator) -> None:
    """Half-spaces x_m w >= b_m as sets and as tasks of one example, from w_0 = 0, by all orders."""
    T, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    rows = rng.uniform(-2, 2) * rng.standard_normal((BATCH, 1, d)) + rng.standard_normal((BATCH, T, d))
    rows *= np.where(rows @ rng.standard_normal((d, 1)) < 0, -1, 1)  # all on one side, so that there is a solution
    classes = bool(rng.random() < 0.5)
    if not classes:
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    least = np.ones((BATCH, T)) if classes else rng.choice([1.0, 0.3, 0.0, -0.3], (BATCH, T))
    lengths = np.linalg.norm(rows, axis=-1)
    solution = _nearest(rows, least)
    size = (solution**2).sum(-1)
    radius_sq = lengths.max(1) ** 2
    p = weights(rng, T)
    p = p / p.sum(1, keepdims=True)

    def short(w: Any) -> Any:
        return np.maximum(least - np.einsum("bmi,bi->bm", rows, w), 0.0)

    def ends(orders: list[tuple[int, ...]], k: int) -> list[tuple[list[int], Any, Any]]:
        result = []
        for order in orders:
            w = np.zeros((BATCH, d))
            for task in order[:k]:
                w = w + (short(w)[:, task] / lengths[:, task] ** 2)[:, None] * rows[:, task]
            gaps = short(w)
            result.append((list(order), (gaps / lengths) ** 2, gaps**2))
        return result

    def case(k: int, p: Any = None, tasks: bool = False) -> Callable[[int], Instance]:
        def instance(i: int) -> Instance:
            if p is None:
                ordering: Any = fg.orderings.WithoutReplacement()
            else:
                ordering = fg.orderings.WithReplacement(None if np.ptp(p[i]) == 0 else p[i])
            if tasks:
                signs = np.where(np.arange(T) % 2, -1.0, 1.0)
                data = [sign * rows[i, m][None] for m, sign in enumerate(signs)]
                return Instance(fg.ClassificationTasks(data, [np.array([sign]) for sign in signs]), ordering, k)
            sets = fg.ConvexSets([fg.Halfspace(x, b) for x, b in zip(rows[i], least[i], strict=True)])
            return Instance(sets, ordering, k, w0=np.zeros(d), extras={"common": solution[i]})

        return instance

    for k in range(1, 4 if T == 4 else 5):
        orders = list(itertools.product(range(T), repeat=k))
        chances = [np.prod(p[:, list(order)], axis=1) for order in orders]
        done = list(zip(chances, ends(orders, k), strict=True))
        mean = sum(chance * gaps.mean(1) for chance, (_, gaps, _) in done)
        right = size / math.sqrt(k + 1)
        note(found, "here:projections (any weights)", mean / 2, right * (1 / (T * p)).max(1), case(k, p))
        if np.ptp(p) == 0:
            note(found, "here:projections (with replacement)", mean / 2, right, case(k, p))
            note(found, "conjecture:convex-sets", mean, 4 / (3 * math.sqrt(3) * (k + 1)) * size, case(k, p))
        right = (math.sqrt(min(1, 2 / math.sqrt(k))) + 1 / math.sqrt(k)) ** 2 * size
        seen = sum(chance * gaps[:, order].mean(1) for chance, (order, gaps, _) in done)
        note(found, "here:classification (sets, with replacement)", seen, right, case(k, p))
        if classes:
            seen = sum(chance * hinge[:, order].mean(1) for chance, (order, _, hinge) in done)
            note(found, "here:classification (with replacement)", seen, radius_sq * right, case(k, p, True))
    for k in range(1, T + 1):
        orders = list(itertools.permutations(range(T), min(k + 1, T)))
        once = ends(orders, k)
        seen = sum(gaps[:, order[:k]].mean(1) for order, gaps, _ in once) / len(once)
        mean = sum(gaps.mean(1) for _, gaps, _ in once) / len(once)
        first = (math.sqrt(unseen(k - 1)) + 1 / math.sqrt(k)) ** 2
        right = (k / T * first + (T - k) / T * unseen(k)) * size
        note(found, "here:projections (without replacement)", mean, right, case(k))
        note(found, "here:classification (sets, without replacement)", seen, first * size, case(k))
        if classes:
            seen = sum(hinge[:, order[:k]].mean(1) for order, _, hinge in once) / len(once)
            right = first * size * radius_sq
            note(found, "here:classification (without replacement)", seen, right, case(k, None, True))
        if k < T:
            after = sum(gaps[:, order[k]] for order, gaps, _ in once) / len(once)
            note(found, "conjecture:next-loss (convex sets)", after, every_order(k + 1) * size, case(k))


def _nearest(rows: Any, least: Any) -> Any:
    """The points of all half-spaces nearest to 0: of the solutions of some equations, the smallest that is in all."""
    best, size = np.zeros((len(rows), rows.shape[-1])), np.full(len(rows), np.inf)
    T = rows.shape[1]
    for count in range(T + 1):
        for chosen in map(list, itertools.combinations(range(T), count)):
            w = np.einsum("bim,bm->bi", np.linalg.pinv(rows[:, chosen]), least[:, chosen])
            inside = (np.einsum("bmi,bi->bm", rows, w) >= least - 1e-9).all(1)
            smaller = inside & ((w**2).sum(1) < size)
            best[smaller], size[smaller] = w[smaller], (w[smaller] ** 2).sum(1)
    return best


KINDS = (independent, single_pass, reshuffled, descents, descents_once, halfspaces)


def hunt(problems: int, seed: int = 0) -> Found:
    """The largest ratio of each statement over about as many problems of each kind."""
    found: Found = {}
    for kind, one in enumerate(KINDS):
        rng = np.random.default_rng([seed, kind])
        for _ in range(max(1, problems // BATCH)):
            batch: Found = {}
            one(batch, rng)
            for name, new in batch.items():
                old = found.get(name, Worst())
                larger = max(new, old, key=lambda worst: worst.ratio)
                found[name] = replace(larger, problems=old.problems + new.problems)
    return found


# Searches -------------------------------------------------------------------------------------------------------------


def rates() -> list[Claim]:
    """The claims of docs/one-over-k.md, those that are conjectures last."""
    claims = [claim for claim in fg.claims.all() if "docs/one-over-k.md" in claim.source]
    return sorted(claims, key=lambda claim: claim.status == "conjecture")


def adversarial(seed: int = 0, restarts: int = 4, steps: int = 200) -> Found:
    """On the tasks of `fg.adversarial_search`, the largest ratio of the exact expectation to each rate that applies."""
    found: Found = {}
    options: dict[str, Any] = {"restarts": restarts, "steps": steps, "seed": seed}
    quantities: Any = ("loss", "next_loss", "forgetting")
    for (T, d, rank), k, quantity in itertools.product(SEARCHED, AT, quantities):
        if k == 1 and quantity == "forgetting":  # is 0
            continue
        options["weights"] = "fixed" if quantity == "loss" else "free"
        search: Any = fg.adversarial_search(T, d, rank, k, quantity, **options)
        tasks, ordering = search.tasks, search.ordering
        exact = fg.expect(tasks, ordering, k, quantities=quantities)
        values = {name: float(getattr(exact, name)) for name in quantities}
        values |= {"residual": values["loss"], "objective": values["next_loss"]}  # all singular values are 1
        for row in fg.bounds.evaluate(tasks, ordering, k, programs=True):
            claim = claim_of(row.bound) if row.applies and "docs/one-over-k.md" in row.bound.source else None
            if claim is not None:
                best = found.get(claim.key, Worst())
                scheme = fg.schemes.SGD(1.0, "loss") if "eta" in row.bound.needs else None
                instance = Instance(tasks, ordering, k, scheme=scheme)
                ratio = max(best.ratio, values[row.quantity] / row.value)
                case = partial(_same, instance) if ratio > best.ratio else best.instance
                found[claim.key] = Worst(ratio, best.problems + 1, case)
    return found


def _same(instance: Instance) -> Instance:
    return instance


def table(small: Found, searched: Found) -> str:
    """The table in Markdown; by search is the larger of `adversarial` and the record, which local searches found."""
    lines = ["| statement | small problems | largest ratio | by search |", "|---|---|---|---|"]
    for claim in rates():
        on, record = small[claim.key], record_of(claim)
        most = max(searched.get(claim.key, Worst()).ratio, 0.0 if record is None else record.ratio)
        lines.append(f"| `{claim.key}` | {on.problems} | {on.ratio:.4g} | {max(most, on.ratio):.4g} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a statement is violated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problems", type=int, default=100_000, help="of each kind")
    parser.add_argument("--budget", type=int, default=300, help="of each local search; 0: small problems only")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    small, searched = hunt(given.problems, given.seed), Found()
    for name, worst_of in small.items():
        print(f"{name}: largest ratio {worst_of.ratio:.6g} on {worst_of.problems} small problems", flush=True)
    ratios = [found.ratio for found in small.values()]
    if given.budget:
        searched = adversarial(given.seed)
        for claim in rates():
            starts = [("the worst of small problems", small[claim.key])]
            starts += [("adversarial_search", searched[claim.key])] if claim.key in searched else []
            cases = [(origin, found.instance()) for origin, found in starts if found.instance is not None]
            record = improve(claim, seed=given.seed, budget=given.budget, starts=cases)
            if record is not None:
                print(f"{record.key}: {record.sentence}", flush=True)
        ratios += [found.ratio for found in searched.values()]
        ratios += [record.ratio for claim in rates() if (record := record_of(claim)) is not None]
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        write(PAGE, f"{before}{BEGIN}\n{table(small, searched)}\n{END}{rest.partition(END)[2]}".encode())
    return int(max(ratios) > 1 + 1e-9)


if __name__ == "__main__":
    raise SystemExit(main())
