"""Check a certificate of a worst case in exact arithmetic: python check_certificate.py FILE.json

The file writes  upper - E[quantity]  as squares |r|^2 of combinations r of errors, plus terms that are nonnegative for
projections on convex sets, plus a rest that counts in full: all inner products of errors are between -1 and 1.
A word lists tasks as they are learned. Its letters are projections P ("projections", "convex") or reflections 2P - 1.
A letter below 0 is an average over all tasks that its word does not name; task 0 counts as named.
"""

import hashlib
import json
import sys
from fractions import Fraction as Q
from operator import mul


def content(c):
    """The whole content of the file, as one text."""
    return json.dumps({at: c[at] for at in sorted(c) if at != "digest"}, separators=(",", ":"))


def digest(c):
    """A digest of all that the file says, so that no changed digit goes unnoticed."""
    return hashlib.sha256(content(c).encode()).hexdigest()


def need(fits, what):
    """Refuse a file that says something else than a certificate says."""
    if not fits:
        raise ValueError(f"this proves nothing: {what}")


def check(c):
    """The upper bound that the file proves; an error if the file claims a smaller one, or is no certificate."""
    T, k, kind, quantity, law, bits = c["tasks"], c["k"], c["kind"], c["quantity"], c["law"], c["bits"]
    upper, squares, normals, alike = c["upper"], c["squares"], c["normals"], isinstance(law, str)
    need(c["digest"] == digest(c), "the file was changed: its digest does not fit its content")
    need(type(k) is int and 0 < k <= 10**4 and type(bits) is int and 0 < bits <= 100, "k > 10^4, or bits > 100")
    most = 2**64 if alike else 10**4  # tasks; only those that are not alike are counted one by one
    need((type(T) is int and 0 < T <= most) or (T is None and law == "uniform"), f"more than {most} tasks, or none")
    need(kind in ("projections", "reflections", "convex"), f"kind = {kind!r:.80}")
    need(quantity in ("loss", "next_loss", "forgetting"), f"quantity = {quantity!r:.80}")
    need(law in ("uniform", "shuffles") or [*law] in (["weights"], ["order"]), f"law = {law!r:.80}")
    need(type(upper) is str and {*upper} <= {*"0123456789."} and len(upper) < 200, "upper is no decimal number")
    weights = [] if alike or "order" in law else law["weights"]
    need(all(len(weight) < 2000 for weight in weights), "a weight of 2000 digits")
    weights = [Q(*map(int, weight.split("/"))) for weight in weights]
    order = [] if alike or "weights" in law else law["order"]
    need(alike or order or (len(weights) == T and min(weights) >= 0 and sum(weights) == 1), f"law = {law!r:.80}")
    need(not order or len(order) == k + (quantity == "next_loss"), f"{len(order)} steps in the order")
    need(not normals or kind == "convex", "normals are for convex sets")
    for words, rows in [([order], []), *squares, *(([[m], u, v or []], [[x, 0, 0]]) for m, u, v, x in normals)]:
        fit = all(type(a) is int and (-(2**31) < a < 2**31 if alike else 0 <= a < T) for u in words for a in u)
        need(fit and all(len(row) == len(words) and {*map(type, row)} == {int} for row in rows), "bad words or rows")
        need(all(max(map(abs, row)) < 2**99 for row in rows), "a number of 30 digits")
    need(all(min(m, *u, *(v or [0]), x) >= 0 for m, u, v, x in normals), "a normal with an average, or below 0")

    # Limits before work: what `worst_case` writes takes less than this many steps for a file of its length.
    said = [*(words for words, _ in squares), *([u, v or []] for _, u, v, _ in normals)]
    longest = max((len(u) for words in said for u in words), default=0)
    need(longest <= 300, f"a word of {longest} letters")
    left = [50_000 + len(content(c)) * (6 + longest // 4)]

    def spend(steps):
        left[0] -= steps
        need(left[0] >= 0, "multiplying out takes longer than a file of this length is worth")

    def add(total, form, factor):  # add a multiple of a combination of inner products to a sum
        for at, value in form.items():
            total[at] = total.get(at, 0) + factor * value
            spend(1 + (total[at].denominator.bit_length() // 1000) ** 2)

    def named(word):  # tasks that are alike get their names by first appearance
        names = {-1: -1}
        return tuple(names.setdefault(a, len(names) - 1) for a in word) if alike else word

    def after(u, a):  # the word u and then the letter a
        return (*u, a) if u[-1:] != (a,) else u[:-1] if kind == "reflections" else u  # s s = 1, P P = P

    def name(u, v):  # inner products with equal names are equal
        if kind == "convex":
            return min(named((*u, -1, *v)), named((*v, -1, *u)))
        while kind == "reflections" and u and v and u[-1] == v[-1]:
            u, v = u[:-1], v[:-1]
        word = (*u, *v[-2::-1]) if u and v and u[-1] == v[-1] else (*u, *v[::-1])
        return min(named(word), named(word[::-1]))

    def product(u, v):  # the inner product of two errors: an averaged task is one that the other word has, or a new one
        spend(len(u) // 10)
        u, v = sorted((u, v), key=lambda word: min(word, default=0))
        mine, yours = ({0, *(a for a in word if a >= 0)} for word in (u, v))
        both, found, average = mine | yours, {}, min(u, default=0)
        need(T is None or len(both) <= T, "more names than tasks")
        if average >= 0:
            return {name(u, v): 1}
        meets = {} if T is None else dict.fromkeys(yours - mine, Q(1, T - len(mine)))
        for task, share in [*meets.items(), (max(both) + 1, 1 - sum(meets.values()))]:
            add(found, product(tuple(task if a == average else a for a in u), v) if share else {}, share)
        return found

    def following(counts):  # which task may come next after so many visits of each, with its probability
        if not alike:
            return [(order[sum(counts)], Q(1))] if order else list(enumerate(weights))
        passed = [a for a, n in enumerate(counts) if law == "shuffles" and n > sum(counts) // T]
        old = [(a, Q(1, T - len(passed))) for a in range(len(counts)) if a not in passed] if T else []
        return [*old, (len(counts), 1 - sum(q for _, q in old))]

    def times(operator, a):  # the reverse of an operator times P, which is (1 + s) / 2 for a reflection s
        found = {}
        for w, x in operator.items():
            for word in [w, after(w, a)] if kind == "reflections" else [after(w, a)] * 2:
                add(found, {word[::-1]: x}, Q(1, 2))
        return found

    def loss(u, m):  # |(I - P_m) P_u z|^2
        form, inside = {}, {(): 1}
        if kind == "convex":
            for x, y, sign in [(u, u, 1), (u, (*u, m), -2), ((*u, m), (*u, m), 1)]:
                add(form, product(x, y), sign)
            return form
        add(inside, times(inside, m), -1)
        for a in u[::-1]:
            spend(len(inside) * len(u) // 10)
            inside = times(times(inside, a), a)
        for w, x in inside.items():
            add(form, {name(w, ()): x}, 1)
        return form

    rest, ends, level = {}, {}, {((), () if alike else (0,) * T): Q(1)}  # runs: the word of the error, visits of tasks
    for _ in range(k):
        before, level = level, {}
        for (u, counts), p in before.items():
            for a, q in following(counts):
                spend(1 + (len(u) + len(counts)) // 10)
                visits = tuple(n + (b == a) for b, n in enumerate((*counts, 0)[: max(len(counts), a + 1)]))
                add(level, {(u if u[-1:] == (a,) else (*u, a), visits): p} if q else {}, q)
    for (u, counts), p in level.items():
        seen = [(a, Q(1, T)) for a in range(len(counts))] if T else []
        every = [*seen, (len(counts), 1 - sum(q for _, q in seen))]
        every = [(a, Q(n, k)) for a, n in enumerate(counts)] if quantity == "forgetting" else every
        for m, q in following(counts) if quantity == "next_loss" else every:
            add(ends, {(u, m): p / 2} if m != u[-1] else {}, q)
    for (u, m), weight in ends.items():
        add(rest, loss(u, m) if weight else {}, weight)
    for words, rows in squares:
        pairs, columns = {}, [[row[at] for row in rows] for at in range(len(words))]
        for at, u in enumerate(words):
            for to, v in enumerate(words[: at + 1]):
                names = {0: 0}  # tasks that are alike have the same product under other names
                pair = [
                    tuple(names.setdefault(a, len(names)) if alike and a > 0 else a for a in word) for word in (u, v)
                ]
                spend(len(rows) // 20)
                add(pairs, {tuple(pair): sum(map(mul, columns[at], columns[to]))}, 1 + (to < at))
        for (u, v), total in pairs.items():
            add(rest, product(u, v), Q(total, 4**bits))
    for m, u, v, factor in normals:  # <x - P x, P x - y> >= 0 for the common point y = 0 and for y = P v
        for x, sign in [((*u,), 1), ((*u, m), -1)]:
            add(rest, product(x, (*u, m)), sign * factor * Q(1, 2**bits))
            add(rest, {} if v is None else product(x, (*v, m)), -sign * factor * Q(1, 2**bits))
    proved = rest.pop(name((), ()), Q(0)) + sum(map(abs, rest.values()))
    need(proved <= Q(upper), f"the squares prove an upper bound of {float(proved):.9g}, not of {upper}")
    return proved


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            c = json.load(file)
        bound, tasks = float(check(c)), "any number of" if c["tasks"] is None else c["tasks"]
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        sys.exit(
            f"not proved: {error if isinstance(error, (OSError, ValueError)) else 'no certificate, ' + repr(error)}"
        )
    print(f"proved: the expected {c['quantity']} after k = {c['k']} steps is at most {bound:.12g}, for {tasks} tasks,")
    print(f"{'convex sets' if c['kind'] == 'convex' else 'subspaces'}, and the law {json.dumps(c['law'])[:100]}")
