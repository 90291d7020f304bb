"""From a trained network to a program: the passes in their order."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from crenel import ckks
from crenel._crenel import Device
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.clear import Slots
from crenel.nn.cost import CostModel
from crenel.nn.graph import Graph, checked_samples
from crenel.nn.headroom import HEADROOM, first_beyond
from crenel.nn.interpret import prepared
from crenel.nn.linear import SlotTransform
from crenel.nn.ops import Reals
from crenel.nn.passes.approximate import Approximate, Strategy
from crenel.nn.passes.approximate import agreement as agreement_of
from crenel.nn.passes.calibrate import Calibrate, CalibrationWarning, Range
from crenel.nn.passes.fill import Fill, behind_identity, sources, strange
from crenel.nn.passes.fold import Fold
from crenel.nn.passes.interleave import Interleave
from crenel.nn.passes.layouts import Layouts
from crenel.nn.passes.levels import Levels
from crenel.nn.passes.lower import Lower
from crenel.nn.passes.prices import AbstractPrices, prices_of
from crenel.nn.passes.refreshes import Refreshes
from crenel.nn.passes.scales import Scales
from crenel.nn.passes.splits import Splits
from crenel.nn.passes.unfold import Unfold
from crenel.nn.plan import Plan, Transform
from crenel.nn.program import Expected, Program
from crenel.nn.trace import Module, trace

JUDGED = 32  # samples, spread over all, on which the expected error is measured
ENCODED_BITS = 62  # of a number times the scale


def compile(
    model: Module,
    samples: ArrayLike,
    *,
    params: ckks.Params,
    activation: Strategy = "fit",
    degree: int | Mapping[str, int] | None = None,
    agreement: float = 0.99,
    composite: str = "15,15,15",
    margin: float = 2.0,
    batch: int = 1,
    device: str | Device = "auto",
    costs: CostModel | None = None,
    lean: bool = False,
) -> Program:
    """A program that computes a network on encrypted samples.

    Parameters
    ----------
    model : a module of crenel.nn
    samples : (count, *input shape): like what the program will see, best a hundred of the training's; ranges,
        densities and degrees come from them
    params : what is computed with
    activation : how activations become polynomials: 'fit' (least squares weighted by what was measured),
        'chebyshev' (interpolation), 'minimax' (ReLU by a composite sign, where `degree` names none)
    degree : of the polynomials, for all or by origin; default the least with which the network agrees
    agreement : share of samples whose largest output must stay the same, where the degree is chosen
    composite : degrees of the sign's factors for 'minimax'
    margin : how far beyond what samples show values may go
    batch : most samples of one run: rows of the same ciphertexts, several in neighbouring slots if they fit
    device : where `Program.bind` computes
    costs : measured times, by which bootstraps are placed; default: key switches and limbs are counted
    lean : vectors of all sizes are refreshed by one kind of bootstrap, or by one beside those that share
        bootstraps, whatever it costs: gibibytes of keys and plaintexts less

    Needs no key and no device. Where there are bootstraps, their error is that of bootstrappers made on the
    CPU for it, one for each number of slots: seconds to tens of seconds and, of 'boot35', about 1 GiB of host
    memory while it lasts. Raises UnsupportedError naming every unknown module with its place, the levels that
    are missing, or the operation, limbs and batch of which `costs` has no time
    (`crenel.nn.cost.CostModel.with_stand_ins` takes others); ParameterError for shapes that do not fit,
    naming the place, for weights beyond what plaintexts hold, for samples that are not finite and for options
    out of range. Warns with CalibrationWarning and AgreementWarning.
    """
    if not isinstance(params, ckks.Params):
        raise ParameterError(
            f"params {params!r:.60}, expected ckks.Params, as of ckks.preset", {"params": f"{params!r:.60}"}
        )
    if not isinstance(batch, (int, np.integer)) or isinstance(batch, bool) or batch < 1:
        raise ParameterError(f"batch {batch}, expected a positive integer", {"batch": str(batch)})
    found = checked_samples(samples, None)
    exact = Fold()(trace(model, found.shape[1:]))
    unfolded, taken = Unfold(params.slots, margin)(exact, found)
    ranges = Calibrate()(unfolded, found)
    bounds = Scales(margin)(unfolded, ranges)
    graph, decisions = Approximate(activation, degree, agreement, composite)(unfolded, bounds, ranges, found)
    plan = Lower(params.slots)(graph, bounds)
    images = Interleave(int(batch)).room(plan)
    prices = prices_of(params, costs, -(-int(batch) // images))
    layouts = Layouts(prices, Interleave(int(batch)), partial(_levelled, prices, lean))
    plan, transforms = layouts(graph, bounds)
    if len(graph.nodes[0].shape) != 2 and 0 in sources(plan, strange(plan, transforms)):
        plan, transforms = layouts(*behind_identity(graph, bounds))
    plan = replace(plan, decisions=(*taken, *decisions, *plan.decisions))
    some = found[np.linspace(0, len(found) - 1, min(JUDGED, len(found))).round().astype(int)]
    plan, transforms = _filled(plan, transforms, params, some)
    program = Program(plan, params, int(batch), Expected(0.0, 0.0, 0.0, 0.0), device)
    program._kept["transforms"] = transforms
    _encodable(program)
    time = None if costs is None else 1e-3 * prices.total(plan, program.transforms)
    expected = replace(_judged(program, exact, some, time), largest=_largest(ranges[unfolded.output]))
    judged = replace(program, expected=expected)
    judged._kept.update(program._kept)
    judged._known.update(program._known)
    return judged


def _levelled(
    prices: AbstractPrices, lean: bool, plan: Plan, transforms: dict[int, SlotTransform]
) -> tuple[Plan, dict[int, SlotTransform]]:
    """Without bootstraps where the levels suffice, or where the parameters have none, with its error."""
    params = prices.params
    try:
        levelled = Levels(params.normal_top_level, params.insecure)(plan)
    except UnsupportedError:
        if params.max_level <= params.normal_top_level:
            raise
        levelled = Refreshes(prices, lean)(plan, transforms)
    return Splits(prices)(levelled, transforms)


def _filled(
    plan: Plan, transforms: dict[int, SlotTransform], params: ckks.Params, samples: Reals
) -> tuple[Plan, dict[int, SlotTransform]]:
    """With what polynomials can stand in slots without an element, where zeros are not."""
    if not strange(plan, transforms):
        return plan, transforms
    means: dict[int, float] = {}

    def keep(number: int, made: list[Slots]) -> None:
        elements = plan.values[number].layout.unpack(np.stack([a.values for a in made]), len(samples))
        means[number] = float(elements.mean())

    program = Program(plan, params, 1, Expected(0.0, 0.0, 0.0, 0.0))
    program._kept["transforms"] = transforms
    with np.errstate(over="ignore", invalid="ignore"):
        program.simulate(samples, noise=False, watch=keep)
    filled = Fill(means)(plan, transforms)
    changed = {step.out: prepared(filled, step) for step in filled.steps
               if isinstance(step, Transform) and filled.values[step.out].fill}  # fmt: skip
    return filled, transforms | changed


def _encodable(program: Program) -> None:
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


def _contained(program: Program, samples: Reals) -> Reals:
    """The plan's result in the clear. Raises UnsupportedError naming the first value that leaves what a
    ciphertext can hold, in any of its slots.

    Slots without an element hold zeros in front of a polynomial and its value at 0 behind it, which samples
    need not have shown. One slot that overflows spoils all: errors of coefficients are in every slot.
    """
    plan = program.plan
    largest = {0: 1.0}

    def keep(number: int, made: list[Slots]) -> None:
        largest[number] = max(float(np.abs(a.values).max()) for a in made)

    clear = program.simulate(samples, noise=False, watch=keep)
    number = first_beyond(plan, largest)
    if number is not None:
        value, layout = plan.values[number], plan.values[number].layout
        raise UnsupportedError(
            f"{value.origin}: slots reach {largest[number]:.3g} times the bound, more than a ciphertext "
            f"holds; elements are in {layout.total} of {layout.ciphertexts * layout.slots} slots, and the "
            "others hold the polynomial's value at 0. Shift its input so that 0 is among its usual values, "
            "put a linear layer in front of what reads it, or take another degree",
            {"origin": value.origin, "largest": largest[number]},
        )
    return clear


def _judged(program: Program, exact: Graph, samples: Reals, milliseconds: float | None) -> Expected:
    wanted = exact(samples)
    clear, noisy = _contained(program, samples), _steady(program, samples)
    return Expected(
        float(np.sqrt(np.mean((noisy - clear) ** 2))),
        float(np.sqrt(np.mean((clear - wanted) ** 2))),
        float(np.abs(wanted).max()),
        agreement_of(wanted, noisy),
        milliseconds,
        len(samples),
    )


def _steady(program: Program, samples: Reals) -> Reals:
    """The plan's result with errors. Raises UnsupportedError naming the first value that they drive out of
    range: a polynomial grows fast beyond its interval, and the next one faster."""
    largest = {0: 1.0}

    def keep(number: int, made: list[Slots]) -> None:
        largest[number] = max(float(np.abs(a.values).max()) for a in made)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # said here
        found = program.simulate(samples, seed=0, watch=keep)
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


def _largest(found: Range) -> float:
    return max(abs(found.least), abs(found.largest))
