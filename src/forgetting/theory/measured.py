"""Any quantity of `fg.expect` on an instance, for statements about quantities that few statements are about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forgetting._arrays import Array
from forgetting.errors import InvalidInputError
from forgetting.expectation import expect
from forgetting.theory.expectations import remembered, start_noise
from forgetting.theory.instance import Instance

__all__ = ["Quantified", "quantified"]


class Quantified(NamedTuple):
    """A value, or one for each task, with how far it may be off and how it was obtained."""

    value: Array
    doubt: float
    how: str


def quantified(instance: Instance, name: str) -> Quantified:
    """The quantity of this name after the k steps of the instance.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithReplacement(), k=1)
    >>> round(float(quantified(case, "error").value), 12)  # one of two coordinates is still to be learned
    0.5
    """
    ordering = instance.ordering
    if ordering is None:
        raise InvalidInputError("needs an ordering")
    result = remembered(
        instance,
        (name, instance.k),
        lambda: expect(
            instance.posed, ordering, instance.k, instance.scheme, instance.w0,
            quantities=name, seed=instance.seed, runs=instance.runs,
        ),
    )  # fmt: skip
    width = 1 if result.exact else 2  # an interval may lie on one side of the value
    doubt = width * float(np.max(result.uncertainty.get(name, 0.0)))
    return Quantified(np.asarray(result.values[name]), doubt + start_noise(instance), result.method)
