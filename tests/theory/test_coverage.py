"""Every label of the paper has its number and its place in this library.

The LaTeX source is not part of the repository. Set FORGETTING_PAPER to its file to compare the labels and the numbers
with the source itself.
"""

import hashlib
import importlib
import os
import re
import string
from collections import Counter
from pathlib import Path

import pytest

from effort import each
from forgetting.expectation import quantities
from forgetting.theory.bibliography import SOURCES, sources_in
from forgetting.theory.numbering import PRINTED
from forgetting.theory.registry import all_statements

# ------------------------------------------------------------------------------------------- the counters of the source

FLOATS = {"figure": "Figure", "table": "Table", "algorithm": "Scheme"}
TOKEN = re.compile(
    r"\\(?:(?P<word>begin|end|label)\{(?P<name>.*?)\}|footnote\{\\label\{(?P<note>.*?)\}"
    r"|(?P<level>(?:sub){0,2}section|caption|appendix)\b(?P<star>\*?))"
)


def printed_numbers(source):
    r"""The number that LaTeX prints for each label, counted from the environments of the source.

    The class shares one counter among theorem, lemma, proposition, remark, corollary and definition. LaTeX refuses a
    \newtheorem for a name that exists, and keeps the first.
    """
    preamble, body = source.split(r"\begin{document}")
    names = ("theorem", "lemma", "proposition", "remark", "corollary", "definition")
    counter_of, title_of = dict.fromkeys(names, "theorem"), {name: name.capitalize() for name in names}
    for name, shared, title in re.findall(r"\\newtheorem\{(\w+)\}(?:\[(\w+)\])?\{(\w+)\}", preamble):
        counter_of.setdefault(name, counter_of.get(shared, name))
        title_of.setdefault(name, title)
    by_section = set(re.findall(r"\\@addtoreset\{(\w+)\}\{section\}", body))
    counts, sections, letters = Counter(), [0, 0, 0], False
    found, current, stack = {}, "", []

    def section(depth=0):
        first = string.ascii_uppercase[sections[0] - 1] if letters else str(sections[0])
        return ".".join([first, *map(str, sections[1 : depth + 1])])

    def step(counter):
        counts[counter] += 1
        return f"{section()}.{counts[counter]}" if letters and counter in by_section else str(counts[counter])

    at = 0
    while (token := TOKEN.search(body, at)) is not None:
        at, name = token.end(), token["name"]
        if token["note"]:
            found[token["note"]] = f"Footnote {step('footnote')}"
        elif token["word"] == "label":
            found[name] = current
        elif token["word"] == "begin":
            stack.append((current, name))
            if name == "align":
                at, waiting = body.index(r"\end{align}", at), []
                for row in rows_of(body[token.end() : at]):
                    waiting += re.findall(r"\\label\{(.*?)\}", row)
                    if r"\notag" not in row:  # else its label waits for the next row with a number
                        found |= dict.fromkeys(waiting, f"Eq. ({step('equation')})")
                        waiting = []
            elif name in counter_of:
                current = f"{title_of[name]} {step(counter_of[name])}"
            elif name == "align*":
                current = f"{current}, display without a number"
        elif token["word"] == "end" and stack:
            current, _ = stack.pop()
        elif token["level"] == "caption" and not token["star"]:
            kind = next(FLOATS[name.strip("*")] for _, name in reversed(stack) if name.strip("*") in FLOATS)
            current = f"{kind} {step(kind)}"
        elif token["level"] == "appendix":
            letters, sections = True, [0, 0, 0]
        elif token["level"] and token["level"].endswith("section") and not token["star"]:
            depth = token["level"].count("sub")
            sections = [*sections[:depth], sections[depth] + 1, *[0] * (2 - depth)]
            current = f"{'Appendix' if letters else 'Section'} {section(depth)}"
            if letters and depth == 0:
                counts.update({counter: -counts[counter] for counter in by_section})
    return found


