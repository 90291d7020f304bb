"""What is refused of a program that was made: numbers that cannot be encoded, values that no ciphertext
holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.clear import Slots
from crenel.nn.headroom import HEADROOM, Beyond, beyond, first_beyond
from crenel.nn.ops import Reals
from crenel.nn.passes.calibrate import CalibrationWarning
from crenel.nn.program import Program

ENCODED_BITS = 62  # of a number times the scale


def expect_encodable(program: Program) -> None:
    """Raises ParameterError, naming the origin, for weights that no plaintext holds: their results are far
    smaller than what they are summed from, so that errors of the input would be all that is left."""
    most = 2.0 ** (ENCODED_BITS - program.params.log_scale)
    for number, matrix in program.transforms.items():
        parts = [d for row in matrix.blocks for block in row for d in (block or {}).values()]
        largest = max(float(np.abs(part).max()) for part in (*parts, matrix.bias))
        if not largest < most:
            origin = program.plan.values[number].origin
            raise ParameterError(
                f"{origin}: weights up to {largest:.3g} (largest results per largest input), "
                f"expected less than {most:.3g}: on the samples the result is far smaller than its terms",
                {"origin": origin, "largest": largest, "expected": most},
            )


def contained(program: Program, samples: Reals) -> Reals:
    """The plan's result in the clear. Raises UnsupportedError naming the first value that leaves what a
    ciphertext can hold, in any of its slots.

    Slots without an element hold zeros in front of a polynomial and its value at 0 behind it, which samples
    need not have shown. One slot that overflows spoils all: errors of coefficients are in every slot.
    """
    largest, watch = _watched()
    clear = program.simulate(samples, noise=False, watch=watch)
    found = first_beyond(program.plan, largest)
    if found is not None:
        raise UnsupportedError(
            _what_leaves(program, samples, found),
            {"origin": program.plan.values[found.value].origin, "largest": found.reach},
        )
    return clear


def _watched() -> tuple[dict[int, float], Callable[[int, list[Slots]], None]]:
    """The largest absolute value of any slot, in bounds, by the values' numbers, and the watch of a
    simulation that enters them."""
    largest = {0: 1.0}

    def keep(number: int, made: list[Slots]) -> None:
        largest[number] = max(float(np.abs(a.values).max()) for a in made)

    return largest, keep


def _what_leaves(program: Program, samples: Reals, found: Beyond) -> str:
    """Whether elements do, too, or slots between them alone, and what helps."""
    plan, elements = program.plan, {0: 1.0}

    def keep(number: int, made: list[Slots]) -> None:
        slots = np.stack([a.values for a in made])
        elements[number] = float(np.abs(plan.values[number].layout.unpack(slots, len(samples))).max())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # said the first time
        program.simulate(samples, noise=False, watch=keep)
    leave = {one.value for step in plan.steps if (one := beyond(plan, step, elements)) is not None}
    value, layout = plan.values[found.value], plan.values[found.value].layout
    reach = (
        f"or what is computed on the way to them, reach {found.reach:.4g} times the bound, more than the "
        f"{found.limit:g} that a ciphertext is sure to hold there"
    )
    if found.value in leave:
        return (
            f"{value.origin}: values of the samples, {reach}: polynomials up to here make something else of "
            "the samples than the layers do. Take higher degrees or a smaller margin, or samples on which "
            "the layers make more of a difference"
        )
    return (
        f"{value.origin}: slots, {reach}; elements are in {layout.total} of "
        f"{layout.ciphertexts * layout.slots} slots, and the others hold the polynomial's value at 0. Shift "
        "its input so that 0 is among its usual values, put a linear layer in front of what reads it, or "
        "take another degree"
    )


def steady(program: Program, samples: Reals) -> Reals:
    """The plan's result with errors. Raises UnsupportedError naming the first value that they drive out of
    range: a polynomial grows fast beyond its interval, and the next one faster."""
    largest, watch = _watched()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # said here
        found = program.simulate(samples, seed=0, watch=watch)
    number = next((k for k, reach in largest.items() if not reach <= HEADROOM), None)
    if number is not None:
        origin = program.plan.values[number].origin
        raise UnsupportedError(
            f"{origin}: with errors of encryption values leave their range, reach {largest[number]:.3g} "
            "times the bound, more than a ciphertext holds: parameters of a larger scale, a fitted "
            "polynomial, or a composite of lower degrees",
            {"origin": origin, "largest": largest[number]},
        )
    return found
