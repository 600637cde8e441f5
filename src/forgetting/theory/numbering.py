"""Numbers and headings of the paper's statements, as a reader of the PDF sees them.

The numbers follow the LaTeX counters of the paper: theorems, lemmas, corollaries, propositions, definitions, claims and
remarks share one counter that does not restart with a section; reductions have a counter of their own; statements that
an appendix recalls keep their first number.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PAPER", "PRINTED", "Printed", "cite"]

PAPER = "Evron et al. 2026"


class Printed(NamedTuple):
    """How the paper prints a statement.

    >>> PRINTED["lem:regret_bound"].title
    'Gradient Descent Regret Bound for Smooth Optimization'
    """

    number: str
    title: str = ""


PRINTED = {
    "reduc:cl_to_kaczmarz": Printed("Reduction 1", "Continual Regression ⇒ Block Kaczmarz"),
    "reduc:kaczmarz": Printed("Reduction 2", "Block Kaczmarz ⇒ SGD"),
    "reduc:pocs": Printed("Reduction 3", "POCS ⇒ SGD"),
    "reduc:classification_to_pocs": Printed("Reduction 4", "Continual Classification ⇒ POCS"),
    "lem:cl_gd_equiv": Printed("Lemma 6", "Properties of the Modified Objective"),
    "thm:random_convergence_rate": Printed(
        "Theorem 7", "Parameter-Dependent Forgetting Rate for Random With Replacement"
    ),
    "thm:cl_by_sgd_main": Printed("Theorem 9", "Universal Forgetting Rate for With-Replacement Random Ordering"),
    "thm:cl_by_sgd_wor": Printed("Theorem 10", "Forgetting Rates for Without-Replacement Random Ordering"),
    "thm:sgd_last_iterate_main": Printed("Theorem 11", "Last-Iterate Bound for Realizable Regression With Replacement"),
    "lem:regret_bound": Printed("Lemma 12", "Gradient Descent Regret Bound for Smooth Optimization"),
    "lem:ratio_avg_last": Printed("Lemma 13"),
    "thm:pocs-rate": Printed("Theorem 14", "Universal POCS Rate"),
    "cor:pocs_forgetting": Printed("Theorem 15"),
    "lem:in_to_all_sample": Printed("Lemma 16", "Bounding Forgetting Using the Training Loss"),
    "prop:loss_to_forgetting": Printed(
        "Proposition 17", "Bounding The Training Loss Using Forgetting in Without-Replacement Orderings"
    ),
    "cor:Q-is-positive": Printed("Corollary 20"),
    "cor:Q-is-symmetric": Printed("Corollary 21"),
    "rem:Qk-is-positive": Printed("Corollary 22"),
    "lem:Trace-inequality": Printed("Lemma 23", "Trace Product Inequality"),
    "lem:A Upper Bound": Printed("Lemma 24"),
    "lem:Q trace": Printed("Lemma 25"),
    "cor:Q self adjoint": Printed("Proposition 26"),
    "cor:Q spectrum": Printed("Proposition 27"),
    "cor:polynomial_Q_spectrum": Printed("Lemma 28"),
    "cor:dimensionality_bound": Printed("Lemma 29"),
    "lem:gd_funadmental_inequality": Printed("Lemma 30", "Fundamental regret inequality for gradient descent"),
    "lem:gd_descent": Printed("Lemma 31", "Descent lemma"),
    "lem:sqloss_gradineq": Printed("Lemma 32"),
    "thm:wor_sgd_last_iterate_main": Printed(
        "Theorem 33", "Last-Iterate Bound for Realizable Regression Without Replacement"
    ),
    "lem:wor_last_before_stab": Printed("Lemma 34"),
    "lem:wor_generalization": Printed("Lemma 35"),
    "lem:permutation_equiv": Printed("Lemma 36"),
    "lem:stab_gen_wor": Printed("Lemma 37"),
    "lem:proj_gradineq": Printed("Lemma 38"),
    "lem:wr_stability": Printed("Lemma 39"),
    "prop:mean_norm": Printed("Claim 40", "Average-Norm Universal Rate for With-Replacement Random Ordering"),
}


def cite(label: str) -> str:
    """Where a statement is in the paper.

    >>> cite("lem:regret_bound")
    'Evron et al. 2026, Lemma 12 (lem:regret_bound)'
    """
    return f"{PAPER}, {PRINTED[label].number} ({label})"
