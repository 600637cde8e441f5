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
from math import perm


def digest(c):
    """A digest of all that the file says, so that no changed digit goes unnoticed."""
    text = json.dumps({at: c[at] for at in sorted(c) if at != "digest"}, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def add(total, form, factor):
    """Add a multiple of a combination of inner products to a sum."""
    for at, value in form.items():
        total[at] = total.get(at, 0) + factor * value


def check(c):
    """The upper bound that the file proves; an error if the file claims a smaller one."""
    if c["digest"] != digest(c):
        raise ValueError("the file was changed: its digest does not fit its content")
    T, k, kind, law, alike = c["tasks"], c["k"], c["kind"], c["law"], isinstance(c["law"], str)

    def named(word):  # tasks that are alike get their names by first appearance
        names = {-1: -1}
        return tuple(names.setdefault(a, len(names) - 1) for a in word) if alike else word

    def name(u, v):  # inner products with equal names are equal
        if kind == "convex":
            return min(named((*u, -1, *v)), named((*v, -1, *u)))
        while kind == "reflections" and u and v and u[-1] == v[-1]:
            u, v = u[:-1], v[:-1]  # reflections undo themselves
        word = (*u, *v[-2::-1]) if u and v and u[-1] == v[-1] else (*u, *v[::-1])  # P P = P
        return min(named(word), named(word[::-1]))

    def meetings(free, met):  # each averaged task is new, or one that the other word has
        tails = meetings(free[1:], met) if free else [{}]
        return [t | {free[0]: m} for t in tails for m in ["new", *met] if m not in t.values() or m == "new"] if free else tails

    def product(u, v):  # the inner product of two errors
        (mine, left), (yours, right) = [({a for a in w if a < 0}, {0, *w} - {a for a in w if a < 0}) for w in (u, v)]
        found, ways = {}, 1 if T is None else perm(T - len(left), len(mine)) * perm(T - len(right), len(yours))
        for first in meetings([*mine], [*(right - left), *yours]):
            for second in meetings([b for b in yours if b not in first.values()], [*(left - right)]):
                there = {b: ("v", b) if second.get(b, "new") == "new" else second[b] for b in yours}
                here = {a: ("u", a) if m == "new" else there.get(m, m) for a, m in first.items()}
                new = len({x for x in (*here.values(), *there.values()) if isinstance(x, tuple)})
                part = new == len(mine) + len(yours) if T is None else perm(T - len(left | right), new)
                add(found, {name(tuple(here.get(a, a) for a in u), tuple(there.get(a, a) for a in v)): Q(part, ways)}, 1)
        return found

    def following(counts):  # which task may come next after so many visits of each, with its probability
        if not alike:
            return [(law["order"][sum(counts)], Q(1))] if "order" in law else list(enumerate(map(Q, law["weights"])))
        passed = [a for a, n in enumerate(counts) if law == "shuffles" and n > sum(counts) // T]
        old = [(a, Q(1, T - len(passed))) for a in range(len(counts)) if a not in passed] if T else []
        return [(a, q) for a, q in [*old, (len(counts), 1 - sum(q for _, q in old))] if q]

    def add_loss(u, m, factor):  # |(I - P_m) P_u z|^2
        if kind != "reflections":
            for x, y, sign in [(u, u, 1), (u, (*u, m), -2), ((*u, m), (*u, m), 1)]:
                add(rest, product(x, y), sign * factor)
            return
        inside = {(): Q(1, 2), (m,): -Q(1, 2)}
        for a in u[::-1]:  # P X P with P = (1 + s) / 2
            before, inside = inside, {}
            for w in before:
                for b in (w, w[1:] if w[:1] == (a,) else (a, *w)):
                    for d in (b, b[:-1] if b[-1:] == (a,) else (*b, a)):
                        add(inside, {d: before[w]}, Q(1, 4))
        for w, x in inside.items():
            add(rest, {name(w, ()): x}, factor)

    rest, level = {}, {((), () if alike else (0,) * T): Q(1)}  # runs: the word of the error, the visits of each task
    for _ in range(k):
        before, level = level, {}
        for (u, counts), p in before.items():
            for a, q in following(counts):
                visits = tuple(n + (b == a) for b, n in enumerate((*counts, 0)[: max(len(counts), a + 1)]))
                add(level, {(u if u[-1:] == (a,) else (*u, a), visits): p}, q)
    for (u, counts), p in level.items():
        seen = [(a, Q(1, T)) for a in range(len(counts))] if T else []
        every = [*seen, (len(counts), 1 - sum(q for _, q in seen))]
        every = every if c["quantity"] == "loss" else following(counts) if c["quantity"] == "next_loss" else [
            (a, Q(n, k)) for a, n in enumerate(counts)]  # fmt: skip
        for m, q in every:
            if q and m != u[-1]:
                add_loss(u, m, p * q / 2)
    for words, rows in c["squares"]:
        pairs, unit = {}, Q(1, 4 ** c["bits"])
        for i, u in enumerate(words):
            for j, v in enumerate(words):
                names = {0: 0}
                at = [tuple(names.setdefault(a, len(names) if a > 0 else a) if alike else a for a in w) for w in (u, v)]
                add(pairs, {tuple(at): 1}, sum(row[i] * row[j] for row in rows))
        for (u, v), total in pairs.items():
            add(rest, product(u, v), total * unit)
    for m, u, v, factor in c.get("normals", []):  # <x - P x, P x - y> >= 0 for the common point y = 0 and for y = P v
        for x, sign in [((*u,), 1), ((*u, m), -1)]:
            add(rest, product(x, (*u, m)), sign * abs(factor) * Q(1, 2 ** c["bits"]))
            add(rest, product(x, (*v, m)) if v is not None else {}, -sign * abs(factor) * Q(1, 2 ** c["bits"]))
    proved = rest.pop(name((), ()), Q(0)) + sum(map(abs, rest.values()))
    if proved > Q(c["upper"]):
        raise ValueError(f"the squares prove an upper bound of {float(proved):.9g}, not of {c['upper']}")
    return proved


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(f"proved: the expected quantity is at most {float(check(json.load(file))):.12g}")
