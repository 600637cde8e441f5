"""
Is it true?
===========

Each statement of the paper is an object that computes both of its sides on a problem. A hunt looks for the problem with
the least slack. Most statements survive; where one does not, there is a file with the counterexample.
"""

import forgetting as fg

claim = fg.claims.get("thm:random_convergence_rate", part="loss")
print(claim.statement)
two_lines = fg.claims.Instance(fg.families.two_lines(0.2), fg.orderings.WithReplacement(), k=100)
print(claim.check(two_lines))

# %%
# The hunt finds the angle that nearly reaches the bound.

print(claim.hunt(seed=0, budget=150))

# %%
# For a problem of one's own, `fg.certify` puts measured and theoretical values side by side.

tasks = fg.families.gaussian(T=6, d=12, rank=2, seed=0)
print(fg.certify(tasks, fg.orderings.WithReplacement(), k=50))
