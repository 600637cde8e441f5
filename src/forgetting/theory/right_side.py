"""The right side of a statement that is a bound: its value, terms and branches, and what holds without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from forgetting.files.records import add_codec, dataclass_codec
from forgetting.theory.bound import Bound
from forgetting.theory.setting import Setting

__all__ = ["RightSide"]

LATEST = 10**15  # steps up to which a bound may come below the trivial value


@dataclass(frozen=True, eq=False)
class RightSide:
    """A bound at a setting and a number of steps k.

    Attributes:
        bound, setting, k: what is evaluated, and where.
        branches: the parts of a minimum that are bounds of their own, by the last part of their keys.

    >>> import forgetting as fg
    >>> side = RightSide(fg.bounds.get("thm:cl_by_sgd_main/forgetting"), Setting(radius=2.0), 17)
    >>> side.value, side.trivial, side.telling_from
    (10.0, 2.0, 10002)
    """

    bound: Bound
    setting: Setting
    k: int
    branches: Mapping[str, Bound] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The bound."""
        return float(self.bound.compute(self.setting, self.k))

    @property
    def without(self) -> dict[str, float]:
        """The bound without one of its terms, by the name of the term."""
        return self.bound.without(self.setting, self.k)

    @property
    def branch_values(self) -> dict[str, float]:
        """The value of each branch."""
        return {name: float(branch.compute(self.setting, self.k)) for name, branch in self.branches.items()}

    @property
    def trivial(self) -> float | None:
        """What holds without the statement, `Setting.trivial`; None where that is not known."""
        return self.setting.trivial(self.bound.quantity)

    @property
    def telling_from(self) -> int | None:
        """The first k at which the bound is below the trivial value at this setting, if it falls with k; else None.

        A bound for one pass is taken at T = k + 1 where that is more than the T of the setting.
        """
        first = self.bound.range.first
        if not isinstance(first, int) or self.trivial is None:
            return None

        def telling(k: int) -> bool:
            one_pass = self.bound.range.last is not None and (self.setting.T or 0) < k + 1
            at = replace(self.setting, T=k + 1) if one_pass else self.setting
            return self.bound.compute(at, k) < float(self.trivial or 0.0) * (1 - 1e-12)

        low, high = max(first, 1) - 1, max(first, 1)
        while not telling(high):
            low, high = high, 2 * high
            if high > LATEST:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if telling(middle) else (middle, high)
        return high


add_codec(dataclass_codec(RightSide, "right-side"))
