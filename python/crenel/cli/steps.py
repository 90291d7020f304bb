"""Steps through the secret of sets with groups, as options of commands say them."""

from __future__ import annotations

from typing import Literal

from crenel.errors import ParameterError


def steps_of(text: str) -> list[int] | Literal["automatic"]:
    """What `tfhe.Context.evaluator` takes as steps; ParameterError for other words."""
    if text == "automatic":
        return "automatic"
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ParameterError(
            f"steps '{text}', expected integers by commas, or automatic", {"steps": text}
        ) from None
