"""Claims: every statement of the paper, to be checked on instances and hunted for a counterexample.

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

from forgetting.core.names import only
from forgetting.theory.certificate import Certificate, certify
from forgetting.theory.claim import Claim
from forgetting.theory.claim import declare_claim as declare
from forgetting.theory.claim import register_claim as register
from forgetting.theory.evidence import Evidence
from forgetting.theory.hunt import Hunt
from forgetting.theory.instance import Instance
from forgetting.theory.record import Record
from forgetting.theory.registry import all_claims as all  # noqa: A004
from forgetting.theory.registry import get_claim as get
from forgetting.theory.registry import unregister_claim as unregister
from forgetting.theory.theorem import claim_from_bound as from_bound
from forgetting.theory.verdict import Sides, Verdict

__all__ = [
    "Certificate",
    "Claim",
    "Evidence",
    "Hunt",
    "Instance",
    "Record",
    "Sides",
    "Verdict",
    "all",
    "certify",
    "declare",
    "from_bound",
    "get",
    "register",
    "unregister",
]
__dir__ = only(__all__)
