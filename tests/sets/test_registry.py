"""Classes of convex sets by name: those of the library, and those of other packages."""

import numpy as np
import pytest

import forgetting as fg
from forgetting import sets
from forgetting.core.registry import registered_class
from forgetting.errors import InvalidInputError


@pytest.fixture
def ray():
    """A set of another package: the points t v with t >= 0."""

    @sets.register
    class Ray(sets.ConvexSet):
        parts = ("direction",)

        def __init__(self, direction):
            vector = np.array(direction, dtype=np.float64)
            self._freeze(dim=len(vector), direction=vector)

        def nearest(self, w):
            v = self.direction
            return max(0.0, v @ w / (v @ v)) * v

    yield Ray
    sets.registry.remove("ray")


def test_every_public_class_of_sets_is_registered_under_its_name():
    public = {kind for name in sets.__all__ if isinstance(kind := getattr(sets, name), type)}
    classes = {kind for kind in public if issubclass(kind, sets.ConvexSet) and kind is not sets.ConvexSet}
    assert classes <= set(sets.registry.members())  # examples elsewhere may add their own
    for kind in classes:
        assert registered_class(sets.registry, kind.__name__) is kind
    for name in ("ConvexSet", "box", "Nothing", "", "Second-Order-Cone"):
        assert registered_class(sets.registry, name) is None


def test_a_set_of_another_package_is_listed_checked_rebuilt_and_projected_onto(ray):
    assert "ray" in sets.registry
    assert registered_class(sets.registry, "Ray") is ray
    there = ray([1.0, 1.0])
    fg.checks.check_convex_set(there)
    values = [np.asarray(getattr(there, name)) for name in there.parts]  # what a file holds
    again = registered_class(sets.registry, type(there).__name__)(*values)
    assert again.project([2, 0]).tolist() == there.project([2, 0]).tolist() == [1, 1]
    problem = fg.ConvexSets([there, fg.Halfspace([1.0, 0.0], 2.0)])
    run = fg.run(problem, fg.orderings.Cyclic(), k=40, w0=[0.0, 5.0])
    np.testing.assert_allclose(run.iterates[-1], [2.5, 2.5], atol=1e-9)


def test_names_are_given_once_and_to_sets_only(ray):
    with pytest.raises(InvalidInputError, match="derived from ConvexSet"):
        sets.register(dict)
    with pytest.raises(InvalidInputError, match="already a convex set 'ball'"):
        sets.register(type("Ball", (sets.ConvexSet,), {"nearest": lambda self, w: w}))
