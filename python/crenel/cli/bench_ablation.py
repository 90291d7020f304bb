"""``crenel bench ablation``: what each optimisation is worth, on any device."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crenel.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from crenel import Device
    from crenel.ablation import Bench, Measured

OPERATIONS = "bootstrap,key_switch"


def ablation(
    parameters: Annotated[str, typer.Option("--params", help="A set of CKKS; toy ones too.")] = "boot40",
    device: Annotated[
        str, typer.Option(help="cuda, cuda:<index>, cuda:dry (or another model), cpu or ref.")
    ] = "auto",
    operations: Annotated[str, typer.Option(help="bootstrap, key_switch, or both by commas.")] = OPERATIONS,
    limbs: Annotated[str, typer.Option(help="Of key switches, by commas.")] = "48,24",
    repeats: Annotated[int, typer.Option(help="Times that a configuration is timed, at most.", min=1)] = 9,
    seconds: Annotated[float, typer.Option(help="Of timing a configuration, about.", min=0)] = 0.3,
    seed: Annotated[int | None, typer.Option(help="Of the values; fresh ones by default.", min=0)] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write the results to a new file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the ladders, to a new file: .png, .pdf or .svg.")
    ] = None,
    ceilings: Annotated[
        Path | None,
        typer.Option(help="Rates of the card, by dev/kernels/ceilings_probe.cu; default an H200's."),
    ] = None,
    algorithm: Annotated[
        bool, typer.Option(help="Bootstraps without the savings of the algorithm, too: other keys for each.")
    ] = True,
) -> None:
    """Ladders of optimisations after Theodosian (Fig. 7a, 8a) and Cheddar (Table 8), ours, each switch
    off alone, each number of launches at its plain value, and bootstraps without savings of the algorithm.
    Results must keep their bits, or where an algorithm differs stay within its errors: exit
    status 1 where one does not. On cuda:dry nothing runs: times are bounds of what would."""
    import secrets

    from crenel import ablation as ladder
    from crenel import ablation_algorithm as savings
    from crenel.ceilings import load_ceilings
    from crenel.cli.analyze import warn
    from crenel.cli.output import expect_figure, expect_new, say
    from crenel.records import command_line, provenance, write_record

    expect_new(file)
    expect_figure(plot)
    plan, rates = _plan(operations, limbs), load_ceilings(ceilings)
    of_values = secrets.randbits(32) if seed is None else seed
    on = _opened(device)
    params = ladder.of(parameters)
    done = []
    for name, count in plan:
        bench = ladder.prepare(params, on, name, count, of_values)
        bench.ceilings = rates
        rows = ladder.ladders(bench, repeats, seconds, say)
        if algorithm and name == "bootstrap":
            rows += savings.ladders(bench, repeats, seconds, of_values, say)
        say("")
        _print(bench, rows, parameters)
        done.append((bench, rows))
    _print_fusions()
    where = {**provenance(on, command_line()), "seed": of_values}
    document = ladder.document(done, parameters, where, savings.LADDERS)
    if on.kind == "cuda":
        warn(rates, on)
    if file is not None:
        write_record(file, document)
    _draw(document, plot)
    raise typer.Exit(1 if _tell_wrong(row for _, rows in done for row in rows) else 0)


def _opened(name: str) -> Device:
    from crenel import Device

    device = Device(name)
    if device.parts and device.name.startswith("cuda:dry"):
        raise UnsupportedError(
            f"{device.name} computes nothing, and bounds are of one GPU's launches: expected cuda:dry, or "
            "devices that are there",
            {"device": device.name, "expected": "cuda:dry"},
        )
    return device


def _draw(document: dict[str, Any], file: Path | None) -> None:
    if file is None:
        return
    from crenel.plot_ablation import draw

    draw(document, file)
    print(f"wrote {file}")


def _plan(operations: str, limbs: str) -> list[tuple[str, int]]:
    """Operations with their limbs, 0 where an operation has no choice of them; ParameterError for one that is
    unknown or a number that is none."""
    from crenel.ablation import LADDERS
    from crenel.cli.output import numbers

    names = [name.strip() for name in operations.split(",") if name.strip()]
    for name in names:
        if name not in LADDERS:
            known = ", ".join(LADDERS)
            raise ParameterError(f"operation '{name}', expected some of {known}", {"operation": name})
    return [
        (name, count)
        for name in names
        for count in (numbers(limbs, "--limbs") if name == "key_switch" else (0,))
    ]


def _tell_wrong(rows: Iterable[Measured]) -> bool:
    """Whether a row is wrong; each is said on stderr."""
    wrong = [row for row in rows if row.correct is False]
    for row in wrong:
        print(f"WRONG: {row.ladder}, {row.rung}: {_wrong(row)}", file=sys.stderr)
    return bool(wrong)


def _wrong(row: Measured) -> str:
    if row.options and row.expected_error is not None and row.error is not None:
        return f"error {row.error:.3g} where {row.expected_error:.3g} is expected, or other bits"
    return "other bits than with all optimisations"


def _print(bench: Bench, rows: Sequence[Measured], parameters: str) -> None:
    from crenel.ablation import LADDERS, NOT_PLAIN, NUMBERS, WITHOUT
    from crenel.ablation_algorithm import LADDERS as SAVINGS
    from crenel.cli.output import table

    print(f"\n{bench.title}, {parameters} on {bench.device.description}")
    if bench.in_a_row > 1:
        print(f"  {bench.in_a_row} in a row, figures of one")
    if bench.device.kind == "cuda":
        print(
            "  bound: each launch at the longest of its times at the ceilings of one"
            f" {bench.ceilings.device}, no shorter than its start"
        )
    known = (*LADDERS[bench.operation], *SAVINGS)
    alone = {WITHOUT: "each off alone", NUMBERS: "numbers of launches, each at its plain value alone"}
    titles: Mapping[str, str] = {each.name: each.title for each in known} | alone
    absent = {each.name: each.absent for each in known} | {NUMBERS: tuple(NOT_PLAIN.items())}
    whole = next(row for row in rows if row.ladder == WITHOUT)
    stated = whole.launches is not None
    header = ["rung", "us bound" if bench.dry else "median us", "speed-up"]
    header += ["us bound"] if stated and not bench.dry else []
    header += ["launches", "MB at L2", "MB DRAM"] if stated else []
    header += [] if bench.dry else ["result"]
    for name in dict.fromkeys(row.ladder for row in rows):
        own = [row for row in rows if row.ladder == name]
        print()
        last: float | None = None
        cells = []
        for row in own:
            reference = whole.us if name in alone else last
            ratio = f"{reference / row.us:.3f}" if reference and row.us else "-"
            cells.append(_cells(row, ratio, stated, bench.dry))
            last = row.us
        table(["without" if name == WITHOUT else "rung", *header[1:]], cells, title=titles[name])
        for row in own:
            if row.note:
                print(f"  {row.rung}: {row.note}")
        for step, why in absent.get(name, ()):
            print(f"  {step}: {why}")


def _cells(row: Measured, ratio: str, stated: bool, dry: bool) -> list[str]:
    cells = [row.rung, "-" if row.us is None else f"{row.us:.1f}", ratio]
    if stated:
        cells += [] if dry else [f"{row.paced_us:.1f}"]
        cells += [str(row.launches), f"{(row.bytes or 0) / 1e6:.1f}", f"{(row.dram_bytes or 0) / 1e6:.1f}"]
    if not dry:
        cells.append("WRONG" if not row.correct else row.digest or "-")
    return cells


def _print_fusions() -> None:
    from crenel.ablation import FUSIONS

    print("\nFusions, as Cheddar names them, and their switches here:")
    for fusion in FUSIONS:
        switches = ", ".join(fusion.switches) or "-"
        note = f" ({fusion.note})" if fusion.note else ""
        print(f"  {fusion.name}  {fusion.what}: {switches}{note}")
