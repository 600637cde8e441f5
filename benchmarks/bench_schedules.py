"""A schedule against a fixed scheme, for the same expected values: the cost of gains that depend on the step."""

from __future__ import annotations

import forgetting as fg
from benchmarks.timing import race
from forgetting.expectation.api import ask
from forgetting.expectation.engines import moments


def main() -> None:
    ordering, ridge = fg.orderings.WithReplacement(), fg.schemes.Ridge(0.3)
    for T, d, rank, steps in ((5, 20, 4, {31: 2000, 16: 2000}), (50, 100, 2, {31: 5, 16: 200})):
        tasks = fg.families.gaussian(T=T, d=d, rank=rank, seed=0)
        for digits, k in steps.items():

            def expected(scheme, tasks=tasks, digits=digits, k=k):
                """Iterate second moments to k with so many digits, without what `refined` may add."""
                request = ask(tasks, ordering, k, scheme(), quantities="loss").request
                made = moments.moment_map(request, twofold=digits == 31)
                return moments.evaluated(request, made, moments.readings(made, request))

            race(
                f"E loss at k = {k}, {digits} digits: ridge lam(t) against ridge (T={T}, d={d})",
                lambda: expected(lambda: fg.schemes.Scheduled(lambda t: fg.schemes.Ridge(0.3 + 0.01 * t))),
                lambda: expected(lambda: ridge),
                target=1.3,
                at_most=True,
            )


if __name__ == "__main__":
    main()
