"""Every statement of the paper as something that can be checked, and hunted for a counterexample.

Both sides are computed exactly where that is possible, and otherwise from simulated orders with intervals; the verdict
says which, and `doubt` how far that may be off.

>>> import forgetting as fg
>>> claim = fg.claims.get("thm:cl_by_sgd_main", part="loss")
>>> case = fg.claims.Instance(fg.families.two_lines(0.1), fg.orderings.WithReplacement(), k=100)
>>> claim.check(case).holds
True
>>> print(fg.claims.get("prop:mean_norm", part="loss, uniform").status)
refuted
"""

from forgetting.claims import lemmas_q, lemmas_sgd, rates, reductions, sets, stability  # noqa: F401  (they register)
from forgetting.claims.certificate import Certificate, certify
from forgetting.claims.hunt import Hunt
from forgetting.claims.instance import Instance
from forgetting.claims.registry import Claim, Sides, Verdict, declare, get, register, unregister
from forgetting.claims.registry import all_claims as all  # noqa: A004

__all__ = [
    "Certificate",
    "Claim",
    "Hunt",
    "Instance",
    "Sides",
    "Verdict",
    "all",
    "certify",
    "declare",
    "get",
    "register",
    "unregister",
]
