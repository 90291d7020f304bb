"""``crenel bench levels``: bootstraps to lower levels and of fewer slots."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from crenel.errors import ParameterError


def levels(
    params: Annotated[str, typer.Argument(help="A set with levels for bootstraps; toy ones too.")] = "boot40",
    device: Annotated[str, typer.Option(help="cuda, cuda:dry, cpu or ref.")] = "auto",
    targets: Annotated[
        str, typer.Option(help="Levels of results, by commas; 'highest' for the usual one.")
    ] = "highest,10,7,4,2",
    slots: Annotated[str, typer.Option(help="Of the vectors, by commas; 0: all.")] = "0",
    order: Annotated[str, typer.Option(help="coeff_to_slot_first, slot_to_coeff_first or both.")] = (
        "coeff_to_slot_first"
    ),
    message: Annotated[str, typer.Option(help="What the slots hold: complex, real or both.")] = "complex",
    values: Annotated[
        str, typer.Option(help="What they are like: unknown, centred, non_negative or constant.")
    ] = "unknown",
    compare: Annotated[
        bool, typer.Option("--compare", help="Each target without short_raise, real_symmetry, too.")
    ] = False,
    runs: Annotated[int, typer.Option(help="Fresh messages a row, on devices that compute.", min=1)] = 3,
    seed: Annotated[int | None, typer.Option(help="Of the values; fresh ones by default.", min=0)] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write the results to a new file.")] = None,
) -> None:
    """Primes, keys, memory and time of bootstraps to lower levels and of fewer slots. On cuda:dry nothing
    runs, and times are bounds by the launches; elsewhere results are decrypted and compared. Exit status 1
    when one is wrong."""
    import crenel
    from crenel import boot_levels
    from crenel.cli.output import expect_new, say
    from crenel.cli.sets import ckks_set
    from crenel.records import command_line, provenance, write_record

    expect_new(file)
    if order not in (*boot_levels.ORDERS, "both"):
        raise ParameterError(
            f"--order {order}, expected one of {', '.join(boot_levels.ORDERS)}, both", {"order": order}
        )
    if message not in (*boot_levels.MESSAGES, "both"):
        raise ParameterError(
            f"--message {message}, expected one of {', '.join(boot_levels.MESSAGES)}, both",
            {"message": message},
        )
    chosen, on = ckks_set(params), crenel.Device(device)
    plan = boot_levels.Plan(
        slots=[_number(word, "--slots") for word in slots.split(",")],
        targets=[
            None if word.strip() == "highest" else _number(word, "--targets") for word in targets.split(",")
        ],
        orders=boot_levels.ORDERS if order == "both" else (order,),
        short=(False, True) if compare else (True,),
        messages=boot_levels.MESSAGES if message == "both" else (message,),
        symmetry=(False, True) if compare else (True,),
        values=values,
        runs=runs,
        seed=secrets.randbits(32) if seed is None else seed,
    )
    rows = boot_levels.measure(chosen, on, plan, say)
    say("")
    _print(rows, f"{params}, {on.description}")
    if file is not None:
        write_record(file, boot_levels.document(rows, chosen, plan, provenance(on, command_line())))
    raise typer.Exit(1 if any(row.get("correct") is False for row in rows) else 0)


def _number(text: str, name: str) -> int:
    word = text.strip()
    if not (word.isascii() and word.isdecimal()) or len(word) > 9:
        also = " or 'highest'" if name == "--targets" else ""
        raise ParameterError(
            f"{name} {word[:20]!r}, expected numbers{also} by commas",
            {name: word[:20], "expected": "numbers"},
        )
    return int(word)


def _print(rows: list[dict[str, Any]], title: str) -> None:
    from crenel.cli.output import table

    dry = "bound_us" in rows[0]
    header = ["slots", "message", "order", "level", "raised", "EvalMod"]
    header += ["keys GiB", "plaintexts MiB", "workspace MiB"]
    header += (
        ["launches", "GB", "GB DRAM", "us bound"] if dry else ["us", "us CPU", "error", "expected", "wrong"]
    )
    cells: list[list[str]] = []
    for row in rows:
        first = "CtS" if row["order"] == "coeff_to_slot_first" else "StC"
        halved = ", half" if row["real_symmetry"] else ""
        cell = [
            str(row["slots"]), row["message"] + halved, first,
            f"{row['output']}{'' if row['short_raise'] else ', all primes'}",
            str(row["raised_limbs"]), str(row["eval_mod_limbs"]), f"{row['key_bytes'] / 2**30:.2f}",
            f"{row['plaintext_bytes'] / 2**20:.0f}", f"{row['workspace_bytes'] / 2**20:.0f}",
        ]  # fmt: skip
        if dry:
            cell += [str(row["launches"]), f"{row['bytes'] / 1e9:.2f}", f"{row['dram_bytes'] / 1e9:.2f}",
                     f"{row['bound_us']:.0f}"]  # fmt: skip
        else:
            cell += [f"{row['latency_us']:.0f}", f"{row['cpu_us']:.0f}", f"{row['error']:.3g}",
                     f"{row['expected_error']:.3g}", f"{row['failures']} of {row['runs']}"]  # fmt: skip
        cells.append(cell)
    table(header, cells, title=title)
