"""``crenel bench growth``: how times grow over rings, limbs, batches, slots and threads."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from crenel.growth import Growth, Row

Json = dict[str, Any]


def growth(
    device: Annotated[str, typer.Option(help="cuda, cuda:<index>, cuda:dry, cpu or ref.")] = "auto",
    axes: Annotated[
        str | None,
        typer.Option(help="By commas: log_n, limbs, batch, slots, threads (of cpu). Default: all it has."),
    ] = None,
    parameters: Annotated[
        str, typer.Option("--params", help="Where limbs, batches and threads grow; toy ones too.")
    ] = "leveled-n16-s40",
    boot: Annotated[str, typer.Option(help="Where slots grow; toy ones too.")] = "boot40",
    log_n: Annotated[str, typer.Option("--log-n", help="Rings, by commas.")] = "13,14,15,16,17",
    steps: Annotated[int, typer.Option(help="Numbers of limbs, at most.", min=2)] = 8,
    batches: Annotated[str, typer.Option(help="By commas.")] = "1,2,4,8,16",
    log_slots: Annotated[str, typer.Option("--log-slots", help="log2 of slots, by commas.")] = "9,11,13,15",
    threads: Annotated[str, typer.Option(help="Of the CPU, by commas.")] = "1,2,4,8,16",
    repeats: Annotated[int, typer.Option(help="Times that a point is timed, at most.", min=1)] = 9,
    seconds: Annotated[float, typer.Option(help="Of timing a point, about.", min=0)] = 0.2,
    limit: Annotated[float, typer.Option(help="Seconds after which no point is begun.", min=0)] = 600,
    seed: Annotated[int | None, typer.Option(help="Of the values; fresh ones by default.", min=0)] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write the results to a new file.")] = None,
) -> None:
    """Times of operations over the ring degree, limbs and batches, of bootstraps over slots, and of a CPU
    over threads. On a GPU they are of replayed graphs; on cuda:dry nothing runs, and times are bounds. Rings
    too small to be secure for the chain that all have are said to be. What is left out is told, with the
    reason. Exit status 1 when a result is wrong.
    """
    import crenel
    from crenel import growth as curves
    from crenel.cli.output import expect_new, numbers, say
    from crenel.records import command_line, provenance, write_record

    expect_new(file)
    plan = curves.Plan(
        params=parameters,
        boot=boot,
        log_n=numbers(log_n, "--log-n"),
        steps=steps,
        batches=numbers(batches, "--batches"),
        log_slots=numbers(log_slots, "--log-slots"),
        threads=numbers(threads, "--threads"),
        repeats=repeats,
        seconds=seconds,
        limit=limit,
        seed=secrets.randbits(32) if seed is None else seed,
    )
    on = crenel.Device(device)
    names = _all_of(on) if axes is None else [name.strip() for name in axes.split(",")]
    found = curves.measure(on, names, plan, say)
    say("")
    _print(found, on.description)
    if file is not None:
        write_record(file, curves.document(found, plan, provenance(on, command_line())))
    raise typer.Exit(1 if any(row.get("correct") is False for row in found.rows) else 0)


def _all_of(device: Any) -> list[str]:
    """Bootstraps of a whole ring take minutes on `ref`, and long on a CPU, so last; threads are a CPU's."""
    names = ["log_n", "limbs", "batch"]
    return names + {"cuda": ["slots"], "cpu": ["threads", "slots"]}.get(device.kind, [])


def _print(found: Growth, description: str) -> None:
    from crenel.cli.output import table
    from crenel.growth import AXES, OPERATIONS

    rows = found.rows
    print(description)
    for axis in dict.fromkeys(row["axis"] for row in rows):
        own = [row for row in rows if row["axis"] == axis]
        xs = list(dict.fromkeys(row["x"] for row in own))
        by = {(row["name"], row["x"]): row for row in own}
        names = sorted({row["name"] for row in own}, key=[*OPERATIONS, "bootstrap"].index)
        cells = [[name, *(_us(by.get((name, x))) for x in xs)] for name in names]
        print()
        table(["us", *map(str, xs)], cells, title=f"{AXES[axis]}, {own[0]['params']}")
        weak = sorted({row["log_n"] for row in own if row["security_bits"] < 128})
        if weak:
            print(f"  below 128 bits of security, for times only: N = 2^{', 2^'.join(map(str, weak))}")
        for row in own:
            if row.get("correct") is False:
                print(f"WRONG: {row['name']} at {axis} {row['x']}: error {row['error']}", file=sys.stderr)
    if found.left_out:
        print("\nleft out:")
    for each in found.left_out:
        print(f"  {AXES[each.axis]} {each.x}{f', {each.name}' if each.name else ''}: {each.why}")


def _us(row: Row | None) -> str:
    if row is None:
        return "-"
    us = row["bound_us"] if row["latency_us"] is None else row["latency_us"]
    return "-" if us is None else f"{us:.1f}"
