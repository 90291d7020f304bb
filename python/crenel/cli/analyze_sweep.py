"""``crenel analyze --sweep``: an operation over limb counts and batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crenel import analyze, sweep
from crenel.cli.analyze import Counters, Lab, Operation, limbs_of, rates_of, warn
from crenel.cli.output import expect_figure, expect_new, numbers, table
from crenel.cli.sets import ckks_set
from crenel.counters import Counted, utilisation
from crenel.errors import ParameterError
from crenel.records import command_line, provenance, write_record
from crenel.sweep import Point

BATCHES, STEPS = "1,2,4,8,16", 12  # unless they are given

HEADER = ("limbs", "batch", "launches", "MB at L2", "MB DRAM", "of it keys", "largest MiB", "us bound",
          "us a ciphertext", "% L2", "% DRAM", "% multipliers")  # fmt: skip


def run(
    name: str,
    device: str,
    operation: Operation,
    batches: str,
    steps: int,
    json_path: Path | None,
    plot: Path | None,
    counters: Counters,
    rates: Path | None = None,
) -> None:
    """Print the table; write the files that were asked for."""
    expect_new(json_path)
    expect_figure(plot)
    ceilings = analyze.load_ceilings(rates)
    of_batches = numbers(batches, "--batches")
    if operation is Operation.bootstrap:
        raise ParameterError(
            "--sweep of a bootstrap, which has one number of limbs; expected hmult, hrot, rescale or hadd",
            {"operation": operation.value},
        )
    params = ckks_set(name)
    counted = counters.of(name, device, operation, params.max_level)
    lab = Lab(params, device)
    by_level = [limbs_of(params, level) for level in range(params.max_level + 1)]
    lowest = 0 if operation in (Operation.hrot, Operation.hadd) else 1  # a product needs a level to spend
    levels = [lowest + level for level in sweep.levels_of(by_level[lowest:], steps)]
    points = sweep.sweep(
        lambda level, batch: lab.records(operation, level, batch),
        by_level, levels, sorted(set(of_batches)), ceilings,
    )  # fmt: skip
    title = f"{operation.value}, {name}, on {lab.context.device.name}"
    table(HEADER, [_cells(p) for p in points], title=title)
    print(f"\nAt the ceilings of one {ceilings.device}.")
    warn(ceilings, lab.context.device)
    if counted:
        _print_counted(counted, ceilings)
    if json_path is not None:
        facts = {"kind": "crenel-sweep", "format": 1, "params": name, "operation": operation.value,
                 "device": lab.context.device.name,
                 "provenance": provenance(lab.context.device, command_line()),
                 "ceilings": rates_of(rates), "ceilings_of": ceilings.device}  # fmt: skip
        write_record(json_path, {**facts, "points": [p.as_dict() for p in points]})
    if plot is not None:
        from crenel.plot_sweep import draw

        draw(points, ceilings, title, plot, counted)
        print(f"\nwrote {plot}")


def _cells(p: Point) -> tuple[str, ...]:
    row = p.total
    shares = [100 * part / row.bound for part in (row.l2_time, row.dram_time, row.arithmetic_time)]
    return (
        str(p.limbs), str(p.batch), str(row.launches), f"{row.bytes / 1e6:.1f}",
        f"{row.dram_bytes / 1e6:.1f}", f"{row.streamed_bytes / 1e6:.1f}", f"{p.largest / (1 << 20):.1f}",
        f"{1e6 * row.bound:.1f}", f"{1e6 * row.bound / p.batch:.1f}", *(f"{share:.0f}" for share in shares),
    )  # fmt: skip


def _print_counted(counted: Sequence[Counted], ceilings: analyze.Ceilings) -> None:
    print("\nBy hardware counters:")
    rows = []
    for each in counted:
        l2, memory = utilisation(each, ceilings)
        rows.append((each.kernel, str(each.launches), f"{each.us:.1f}", f"{each.l2_bytes / 1e6:.1f}",
                     f"{each.dram_bytes / 1e6:.1f}", f"{100 * l2:.0f}", f"{100 * memory:.0f}"))  # fmt: skip
    table(("kernel", "launches", "us", "MB at L2", "MB DRAM", "% of L2", "% of DRAM"), rows)
