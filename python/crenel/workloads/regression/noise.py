"""Errors of the operations, from the parameters' own error model, and what a training makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crenel._crenel import ErrorModel, Params
from crenel.workloads.regression.layout import Layout
from crenel.workloads.regression.schedule import Factors
from crenel.workloads.regression.sigmoid import Sigmoid

TINY = 2.0**-40  # values so small that errors are those of the operation alone


@dataclass(frozen=True)
class Noise:
    """Root mean squares of what operations add to a complex slot; lists by the level of the result."""

    fresh: float
    """An encryption."""
    product: Sequence[float]
    """A product of ciphertexts, relinearised and rescaled."""
    plain: Sequence[float]
    """A product with a plaintext, rescaled; an adjusted level."""
    switch: Sequence[float]
    """A rotation or a conjugation."""
    refresh: float
    """A bootstrap, of a vector of the state."""

    @classmethod
    def of(cls, params: Params, slots: int, refresh: float) -> Noise:
        """Those of a parameter set for vectors of so many slots."""
        model = ErrorModel(params)
        top = params.normal_top_level
        inputs = [model.input(max_abs=TINY, level=level, slots=slots) for level in range(top + 1)]
        before = [bound.variance for bound in inputs]
        switch = [
            max(model.rotate(bound, 1).variance - was, 0.0) ** 0.5
            for bound, was in zip(inputs, before, strict=True)
        ]
        above = inputs[1:]
        product = [model.multiply_rescale(bound, bound).variance ** 0.5 for bound in above]
        # A constant's product has the rounding of the rescaling and hardly any of the input's.
        plain = [model.rescale(model.multiply(bound, TINY)).variance ** 0.5 for bound in above]
        return cls(before[top] ** 0.5, [*product, product[-1]], [*plain, plain[-1]], switch, refresh)

    @classmethod
    def everywhere(cls, rms: float, levels: int, refresh: float) -> Noise:
        """The same of every operation up to a level."""
        same = [rms] * (levels + 1)
        return cls(rms, same, same, same, refresh)


def expected(
    layout: Layout,
    sigmoid: Sigmoid,
    weight_range: float,
    noise: Noise,
    factors: Sequence[Factors],
    state_levels: Sequence[int],
    refreshed: Sequence[bool],
) -> list[float]:
    """Expected root mean square of the weights' errors after every iteration.

    Counted: errors of the gradient's own operations, which the sum over rows adds up, and of refreshes, as of
    numbers uniform in their range (smaller ones come out better), carried on by the momentum as if the
    gradient did not change with the weights (it pulls errors back). Not counted: errors of inner products,
    smaller by the factor rate / batch.

    Parameters
    ----------
    state_levels : of the state that each iteration leaves
    refreshed : was the state refreshed before the iteration?
    """
    covariance = np.zeros((2, 2))  # of v and x, in units of the weights' range
    found = []
    for t, (by, level, was) in enumerate(zip(factors, state_levels, refreshed, strict=True)):
        if was:
            covariance = covariance + noise.refresh**2 * np.eye(2)
        # In front of the sum: one product with a plaintext; later two products and |u^2 + b| <= |b| of the
        # first one's error more.
        spread = noise.plain[level] ** 2
        if t:
            spread += noise.product[level] ** 2 + (sigmoid.b * noise.product[level + 1]) ** 2
        step = layout.rows * spread + (layout.rows - 1) * noise.switch[level] ** 2
        move = np.array([[by.keep, by.momentum], [by.keep, 0.0]])
        own = noise.plain[level] ** 2
        covariance = move @ covariance @ move.T + step * np.ones((2, 2)) + own * np.array([[2, 1], [1, 1]])
        # One of a slot's two numbers has half of its square; the weights are x / (1 - eta).
        found.append(float(np.sqrt(covariance[1, 1] / layout.width)) * weight_range / by.keep)
    return found
