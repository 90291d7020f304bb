"""What placement reads, in microseconds of a cost model: the chain of a parameter set."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from crenel.arguments import items, whole
from crenel.ckks import BootstrapOptions, Params
from crenel.errors import ParameterError
from crenel.nn.cost import CostModel
from crenel.nn.passes.structure import Chain
from crenel.nn.planning import planning_context

FACTORS = 3  # of SlotToCoeff, one level each, as `plan.Boot` leaves them
SAVED = 3  # primes, by which a bootstrap to a lower level is raised to fewer, to be looked at


def output_level(params: Params) -> int:
    """Level after a bootstrap that begins with coefficients to slots. Raises ParameterError for parameters
    without bootstraps."""
    if params.max_level <= params.normal_top_level:
        raise ParameterError(
            f"parameters {params.name or params.id} have no levels for bootstraps; use a boot... set",
            {"levels": params.max_level - params.normal_top_level},
        )
    return params.normal_top_level - FACTORS


@cache
def unraised(params: Params) -> tuple[int, ...]:
    """By the level at which a bootstrap ends, 0 to `output_level`: primes that it is not raised to, of those
    that one to the highest level is; as many for any slots. Raises as `output_level`."""
    found = []
    context = planning_context(params)
    for target in range(output_level(params) + 1):
        options = BootstrapOptions(slots=2, message="real", target_level=target)
        report = context.bootstrapper(options=options, progress=False).report()
        found.append(report.full_raised_limbs - report.raised_limbs)
    return tuple(found)


def targets(params: Params) -> tuple[int, ...]:
    """Levels at which bootstraps may as well end, the highest first: each is the highest of those that save
    as many primes, `SAVED` more at least than the one before. Raises as `output_level`."""
    saved, found = unraised(params), [output_level(params)]
    for level in range(found[0] - 1, 0, -1):
        if saved[level] >= saved[found[-1]] + SAVED:
            found.append(level)
    return tuple(found)


def ends(params: Params, levels: Iterable[int]) -> list[int | None]:
    """Those levels, each once, the highest first, as targets of bootstraps, of which the highest is None.

    Raises TypeError for what are no integers, ParameterError for levels at which no bootstrap ends, and as
    `output_level`."""
    wanted = {whole("targets", level) for level in items("targets", levels)}
    highest = output_level(params) if wanted else 0
    if wanted and not (min(wanted) >= 0 and max(wanted) <= highest):
        found = sorted(wanted)
        raise ParameterError(
            f"targets {found}, expected levels from 0 to {highest}", {"targets": str(found), "most": highest}
        )
    return [None if level == highest else level for level in sorted(wanted, reverse=True)]


def adjusting_levels(params: Params, level: int, target: int) -> list[int]:
    """Levels at which `Evaluator.adjust_level` multiplies by a constant and rescales, on the way from a level
    to a lower one, both with canonical scales: limbs go for nothing where the primes of the lower level are a
    part of those of the higher one. Empty where they are equal."""
    out: list[int] = []
    while level > target:

        def fits(high: int, low: int) -> bool:
            return all(h >= w for h, w in zip(params.levels[high], params.levels[low], strict=True))

        below = range(target + 1, level + 1)
        last = next((m for m in below if fits(level, m) and fits(m - 1, target)), None)
        at = last if last is not None else next((m for m in below if fits(level, m)), level)
        out.append(at)
        level = target if last is not None else at - 1
    return out


def chain(
    params: Params, costs: CostModel, *, batch: int = 1, entry: int | None = None, result: int = 0
) -> Chain:
    """The normal levels of a parameter set and what adjusting levels costs. Raises what CostModel raises."""
    top = params.normal_top_level
    once = [0.0] + [costs.us("adjust_level", params, level, batch=batch) for level in range(1, top + 1)]
    rows = [[0.0] * (top + 1) for _ in range(top + 1)]
    for i in range(1, top + 1):
        for j in range(i):
            rows[i][j] = sum(once[at] for at in adjusting_levels(params, i, j))
    return Chain(top, tuple(tuple(row) for row in rows), entry, result)
