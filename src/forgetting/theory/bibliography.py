"""The sources of the statements as BibTeX, and the entries of a bound, a claim or a source.

Keys are those of the paper's own bibliography. An entry holds what is known for certain about a publication, and no
more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from forgetting._version import __version__
from forgetting.core.arrays import as_kind
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.theory.registry import Statement, all_statements

__all__ = ["SOFTWARE", "SOURCES", "SourceEntry", "bibtex", "entries", "software_entry", "sources_in"]


@dataclass(frozen=True)
class SourceEntry:
    """A publication: its key in BibTeX, how statements name it, and its entry.

    >>> SOURCES["lan2012optimal"].name
    'Lan 2012'
    """

    key: str
    name: str
    bibtex: str


SOFTWARE = "forgetting"  # the key of this library
#: words in the source of a statement that stand for this library
OWN = ("docs/new-bounds.md", "steps do not lengthen the error")
#: how statements name a source, and its entry
_ENTRIES = {
    "Evron et al. 2026": r"""@inproceedings{evron2026continual,
  author    = {Evron, Itay and Levinstein, Ran and Schliserman, Matan and Sherman, Uri and Koren, Tomer and
               Soudry, Daniel and Srebro, Nathan},
  title     = {From Continual Learning to {SGD} and Back: Better Rates for Continual Linear Models},
  booktitle = {Proceedings of The 37th International Conference on Algorithmic Learning Theory},
  series    = {Proceedings of Machine Learning Research},
  volume    = {313},
  pages     = {1--50},
  publisher = {PMLR},
  year      = {2026},
  eprint    = {2504.04579},
  archivePrefix = {arXiv}
}""",
    "Evron et al. 2022": r"""@inproceedings{evron2022catastrophic,
  author    = {Evron, Itay and Moroshko, Edward and Ward, Rachel and Srebro, Nathan and Soudry, Daniel},
  title     = {How catastrophic can catastrophic forgetting be in linear regression?},
  booktitle = {Proceedings of Thirty Fifth Conference on Learning Theory},
  series    = {Proceedings of Machine Learning Research},
  volume    = {178},
  pages     = {4028--4079},
  publisher = {PMLR},
  year      = {2022},
  eprint    = {2205.09588},
  archivePrefix = {arXiv}
}""",
    "Evron et al. 2023": r"""@inproceedings{evron23continualClassification,
  author    = {Evron, Itay and Moroshko, Edward and Buzaglo, Gon and Khriesh, Maroun and Marjieh, Badea and
               Srebro, Nathan and Soudry, Daniel},
  title     = {Continual Learning in Linear Classification on Separable Data},
  booktitle = {Proceedings of the 40th International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {202},
  publisher = {PMLR},
  year      = {2023}
}""",
    "Swartworth et al. 2023": r"""@inproceedings{swartworth2023nearly,
  author    = {Swartworth, William and Needell, Deanna and Ward, Rachel and Kong, Mark and Jeong, Halyun},
  title     = {Nearly Optimal Bounds for Cyclic Forgetting},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {36},
  year      = {2023}
}""",
    "Attia et al. 2025": r"""@inproceedings{attia2025fast,
  author    = {Attia, Amit and Schliserman, Matan and Sherman, Uri and Koren, Tomer},
  title     = {Fast Last-Iterate Convergence of {SGD} in the Smooth Interpolation Regime},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2025},
  eprint    = {2507.11274},
  archivePrefix = {arXiv}
}""",
    "Levinstein et al. 2025": r"""@misc{levinstein2025optimal,
  author    = {Levinstein, Ran and Attia, Amit and Schliserman, Matan and Sherman, Uri and Koren, Tomer and
               Soudry, Daniel and Evron, Itay},
  title     = {Optimal Rates in Continual Linear Regression via Increasing Regularization},
  year      = {2025},
  eprint    = {2506.06501},
  archivePrefix = {arXiv}
}""",
    "Tsipory et al. 2025": r"""@inproceedings{tsipory2025greedy,
  author    = {Tsipory, Matan and Levinstein, Ran and Evron, Itay and Kong, Mark and Needell, Deanna and
               Soudry, Daniel},
  title     = {Are Greedy Task Orderings Better Than Random in Continual Linear Regression?},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2025},
  eprint    = {2510.19941},
  archivePrefix = {arXiv}
}""",
    "Derezinski and Dong 2026": r"""@inproceedings{derezinski2026last,
  author    = {Derezi{\'n}ski, Micha{\l} and Dong, Xiaoyu},
  title     = {Last-Iterate Convergence of Randomized {Kaczmarz} and {SGD} with Greedy Step Size},
  booktitle = {Proceedings of Thirty Ninth Conference on Learning Theory},
  series    = {Proceedings of Machine Learning Research},
  volume    = {336},
  pages     = {1771--1813},
  publisher = {PMLR},
  year      = {2026},
  eprint    = {2604.09909},
  archivePrefix = {arXiv}
}""",
    "Xu and Ma 2026": r"""@misc{xu2026order,
  author    = {Xu, Zonghuan and Ma, Xingjun},
  title     = {From Order to Distribution: A Spectral Characterization of Forgetting in Continual Learning},
  year      = {2026},
  eprint    = {2604.13460},
  archivePrefix = {arXiv}
}""",
    "Strohmer and Vershynin 2009": r"""@article{strohmer2009randomized,
  author    = {Strohmer, Thomas and Vershynin, Roman},
  title     = {A Randomized {Kaczmarz} Algorithm with Exponential Convergence},
  journal   = {Journal of Fourier Analysis and Applications},
  volume    = {15},
  number    = {2},
  pages     = {262--278},
  year      = {2009}
}""",
    "Gower and Richtarik 2015": r"""@article{gower2015randomized,
  author    = {Gower, Robert M. and Richt{\'a}rik, Peter},
  title     = {Randomized Iterative Methods for Linear Systems},
  journal   = {SIAM Journal on Matrix Analysis and Applications},
  volume    = {36},
  number    = {4},
  pages     = {1660--1690},
  year      = {2015}
}""",
    "Needell et al. 2014": r"""@inproceedings{needell2014stochastic,
  author    = {Needell, Deanna and Ward, Rachel and Srebro, Nathan},
  title     = {Stochastic Gradient Descent, Weighted Sampling, and the Randomized {Kaczmarz} Algorithm},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {27},
  year      = {2014}
}""",
    "Needell 2010": r"""@article{needell2010noisy,
  author    = {Needell, Deanna},
  title     = {Randomized {Kaczmarz} Solver for Noisy Linear Systems},
  journal   = {BIT Numerical Mathematics},
  volume    = {50},
  number    = {2},
  pages     = {395--403},
  year      = {2010}
}""",
    "Epperly et al. 2024": r"""@misc{epperly2024tail,
  author    = {Epperly, Ethan N. and Goldshlager, Gil and Webber, Robert J.},
  title     = {Randomized {Kaczmarz} with Tail Averaging},
  year      = {2024},
  eprint    = {2411.19877},
  archivePrefix = {arXiv}
}""",
    "Agaskar et al. 2014": r"""@inproceedings{agaskar2014randomized,
  author    = {Agaskar, Ameya and Wang, Chuang and Lu, Yue M.},
  title     = {Randomized {Kaczmarz} Algorithms: Exact {MSE} Analysis and Optimal Sampling Probabilities},
  booktitle = {IEEE Global Conference on Signal and Information Processing (GlobalSIP)},
  year      = {2014}
}""",
    "Shamir and Zhang 2013": r"""@inproceedings{shamir13sgd,
  author    = {Shamir, Ohad and Zhang, Tong},
  title     = {Stochastic Gradient Descent for Non-smooth Optimization: Convergence Results and Optimal Averaging
               Schemes},
  booktitle = {Proceedings of the 30th International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {28},
  publisher = {PMLR},
  year      = {2013}
}""",
    "Nesterov 1998": r"""@misc{nesterov1998introductory,
  author    = {Nesterov, Yurii},
  title     = {Introductory Lectures on Convex Programming, Volume {I}: Basic Course},
  note      = {Lecture notes},
  year      = {1998}
}""",
    "Lan 2012": r"""@article{lan2012optimal,
  author    = {Lan, Guanghui},
  title     = {An Optimal Method for Stochastic Composite Optimization},
  journal   = {Mathematical Programming},
  volume    = {133},
  pages     = {365--397},
  year      = {2012}
}""",
    "Liu and Zhou 2024": r"""@inproceedings{liu2024revisiting,
  author    = {Liu, Zijian and Zhou, Zhengyuan},
  title     = {Revisiting the Last-Iterate Convergence of Stochastic Gradient Methods},
  booktitle = {International Conference on Learning Representations},
  year      = {2024}
}""",
    "Srebro et al. 2010": r"""@inproceedings{srebro2010smoothness,
  author    = {Srebro, Nathan and Sridharan, Karthik and Tewari, Ambuj},
  title     = {Smoothness, Low Noise and Fast Rates},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {23},
  year      = {2010}
}""",
    "Bach and Moulines 2013": r"""@inproceedings{bach2013non,
  author    = {Bach, Francis and Moulines, Eric},
  title     = {Non-strongly-convex Smooth Stochastic Approximation with Convergence Rate {$O(1/n)$}},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {26},
  year      = {2013}
}""",
    "Varre et al. 2021": r"""@inproceedings{varre2021last,
  author    = {Varre, Aditya and Pillaud-Vivien, Loucas and Flammarion, Nicolas},
  title     = {Last Iterate Convergence of {SGD} for Least-Squares in the Interpolation Regime},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {34},
  year      = {2021}
}""",
    "Hardt et al. 2016": r"""@inproceedings{hardt2016train,
  author    = {Hardt, Moritz and Recht, Ben and Singer, Yoram},
  title     = {Train Faster, Generalize Better: Stability of Stochastic Gradient Descent},
  booktitle = {Proceedings of The 33rd International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {48},
  pages     = {1225--1234},
  publisher = {PMLR},
  year      = {2016}
}""",
    "Recht and Re 2012": r"""@inproceedings{recht2012noncommutativeAGM,
  author    = {Recht, Benjamin and R{\'e}, Christopher},
  title     = {Toward a Noncommutative Arithmetic-geometric Mean Inequality: Conjectures, Case-studies, and
               Consequences},
  booktitle = {Proceedings of the 25th Annual Conference on Learning Theory},
  series    = {Proceedings of Machine Learning Research},
  volume    = {23},
  publisher = {PMLR},
  year      = {2012}
}""",
    "De Sa 2020": r"""@inproceedings{desa2020reshuffling,
  author    = {De Sa, Christopher},
  title     = {Random Reshuffling is Not Always Better},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {33},
  year      = {2020}
}""",
}


def _key(entry: str) -> str:
    return entry.partition("{")[2].partition(",")[0]


SOURCES = {_key(entry): SourceEntry(_key(entry), name, entry) for name, entry in _ENTRIES.items()}


def software_entry() -> SourceEntry:
    """This library as a source, with its version.

    >>> print(software_entry().bibtex.splitlines()[0])
    @misc{forgetting,
    """
    entry = (
        "@misc{forgetting,\n"
        "  author    = {{The forgetting developers}},\n"
        "  title     = {forgetting: the reference toolkit for continual linear models},\n"
        f"  note      = {{Python package, version {__version__}}},\n"
        "  year      = {2026}\n"
        "}"
    )
    return SourceEntry(SOFTWARE, SOFTWARE, entry)


def sources_in(words: str) -> tuple[SourceEntry, ...]:
    """The sources that the words name, in the order in which they do; empty if they name none that is known.

    >>> [source.key for source in sources_in("Lan 2012, as quoted in Table 3 of Evron et al. 2026")]
    ['lan2012optimal', 'evron2026continual']
    """
    places = {source: words.find(source.name) for source in SOURCES.values()}
    places |= {software_entry(): max(words.find(own) for own in OWN)}
    return tuple(sorted((source for source, place in places.items() if place >= 0), key=lambda source: places[source]))


def check_entry(words: str, where: str) -> str:
    """The words, if they are one entry of BibTeX or several; an error says what is missing.

    >>> check_entry("Newer 2027", "newer2027/loss")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: newer2027/loss: bibtex must be an entry such as @article{newer2027, ...}, ...
    """
    if not re.match(r"\s*@\w+\s*\{\s*[^\s,{}]+\s*,", words) or words.count("{") != words.count("}"):
        raise InvalidInputError(
            f"{where}: bibtex must be an entry such as @article{{newer2027, ...}}, braces in pairs; got {words!r:.60}"
        )
    return words.strip()


def bibtex(key: str) -> str:
    """The sources of a bound or a claim as BibTeX: first where it is stated, then who quotes it or what it builds on.

    Args:
        key: of a bound (`thm:cl_by_sgd_main/loss`), the label of a claim (`lem:regret_bound`), the key of a source
            (`evron2022catastrophic`), or `forgetting` for this library.

    >>> import forgetting as fg
    >>> print(fg.bounds.cite("strohmer2009:single rows/error"))
    @article{strohmer2009randomized,
      author    = {Strohmer, Thomas and Vershynin, Roman},
      title     = {A Randomized {Kaczmarz} Algorithm with Exponential Convergence},
      journal   = {Journal of Fourier Analysis and Applications},
      volume    = {15},
      number    = {2},
      pages     = {262--278},
      year      = {2009}
    }
    """
    return "\n\n".join(entries(key))


def entries(key: str) -> tuple[str, ...]:
    """The entries of `bibtex`, one by one."""
    as_kind(key, str, "the key of a bound, a claim or a source")
    if key in SOURCES or key == SOFTWARE:
        return ((software_entry() if key == SOFTWARE else SOURCES[key]).bibtex,)
    chosen = [
        statement
        for statement in all_statements()
        if key == statement.label
        or (statement.bound is not None and key in (statement.bound.key, statement.bound.label))
    ]
    if not chosen:
        keys = dict.fromkeys(
            (SOFTWARE, *SOURCES, *(known.bound.key if known.bound else known.label for known in all_statements()))
        )
        raise InvalidInputError(f"no bound, claim or source {key!r:.60}{nearest(key, keys)}")
    sources = tuple(dict.fromkeys(entry for statement in chosen for entry in _of_statement(statement)))
    if not sources:
        raise InvalidInputError(
            f"{key}: its source, {chosen[0].source!r:.80}, has no BibTeX entry; declare the bound with bibtex="
        )
    return sources


def _of_statement(statement: Statement) -> list[str]:
    given = "" if statement.bound is None else statement.bound.bibtex.strip()
    return ([given] if given else []) + [source.bibtex for source in sources_in(statement.source)]
