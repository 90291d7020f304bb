"""``crenel analyze``: what an operation moves and computes, against the measured ceilings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import crenel
from crenel import analyze, ckks, ncu
from crenel import counters as counting
from crenel.account import Record
from crenel.analyze import Ceilings, Row
from crenel.ceilings import read
from crenel.cli.output import expect_figure, expect_new, size, table
from crenel.cli.sets import ckks_set
from crenel.counters import Counted
from crenel.errors import ParameterError, UnsupportedError
from crenel.records import command_line, provenance, write_record

HEADER = ("launches", "MB read", "MB written", "% of bytes", "MB DRAM", "10^6 products", "us L2", "us DRAM",
          "us arithmetic", "us bound", "% of bound")  # fmt: skip


WORD = 4  # bytes of a residue


class Operation(str, Enum):
    """What can be analysed."""

    bootstrap = "bootstrap"
    hmult = "hmult"
    hrot = "hrot"
    rescale = "rescale"
    hadd = "hadd"


class Lab:
    """One context with the keys that an operation needs; those for aligned levels, too, where there are some
    (`Params.highest_aligned`), as benchmarks and bootstraps have them."""

    def __init__(self, params: ckks.Params, device: str) -> None:
        self.params = params
        self.context = ckks.Context(params, device=device)
        if self.context.device.kind != "cuda":
            raise UnsupportedError(f"device {device} states no traffic; use cuda or cuda:dry")
        self.evaluator: ckks.Evaluator | None = None

    @cached_property
    def client(self) -> ckks.Client:
        """With a key of its own, made when it is first asked for."""
        return self.context.keygen()

    def prepare(self, operation: Operation, level: int, batch: int = 1) -> Callable[[], object]:
        """The operation on fresh ciphertexts of this level, as a call."""
        values = [0.5, -0.25] if batch == 1 else np.tile([0.5, -0.25], (batch, 1))
        a = self.client.encrypt(values, level=level)
        if operation is Operation.bootstrap:
            boot = self.context.bootstrapper(self.client.evaluation_keys(bootstrap=True))
            return lambda: boot.eager(a)
        if self.evaluator is None:
            aligned = self.params.highest_aligned(self.params.max_level) is not None
            keys = self.client.evaluation_keys(rotations=[1], aligned=aligned)
            self.evaluator = self.context.evaluator(keys)
        ev = self.evaluator
        if operation is Operation.hrot:
            return lambda: ev.rotate(a, 1)
        b = self.client.encrypt(values, level=level)
        if operation is Operation.hmult:
            return lambda: ev.multiply(a, b)
        if operation is Operation.hadd:
            return lambda: ev.add(a, b)
        product = ev.multiply(a, b)
        return lambda: ev.rescale(product)

    def records(self, operation: Operation, level: int, batch: int = 1) -> list[Record]:
        """The launches of one run; one run before warms the memory pool."""
        work = self.prepare(operation, level, batch)
        work()
        with crenel.profile(self.context) as account:
            work()
        return account.records()


@dataclass(frozen=True)
class Counters:
    """Where counters come from: a record, or the GPU that runs the operation, which may become a record."""

    count: bool = False
    source: Path | None = None
    target: Path | None = None
    seconds: float = 600.0

    def __post_init__(self) -> None:
        if self.wanted and self.source is not None:
            raise ParameterError("--counters-from with --counters, expected one of them")

    @property
    def wanted(self) -> bool:
        """By the profiler?"""
        return self.count or self.target is not None

    def operation(self, asked: Operation | None, default: Operation) -> Operation:
        """The one asked for; else the first that the record has; else the default.

        Raises
        ------
        ParameterError : a record of none that can be analysed
        """
        if asked is not None or self.source is None:
            return asked or default
        known = [each.value for each in Operation]
        found = counting.operations(self.source)
        for name in found:
            if name in known:
                return Operation(name)
        raise ParameterError(f"{self.source} has counters of {', '.join(found)}, expected {', '.join(known)}")

    def of(self, name: str, device: str, operation: Operation, level: int) -> list[Counted]:
        """Kernels of the operation, longest first; none where nobody asked."""
        if self.source is not None:
            return counting.read(self.source, operation.value)
        if not self.wanted:
            return []
        expect_new(self.target, "--counters-to")
        ncu.expect(device)
        rows = ncu.count(name, device, operation.value, level, self.seconds)
        if self.target is not None:
            described = crenel.Device(device).description
            write_record(self.target, counting.document(rows, name, operation.value, described))
            print(f"wrote {self.target}")
        return counting.summed(rows)


_NONE = Counters()


def rates_of(path: Path | None) -> dict[str, Any]:
    """What records keep of the ceilings that a table was made with."""
    return dict((analyze.data() if path is None else read(path))["rates"])


def warn(ceilings: Ceilings, device: crenel.Device) -> None:
    """On stderr, where the ceilings are of another card than the device."""
    if (text := ceilings.warning(device.description)) is not None:
        print(f"warning: {text}", file=sys.stderr)


def limbs_of(params: ckks.Params, level: int) -> int:
    """Limbs of a ciphertext."""
    return sum(params.levels[level])


def level_with_limbs(params: ckks.Params, limbs: int) -> int:
    """The level whose limb count comes closest."""
    return min(range(params.max_level + 1), key=lambda level: abs(limbs_of(params, level) - limbs))


def run(
    name: str,
    device: str,
    operation: Operation,
    level: int | None,
    json_path: Path | None,
    plot: Path | None,
    every_limb_count: bool,
    counters: Counters = _NONE,
    rates: Path | None = None,
) -> None:
    """Print the tables; write the files that were asked for."""
    expect_new(json_path)
    expect_figure(plot)
    ceilings = analyze.load_ceilings(rates)
    params = ckks_set(name)
    default = 0 if operation is Operation.bootstrap else params.max_level
    at = default if level is None else level
    if not 0 <= at <= params.max_level:
        raise ParameterError(f"level {at}, expected 0 to {params.max_level}")
    counted = counters.of(name, device, operation, at)
    lab = Lab(params, device)
    records = lab.records(operation, at)
    title = f"{operation.value}, {name}, level {at}, on {lab.context.device.name}"
    _print_tables(title, records, ceilings, every_limb_count)
    warn(ceilings, lab.context.device)
    switches = key_switches(lab)
    if counted:
        _print_counted(counted, analyze.by_kernel(records, ceilings))
    _print_papers(analyze.total(records, ceilings), operation, switches)
    if json_path is not None:
        facts = {"kind": "crenel-traffic", "format": 1, "params": name,
                 "operation": operation.value, "level": at, "device": lab.context.device.name,
                 "provenance": provenance(lab.context.device, command_line()),
                 "ceilings": rates_of(rates), "ceilings_of": ceilings.device,
                 "key_switch": switches}  # fmt: skip
        write_record(json_path, {**facts, **analyze.document(records, ceilings)})
    if plot is not None:
        _plot(records, ceilings, title, plot, counted)


def key_switches(lab: Lab) -> list[dict[str, Any]]:
    """Table III of Theodosian: our key switch at the levels closest to its limb counts."""
    if lab.params.alpha == 0:
        return []
    rows: list[dict[str, Any]] = []
    for paper in analyze.data()["papers"]["theodosian"]["key_switch_mb"]:
        level = level_with_limbs(lab.params, paper["limbs"])
        limbs = limbs_of(lab.params, level)
        records = lab.records(Operation.hrot, level)
        # A key has two polynomials of the extended window a digit.
        of_digit = 2 * WORD * lab.params.ring_dim * (limbs + lab.params.alpha)
        row = {
            "limbs": limbs, "alpha": lab.params.alpha,
            "digits": sum(r["streamed_bytes"] for r in records) // of_digit,
            "bytes": list(analyze.key_switch_stages(records)), "paper": paper,
        }  # fmt: skip
        if all(row["limbs"] != other["limbs"] for other in rows):
            rows.append(row)
    return rows


def _cells(row: Row, whole: Row) -> tuple[str, ...]:
    def share(part: float, all_: float) -> str:
        return f"{100 * part / all_:.1f}" if all_ else "-"

    return (
        row.name, str(row.launches), f"{row.read_bytes / 1e6:.1f}", f"{row.written_bytes / 1e6:.1f}",
        share(row.bytes, whole.bytes), f"{row.dram_bytes / 1e6:.1f}", f"{row.multiply_adds / 1e6:.1f}",
        f"{1e6 * row.l2_time:.1f}", f"{1e6 * row.dram_time:.1f}", f"{1e6 * row.arithmetic_time:.1f}",
        f"{1e6 * row.bound:.1f}", share(row.bound, whole.bound),
    )  # fmt: skip


def _print_tables(title: str, records: Sequence[Record], ceilings: Ceilings, every_limb_count: bool) -> None:
    whole = analyze.total(records, ceilings)
    groups = {
        "operation": analyze.by_work(records, ceilings),
        "stage": analyze.by_stage(records, ceilings),
        "limbs": analyze.by_limbs(records, ceilings, exact=every_limb_count),
        "kernel": analyze.by_kernel(records, ceilings),
    }
    print(
        f"{title}: {size(whole.bytes)} through L2, of them {size(whole.streamed_bytes)} keys and plaintexts"
    )
    for name, rows in groups.items():
        print()
        table((name, *HEADER), [_cells(row, whole) for row in [*rows, whole]])
    c = ceilings
    print(
        f"\nTimes at the ceilings of one {c.device} alone: L2 {c.l2 / 1e12:.1f} TB/s (written"
        f" {c.l2_write / 1e12:.1f}), DRAM {c.dram_read / 1e12:.2f} TB/s read, {c.dram_write / 1e12:.2f}"
        f" written, {c.dram / 1e12:.2f} both, {c.butterfly / 1e12:.2f}e12 butterflies and"
        f" {c.multiply_add / 1e12:.1f}e12 other products a second."
        f"\nDRAM: {whole.streamed_bytes / 1e9:.1f} GB of keys and plaintexts, and"
        f" {(whole.dram_bytes - whole.streamed_bytes) / 1e9:.1f} GB that fell out of L2, by the model of"
        f" crenel.dram: {whole.dram_read_bytes / 1e9:.1f} GB read,"
        f" {whole.dram_written_bytes / 1e9:.1f} GB written."
        "\nBound: the longest of the three, launch by launch."
        f"\nStarting the launches takes {1e6 * whole.launch_time:.0f} us where nothing hides it,"
        f" {1e6 * whole.launches * c.launch:.0f} us in a graph."
    )


def _print_papers(whole: Row, operation: Operation, switches: Sequence[dict[str, Any]]) -> None:
    paper = analyze.data()["papers"]["theodosian"]
    print("\nTheodosian prints:")
    for where, fact in paper["facts"]:
        print(f"  {where}: {fact}")
    if operation is Operation.bootstrap:
        print(f"  ours: {whole.bytes / 1e9:.1f} GB, against {paper['bootstrap_gb']} GB and, optimised,"
              f" {paper['bootstrap_optimised_gb']} GB")  # fmt: skip
    if switches:
        print("\nKey switch, MB at L2 (Theodosian, Table III); ours runs the last pass of ModUp in stage 2:")
        rows = []
        for row in switches:
            ours, theirs = [b / 1e6 for b in row["bytes"]], row["paper"]["stages"]
            pairs = [cell for pair in zip(ours, theirs, strict=True) for cell in pair]
            numbers = [f"{n:.1f}" for n in (*pairs, sum(ours), sum(theirs))]
            rows.append((str(row["limbs"]), str(row["paper"]["limbs"]), *numbers))
        head = [f"{stage}, {who}" for stage in ("ModUp", "key product", "ModDown", "sum")
                for who in ("ours", "paper")]  # fmt: skip
        table(("limbs, ours", "paper", *head), rows)


def _print_counted(counted: Sequence[Counted], rows: Sequence[Row]) -> None:
    print("\nBy hardware counters, and as stated; DRAM by the model:")
    of = {row.name: row for row in rows}
    cells = []
    for each in counted:
        own = of.get(each.kernel, Row(each.kernel))
        cells.append((
            each.kernel, str(each.launches), str(own.launches),
            f"{each.us:.1f}", f"{1e6 * own.bound:.1f}", f"{1e8 * own.bound / each.us:.0f}",
            f"{each.l2_bytes / 1e6:.1f}", f"{own.bytes / 1e6:.1f}",
            f"{each.dram_bytes / 1e6:.1f}", f"{own.dram_bytes / 1e6:.1f}",
        ))  # fmt: skip
    head = ("launches", "stated", "us", "us bound", "% of us", "MB at L2", "stated", "MB DRAM", "model")
    table(("kernel", *head), cells)


def _plot(
    records: Sequence[Record], ceilings: Ceilings, title: str, path: Path, counted: Sequence[Counted] = ()
) -> None:
    from crenel.plot_traffic import draw

    draw(records, ceilings, title, path, counted)
    print(f"\nwrote {path}")
