"""From a trained network to a program: the passes in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from crenel import ckks
from crenel._crenel import Device
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.clear import Slots
from crenel.nn.cost import CostModel
from crenel.nn.graph import Graph, checked_samples
from crenel.nn.interpret import prepared
from crenel.nn.judge import contained, expect_encodable, steady
from crenel.nn.linear import SlotTransform
from crenel.nn.ops import Reals
from crenel.nn.passes.approximate import Approximate, Strategy
from crenel.nn.passes.approximate import agreement as agreement_of
from crenel.nn.passes.calibrate import Calibrate, Range
from crenel.nn.passes.fill import Fill, behind_identity, sources, strange
from crenel.nn.passes.fold import Fold
from crenel.nn.passes.interleave import Interleave
from crenel.nn.passes.kinds import Few
from crenel.nn.passes.layouts import Layouts, Levelled
from crenel.nn.passes.levels import Levels
from crenel.nn.passes.lower import Lower
from crenel.nn.passes.prices import AbstractPrices, prices_of
from crenel.nn.passes.refreshes import KINDS, WORTH, Refreshes
from crenel.nn.passes.scales import Scales
from crenel.nn.passes.splits import Splits
from crenel.nn.passes.unfold import Unfold
from crenel.nn.plan import Decision, Plan, Transform
from crenel.nn.program import Expected, Program
from crenel.nn.trace import Module, trace

JUDGED = 32  # samples, spread over all, on which the expected error is measured


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
    kinds: int = KINDS,
) -> Program:
    """A program that computes a network on encrypted samples.

    Parameters
    ----------
    model : a module of crenel.nn
    samples : (count, *input shape): like what the program will see, best a hundred of the training's; ranges,
        densities and degrees come from them
    params : what is computed with
    activation : how activations become polynomials: 'fit' (least squares weighted by what was measured),
        'chebyshev' (interpolation), 'minimax' (ReLU by a composite sign, where `degree` names none:
        docs/theory/sign.md, "Comparators")
    degree : of the polynomials, for all or by origin; default the least with which the network agrees
    agreement : share of samples whose largest output must stay the same, where the degree is chosen
    composite : degrees of the sign's factors for 'minimax'
    margin : how far beyond what samples show values may go
    batch : most samples of one run: rows of the same ciphertexts, several in neighbouring slots if they fit
    device : where `Program.bind` computes
    costs : measured times, by which bootstraps are placed; default: key switches and limbs are counted
    lean : one kind of bootstrap, whatever it costs: gibibytes of keys and plaintexts less
    kinds : most kinds of bootstraps, by the slots of vectors and the level at which they end

    Needs no key and no device. Where there are bootstraps, their error is that of bootstrappers made on the
    CPU for it, one for each kind: seconds to tens of seconds and, of 'boot35', about 1 GiB of host
    memory while it lasts. Raises UnsupportedError naming every unknown module with its place, the levels that
    are missing, or the operation, limbs and batch of which `costs` has no time
    (`crenel.nn.cost.CostModel.with_stand_ins` takes others); ParameterError for shapes that do not fit,
    naming the place, for weights beyond what plaintexts hold, for samples that are not finite and for options
    out of range. Warns with CalibrationWarning and AgreementWarning.
    """
    few = _few(params, batch, lean, kinds)
    found = checked_samples(samples, None)
    network = _calibrated(model, found, params.slots, margin)
    approximate = Approximate(activation, degree, agreement, composite)
    graph, decisions = approximate(network.graph, network.bounds, network.ranges, found)
    prices = _prices(graph, network.bounds, params, costs, int(batch))
    plan, transforms = _laid_out(graph, network.bounds, prices, int(batch), few)
    plan = replace(plan, decisions=(*network.decisions, *decisions, *plan.decisions))
    some = found[np.linspace(0, len(found) - 1, min(JUDGED, len(found))).round().astype(int)]
    program = _filled(plan, transforms, params, int(batch), some, device)
    expect_encodable(program)
    time = None if costs is None else 1e-3 * prices.total(program.plan, program.transforms)
    return _judged(program, network, some, time)


def _few(params: ckks.Params, batch: int, lean: bool, kinds: int) -> Few:
    """How many kinds of bootstraps, of options that were checked."""
    if not isinstance(params, ckks.Params):
        raise ParameterError(
            f"params {params!r:.60}, expected ckks.Params, as of ckks.preset", {"params": f"{params!r:.60}"}
        )
    for name, number in (("batch", batch), ("kinds", kinds)):
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
            raise ParameterError(f"{name} {number}, expected a positive integer", {name: str(number)})
    return Few(1) if lean else Few(int(kinds), WORTH)


@dataclass(frozen=True, eq=False)
class _Network:
    """A network by what samples show of it.

    Attributes
    ----------
    exact, graph : as it is meant, and of what ciphertexts can do
    ranges, bounds : of the values of `graph`
    decisions : what was chosen for it
    """

    exact: Graph
    graph: Graph
    ranges: tuple[Range, ...]
    bounds: tuple[float, ...]
    decisions: tuple[Decision, ...]


def _calibrated(model: Module, samples: Reals, slots: int, margin: float) -> _Network:
    exact = Fold()(trace(model, samples.shape[1:]))
    graph, decisions = Unfold(slots, margin)(exact, samples)
    ranges = Calibrate()(graph, samples)
    return _Network(exact, graph, ranges, Scales(margin)(graph, ranges), decisions)


def _prices(
    graph: Graph, bounds: tuple[float, ...], params: ckks.Params, costs: CostModel | None, batch: int
) -> AbstractPrices:
    """Of ciphertexts with as many rows as so many samples are."""
    images = Interleave(batch).room(Lower(params.slots)(graph, bounds))
    return prices_of(params, costs, -(-batch // images))


def _laid_out(
    graph: Graph, bounds: tuple[float, ...], prices: AbstractPrices, batch: int, few: Few
) -> Levelled:
    """The cheapest plan, with its levels and bootstraps. What is strange to an input's slots goes through a
    linear layer first."""
    layouts = Layouts(prices, Interleave(batch), partial(_levelled, Refreshes(prices, few)))
    plan, transforms = layouts(graph, bounds)
    if len(graph.nodes[0].shape) != 2 and 0 in sources(plan, strange(plan, transforms)):
        return layouts(*behind_identity(graph, bounds))
    return plan, transforms


def _levelled(refreshes: Refreshes, plan: Plan, transforms: dict[int, SlotTransform]) -> Levelled:
    """Without bootstraps where the levels suffice, or where the parameters have none, with its error."""
    params = refreshes.prices.params
    try:
        levelled = Levels(params.normal_top_level, params.insecure)(plan)
    except UnsupportedError:
        if params.max_level <= params.normal_top_level:
            raise
        levelled = refreshes(plan, transforms)
    return Splits(refreshes.prices)(levelled, transforms)


def _filled(
    plan: Plan,
    transforms: dict[int, SlotTransform],
    params: ckks.Params,
    batch: int,
    samples: Reals,
    device: str | Device,
) -> Program:
    """The program of a plan, with what polynomials can stand in slots without an element, where zeros are
    not."""
    program = _made(plan, transforms, params, batch, device)
    if not strange(plan, transforms):
        return program
    means: dict[int, float] = {}

    def keep(number: int, made: list[Slots]) -> None:
        elements = plan.values[number].layout.unpack(np.stack([a.values for a in made]), len(samples))
        means[number] = float(elements.mean())

    with np.errstate(over="ignore", invalid="ignore"):
        program.simulate(samples, noise=False, watch=keep)
    filled = Fill(means)(plan, transforms)
    changed = {step.out: prepared(filled, step) for step in filled.steps
               if isinstance(step, Transform) and filled.values[step.out].fill}  # fmt: skip
    return _made(filled, transforms | changed, params, batch, device)


def _made(
    plan: Plan, transforms: dict[int, SlotTransform], params: ckks.Params, batch: int, device: str | Device
) -> Program:
    """A program of which nothing is expected yet."""
    program = Program(plan, params, batch, Expected(0.0, 0.0, 0.0, 0.0), device)
    program._kept["transforms"] = transforms
    return program


def _judged(program: Program, network: _Network, samples: Reals, milliseconds: float | None) -> Program:
    """The program with what is expected of it."""
    wanted = network.exact(samples)
    clear, noisy = contained(program, samples), steady(program, samples)
    expected = Expected(
        float(np.sqrt(np.mean((noisy - clear) ** 2))),
        float(np.sqrt(np.mean((clear - wanted) ** 2))),
        _largest(network.ranges[network.graph.output]),
        agreement_of(wanted, noisy),
        milliseconds,
        len(samples),
    )
    judged = replace(program, expected=expected)
    judged._kept.update(program._kept)
    judged._known.update(program._known)
    return judged


def _largest(found: Range) -> float:
    return max(abs(found.least), abs(found.largest))
