"""Numbers and headings of the paper's statements, as a reader of the PDF sees them.

The numbers follow the LaTeX counters of the paper. Theorems, lemmas, corollaries, propositions, definitions, claims,
remarks and assumptions share one counter (`assumption` is declared twice; LaTeX refuses the second declaration, which
would have given assumptions a counter of their own). The counter runs through the main text, and after `\\appendix` it
restarts in each section and shows the letter of the section. Reductions and equations have counters of their own, which
never restart. Statements that an appendix recalls keep their first number. `tests/theory/test_coverage.py` counts
again. Labels that begin with `text:` are ours, for what the paper says without a label.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PAPER = "Evron et al. 2026"
#: authors and year at the start of a source, and the number of a statement after them
_NUMBERED = re.compile(
    r"([A-Z][^,()]*? \d{4})\b"
    r"(?:, ((?:Theorem|Lemma|Corollary|Proposition|Claim|Remark|Section|Appendix|Table|Eq\.) [\w.()]*\w\)?))?"
)


#: how the words before a number are shortened
_SHORT = {
    "thm": "theorem", "th": "theorem", "lem": "lemma", "lm": "lemma", "cor": "corollary", "prop": "proposition",
    "rem": "remark", "eqn": "eq", "equation": "eq", "tab": "table", "reduc": "reduction", "app": "appendix",
    "sec": "section",
}  # fmt: skip


def folded(name: str) -> tuple[str, ...]:
    """The words and numbers of a place in a paper, by which its spellings are the same.

    >>> folded("Thm. 8") == folded("theorem8") == folded("Theorem 8"), folded("Lem. C.8") == folded("lemma C.8")
    (True, True)
    """
    return tuple(_SHORT.get(word, word) for word in re.findall(r"[^\W\d_]+|\d+", name.lower()))


class Printed(NamedTuple):
    """The number and the title of a statement as the paper prints them.

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
    "text:regret": Printed("Remark 5", "Forgetting vs. Regret"),
    "eq:rank1_sgd": Printed("Eq. (1)"),
    "lem:cl_gd_equiv": Printed("Lemma 7", "Properties of the Modified Objective"),
    "thm:random_convergence_rate": Printed(
        "Theorem 8", "Parameter-Dependent Forgetting Rate for Random With Replacement"
    ),
    "thm:cl_by_sgd_main": Printed("Theorem 10", "Universal Forgetting Rate for With-Replacement Random Ordering"),
    "thm:cl_by_sgd_wor": Printed("Theorem 11", "Forgetting Rates for Without-Replacement Random Ordering"),
    "thm:sgd_last_iterate_main": Printed("Theorem 12", "Last-Iterate Bound for Realizable Regression With Replacement"),
    "lem:regret_bound": Printed("Lemma 13", "Gradient Descent Regret Bound for Smooth Optimization"),
    "lem:ratio_avg_last": Printed("Lemma 14"),
    "thm:pocs-rate": Printed("Theorem 15", "Universal POCS Rate"),
    "cor:pocs_forgetting": Printed("Theorem 16"),
    "text:nlms": Printed("Appendix A, paragraph 3", "Connections to Normalized Least Mean Squares"),
    "text:rls": Printed("Appendix A, paragraph 4", "Alternative Continual Schemes That Do Not Forget"),
    "lem:in_to_all_sample": Printed("Lemma B.1", "Bounding Forgetting Using the Training Loss"),
    "prop:loss_to_forgetting": Printed(
        "Proposition B.2", "Bounding The Training Loss Using Forgetting in Without-Replacement Orderings"
    ),
    "eq:loss": Printed("Appendix C, display without a number"),
    "cor:Q-is-positive": Printed("Corollary C.3"),
    "cor:Q-is-symmetric": Printed("Corollary C.4"),
    "rem:Qk-is-positive": Printed("Corollary C.5"),
    "lem:Trace-inequality": Printed("Lemma C.6", "Trace Product Inequality"),
    "lem:A Upper Bound": Printed("Lemma C.7"),
    "lem:Q trace": Printed("Lemma C.8"),
    "cor:Q self adjoint": Printed("Proposition C.9"),
    "cor:Q spectrum": Printed("Proposition C.10"),
    "cor:polynomial_Q_spectrum": Printed("Lemma C.11"),
    "cor:dimensionality_bound": Printed("Lemma C.12"),
    "lem:gd_funadmental_inequality": Printed("Lemma E.1", "Fundamental regret inequality for gradient descent"),
    "lem:gd_descent": Printed("Lemma E.2", "Descent lemma"),
    "lem:sqloss_gradineq": Printed("Lemma E.3"),
    "thm:wor_sgd_last_iterate_main": Printed(
        "Theorem E.4", "Last-Iterate Bound for Realizable Regression Without Replacement"
    ),
    "lem:wor_last_before_stab": Printed("Lemma E.5"),
    "lem:wor_generalization": Printed("Lemma E.6"),
    "lem:permutation_equiv": Printed("Lemma E.7"),
    "lem:stab_gen_wor": Printed("Lemma E.8"),
    "eq:h-bound": Printed("Eq. (8)"),
    "eq:wor_stab_main": Printed("Eq. (9)"),
    "lem:proj_gradineq": Printed("Lemma F.1"),
    "lem:wr_stability": Printed("Lemma F.2"),
    "prop:mean_norm": Printed("Claim G.1", "Average-Norm Universal Rate for With-Replacement Random Ordering"),
}


def cite(label: str) -> str:
    """The place of a statement in the paper.

    >>> cite("lem:regret_bound")
    'Evron et al. 2026, Lemma 13 (lem:regret_bound)'
    """
    return f"{PAPER}, {PRINTED[label].number} ({label})"


def place_of(label: str, source: str) -> str:
    """The place of a statement for readers: its number in the PDF of the paper; authors, year and number elsewhere.

    Empty if the source is no publication.

    >>> place_of("thm:cl_by_sgd_main", cite("thm:cl_by_sgd_main"))
    'Theorem 10'
    >>> place_of("evron2022:alternating", "Evron et al. 2022, Theorem 10"), place_of("mine", "a guess of 2027")
    ('Evron et al. 2022, Theorem 10', '')
    """
    if label in PRINTED:
        return PRINTED[label].number
    matched = _NUMBERED.match(source)
    return "" if matched is None else ", ".join(filter(None, matched.groups()))


def name_of(label: str, source: str, title: str = "", part: str | None = None) -> str:
    """The name of a statement for readers: its place, its title and, if it has several parts, which part.

    >>> name_of("thm:cl_by_sgd_main", cite("thm:cl_by_sgd_main"), "universal rate", "loss")
    'Theorem 10, universal rate: loss'
    >>> name_of("trivial", "steps do not lengthen the error", "the trivial bound")
    'the trivial bound'
    """
    name = ", ".join(filter(None, (place_of(label, source), title))) or label
    return name if part is None else f"{name}: {part}"