def rows_of(text):
    r"""The rows of an align: split at \\ outside of braces."""
    depth, parts = 0, [""]
    for piece in re.findall(r"\\\\|\\.|[{}]|[^\\{}]+", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if piece == r"\\" and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


SOURCE = r"""
\newtheorem{reduction}{Reduction} \newtheorem{assumption}[theorem]{Assumption} \newtheorem{assumption}{Assumption}
\begin{document} text\footnote{\label{fn:a} \emph{x}}
\section{One}\label{sec:one}
\begin{definition}\label{def:a}\end{definition} \begin{assumption}\label{asm:b}\end{assumption}
\begin{lemma} \begin{align}\label{eq:late} a &= \sqrt{b \\ c} \notag \\ &= d \end{align} \label{lem:c} \end{lemma}
\begin{reduction}\label{red:d}\end{reduction} \begin{figure}\caption*{no} \caption{yes \label{fig:e}}\end{figure}
\appendix \@addtoreset{theorem}{section}
\section{Two} \begin{corollary}\end{corollary}
\section{Three} \begin{align*}\label{eq:none} x \end{align*} \subsection{Part}
\begin{theorem}\end{theorem} \label{sec:three} \begin{align} x \label{eq:f} \end{align}
\begin{lemma}\label{lem:g}\end{lemma}
\end{document}
"""


def test_the_counters_of_latex():
    assert printed_numbers(SOURCE) == {
        "fn:a": "Footnote 1", "sec:one": "Section 1", "def:a": "Definition 1", "asm:b": "Assumption 2",
        "eq:late": "Eq. (1)", "lem:c": "Lemma 3", "red:d": "Reduction 1", "fig:e": "Figure 1",
        "eq:none": "Appendix B, display without a number",
        "sec:three": "Appendix B.1", "eq:f": "Eq. (2)", "lem:g": "Lemma B.2",
    }  # fmt: skip


@pytest.fixture(scope="module")
def paper():
    path = os.environ.get("FORGETTING_PAPER")
    if not path:
        pytest.skip("the LaTeX source of the paper is not here: FORGETTING_PAPER is not set")
    return printed_numbers(Path(path).read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------ the page in the docs

PAGE = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text(encoding="utf-8")
LABELLED, UNLABELLED, SLIPS, LATER = (
    [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in part.splitlines()
        if line.startswith("| ")
    ][1:]
    for part in PAGE.split("\n## ")
)
NUMBERS = {label.strip("`"): number for number, label, _ in LABELLED}
NAMES = sorted(
    {name for row in LABELLED + UNLABELLED + SLIPS for cell in row[1:] for name in re.findall(r"`(.*?)`", cell)}
)


def test_the_page_has_each_label_once_and_says_where_it_is():
    assert len(NUMBERS) == len(LABELLED) == int(re.search(r"All (\d+) labels", PAGE)[1])
    assert all(where for _, _, where in LABELLED + UNLABELLED)
    # the labels of the source, which is not here: a label that goes missing is noticed all the same
    assert hashlib.sha256("\n".join(NUMBERS).encode()).hexdigest()[:16] == "5d3507049cdd4db5"


def test_the_page_has_the_labels_and_the_numbers_of_the_source(paper):
    assert paper == NUMBERS


def test_every_statement_of_the_registry_is_on_the_page_under_its_number():
    ours = {label.strip("`"): number for number, label, _ in UNLABELLED if label.startswith("`text:")}
    assert {label: printed.number for label, printed in PRINTED.items()} == {
        label: (NUMBERS | ours)[label] for label in PRINTED
    }


@pytest.mark.parametrize(("_", "label", "where"), LABELLED + [row for row in UNLABELLED if row[1].startswith("`text:")])
def test_a_claim_or_a_bound_is_said_to_be_one(_, label, where):
    statements = [statement for statement in all_statements() if statement.label == label.strip("`")]
    kinds = [kind for kind in ("claim", "bound") if any(getattr(one, kind) is not None for one in statements)]
    said = re.match(r"(claim and bound|claim|bound|)(?![a-z ])", where)
    assert (said[1] if said else "") == " and ".join(kinds)


@pytest.mark.parametrize(("paper", "_", "where"), LATER, ids=[row[0].partition(",")[0] for row in LATER])
def test_a_later_paper_is_in_the_bibliography_and_its_statements_name_it(paper, _, where):
    name, eprint = re.match(r"(.*), \[arXiv ([\d.]+)\]\(https://arxiv.org/abs/\2\)", paper).groups()
    source = next(source for source in SOURCES.values() if source.name == name)
    assert f"eprint    = {{{eprint}}}" in source.bibtex
    labels = [label for label in re.findall(r"`(.*?)`", where) if not label.startswith("fg.")]
    statements = [statement for statement in all_statements() if statement.label in labels]
    assert {statement.label for statement in statements} == set(labels)
    named = {statement.label for statement in statements if source in sources_in(statement.source)}
    assert bool(named) != where.startswith("not here: ")


@each("name", NAMES)
def test_every_name_on_the_page_exists(name):
    if ":" in name:
        assert name in NUMBERS or name in PRINTED
    elif "." in name:
        found = resolve_name(re.sub(r"^fg\.", "forgetting.", name))
        assert found is not None
    else:
        assert name in quantities


def resolve_name(path):
    """The module, or the attribute of a module or a class, of this dotted name."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        return getattr(resolve_name(owner), name)
