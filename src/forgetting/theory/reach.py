"""How much of its right side a statement uses on the problems of a hunt, and where that side says anything."""

from __future__ import annotations

from dataclasses import dataclass, field

from forgetting.files.records import add_codec, dataclass_codec
from forgetting.theory.claim import Verdict

__all__ = ["BranchReach", "Reach"]


@dataclass
class BranchReach:
    """One branch of a minimum.

    Attributes:
        share: the largest share of the branch that the left side exceeds for sure.
        binding: problems on which the branch is the minimum, and below the trivial value.
    """

    share: float = 0.0
    binding: int = 0


@dataclass
class Reach:
    """What `add` gathered from the verdicts on the problems of a hunt.

    Attributes:
        problems: how many verdicts there were.
        share: the largest share of the right side that the left side exceeds for sure: the statement with a constant
            smaller than this share of its own is violated. None where no right side had a constant.
        telling: problems on which the right side was below the trivial value, so that the statement said something;
            None where no trivial value is known.
        share_telling: `share` on those.
        branches: the same for each branch of a minimum, by its name.

    >>> import forgetting as fg
    >>> case = fg.claims.Instance(fg.families.two_lines(0.1), fg.orderings.WithReplacement(), k=300)
    >>> reach = Reach()
    >>> reach.add(fg.claims.get("thm:cl_by_sgd_main", "loss").check(case))
    >>> reach.problems, reach.telling, 0 < reach.share < 0.01
    (1, 1, True)
    """

    problems: int = 0
    share: float | None = None
    telling: int | None = None
    share_telling: float = 0.0
    branches: dict[str, BranchReach] = field(default_factory=dict)

    def add(self, verdict: Verdict) -> None:
        """Take in one more verdict."""
        self.problems += 1
        share = verdict.reached()
        if share is not None:
            self.share = max(self.share or 0.0, share)
        right = verdict.right
        if right is None or (trivial := right.trivial) is None:
            return
        self.telling = self.telling or 0
        telling = verdict.decided and verdict.rhs < trivial * (1 - 1e-12)
        if telling:
            self.telling += 1
            self.share_telling = max(self.share_telling, share or 0.0)
        values = right.branch_values
        for name, value in values.items():
            branch = self.branches.setdefault(name, BranchReach())
            branch.share = max(branch.share, verdict.reached(value) or 0.0)
            branch.binding += telling and value <= min(values.values())


add_codec(dataclass_codec(BranchReach, "branch-reach"))
add_codec(dataclass_codec(Reach, "reach"))
