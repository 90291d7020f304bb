"""Operators that have no polynomial, and what may stand in their place where a caller asks for it."""

from __future__ import annotations

from collections.abc import Mapping

from crenel.errors import ParameterError

REPLACEMENTS = {"MaxPool": ("avg", "relu"), "Softmax": ("identity",)}
"""What `replace` may name, and by what."""
EXACT = ("relu",)
"""Replacements that leave the network what it was."""
HINTS = {
    "MaxPool": "maxima are no polynomials; averages may stand in their place, or, exactly and for more "
    "activations, a + relu(b - a)",
    "Softmax": "best left to the client, who can apply it to the result",
}
REPLACED = {
    "MaxPool": "MaxPool", "MaxPool2d": "MaxPool", "MaxPooling2D": "MaxPool", "max_pool2d": "MaxPool",
    "LogSoftmax": "Softmax", "Softmax": "Softmax", "log_softmax": "Softmax", "softmax": "Softmax",
}  # fmt: skip
"""Operators of frameworks that are only imported where a replacement is asked for."""


class ReplacementWarning(UserWarning):
    """Operators were replaced by others: the network is not the one that was trained."""


def checked_replacements(replace: Mapping[str, str] | None) -> dict[str, str]:
    """Raises ParameterError for replacements that there are not."""
    found = dict(replace or {})
    for operator, by in found.items():
        if by not in REPLACEMENTS.get(operator, ()):
            there = ", ".join(f"{name!r}: {one!r}" for name, others in REPLACEMENTS.items() for one in others)
            raise ParameterError(
                f"replace {operator!r:.60} by {by!r:.60}: there are {there}",
                {"operator": f"{operator!r:.60}", "by": f"{by!r:.60}"},
            )
    return found
