"""What parameters give a sorting program: levels after a bootstrap, its errors, the message ratio to take."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, log2, pi, sqrt

from crenel._crenel import BootstrapOptions, Params
from crenel.errors import ParameterError
from crenel.workloads.sorting.clear import Noise

# Roundings inside EvalMod, of vectors with d coefficients, over one rounding at its scale: the factor of
# 2^rho d that gives the measured errors of full vectors (docs/theory/precision.md, "A bootstrap").
EVAL_MOD_GAIN = 2.0**6.2
EVAL_MOD_LEVELS, STAGES = 8, 3
CENTRED = 0.5  # largest |slot| of the numbers


@dataclass(frozen=True)
class Refresh:
    """Bootstraps of two real vectors each, for vectors of so many slots."""

    slots: int
    message_ratio: int
    output_level: int

    @property
    def options(self) -> BootstrapOptions:
        """For evaluation keys and bootstrapper."""
        return BootstrapOptions(slots=self.slots, message="pair", message_ratio=self.message_ratio)


def refresh(params: Params, slots: int, message_ratio: int | None = None) -> Refresh:
    """The bootstraps of these parameters. message_ratio: default the one of the smallest error for sorted
    numbers, whose vectors have large coefficients. Raises ParameterError for parameters without
    bootstraps."""
    if params.max_level <= params.normal_top_level:
        raise ParameterError(
            f"parameters {params.name or params.id} have no levels for bootstraps, which every sorting "
            "network needs; use a boot... set",
            {"levels": params.max_level - params.normal_top_level},
        )
    highest = round(params.log_q(0)) - params.log_scale
    if message_ratio is None:
        message_ratio = min(range(1, highest + 1), key=lambda rho: _error(params, slots, rho))
    elif not 1 <= message_ratio <= highest:
        raise ParameterError(
            f"message ratio 2^{message_ratio}, expected 2^1 to 2^{highest}",
            {"message_ratio": message_ratio, "highest": highest},
        )
    # The transforms of few slots, too, end where those of many do.
    return Refresh(slots, message_ratio, params.normal_top_level - STAGES)


def noise(params: Params, slots: int, message_ratio: int, seed: int = 0) -> Noise:
    """Expected errors of vectors of so many slots, for `Sorting.simulate`."""
    return Noise(_bootstrap(params, slots, message_ratio), _operation(params, slots), message_ratio, seed)


def _rounding(params: Params) -> float:
    """Standard deviation of a coefficient after a division that is merged with a key switch."""
    return sqrt((1 + params.ring_dim / 2) / 12)


def _operation(params: Params, slots: int) -> float:
    return sqrt(slots) * _rounding(params) / 2.0**params.log_scale  # a part of the complex slot: 2 n / 2


def _bootstrap(params: Params, slots: int, message_ratio: int) -> float:
    start = min(params.normal_top_level + EVAL_MOD_LEVELS, params.max_level)
    scale = 2.0 ** round(log2(params.rescale_ratio(start)))
    inside = EVAL_MOD_GAIN * 2.0**message_ratio * 2 * slots * _rounding(params) / scale / sqrt(2)
    return hypot(inside, 2 * _operation(params, slots))


def _error(params: Params, slots: int, message_ratio: int) -> float:
    """Of random errors, and of the sine where all numbers are at the end of the range."""
    sine = (2 * pi) ** 2 / 6 * CENTRED**3 / 4.0**message_ratio
    return hypot(_bootstrap(params, slots, message_ratio), sine)
