"""``crenel workload transfer``, ``search``, ``filter``, ``aes``: exact work on integers and bits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crenel.errors import InsecureParametersWarning, ParameterError

if TYPE_CHECKING:
    from crenel.workloads.integers.session import Outcome, Session

QUICK, ON_GPU = "toy-lut4", "lut4-128"
MOST_TEXT = 1 << 20  # bytes of --data
TEXT = (
    "the server keeps the text and finds what it is asked for; neither the text nor the places are known to "
    "the server, and a pattern that is hidden is not known to it either."
)
WHERE = "40 <= age < 65 and (city == 3 or not income < 2500)"

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref.")]
Params = Annotated[
    str, typer.Option("--set", help="A set for tables; default: a toy on CPUs, lut4-128 on GPUs.")
]
Seed = Annotated[int, typer.Option(help="Of the values; each warm call has the next number.", min=0)]
Repeats = Annotated[
    int, typer.Option(help="Warm calls after the first, each on inputs of its own, decrypted and compared.")
]
Steps = Annotated[
    str,
    typer.Option(
        help="Secret bits a step that the server chooses from by batch: by commas, or automatic; default "
        "automatic on GPUs for sets with groups, the set's own elsewhere."
    ),
]
Json = Annotated[Path | None, typer.Option("--json", help="Write the record to a new file.")]


def transfer(
    pairs: Annotated[
        int, typer.Option(help="Transfers side by side, each between accounts of its own.", max=1 << 20)
    ] = 4,
    bits: Annotated[int, typer.Option(help="Of balances and amounts: even, 2 to 256.")] = 64,
    parameters: Params = "",
    device: Device = "auto",
    seed: Seed = 1,
    repeats: Repeats = 1,
    steps: Steps = "",
    file: Json = None,
) -> None:
    """Move encrypted amounts between encrypted balances where these suffice, and compare with the clear."""
    from crenel.workloads.integers.measure import run_transfer

    session = _session(parameters, device, repeats, steps, file)
    _finish(run_transfer(session, pairs, bits, seed), session, file)


def search(
    pattern: Annotated[str, typer.Argument(help="What to look for.")] = "the",
    text: Annotated[str, typer.Option(help="To look in; default: a sentence.")] = "",
    data: Annotated[Path | None, typer.Option(help="A file to look in instead.")] = None,
    hide_pattern: Annotated[bool, typer.Option("--hide-pattern", help="Encrypt the pattern too.")] = False,
    parameters: Params = "",
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Of how far warm calls turn the text.", min=0)] = 1,
    repeats: Repeats = 1,
    steps: Steps = "",
    file: Json = None,
) -> None:
    """Find a pattern in an encrypted text: all places, how often, the first; and compare with the clear."""
    from crenel.workloads.files import opened
    from crenel.workloads.integers.measure import run_search

    if text and data is not None:
        raise ParameterError("--text and --data both have a text, expected one", {"path": str(data)})
    content = (text or TEXT).encode()
    if data is not None:
        with opened(data) as source:
            content = source.read(MOST_TEXT + 1)
        if len(content) > MOST_TEXT:
            raise ParameterError(f"{data}: expected at most {MOST_TEXT} bytes", {"path": str(data)})
    if not 1 <= len(pattern.encode()) <= len(content):
        raise ParameterError(
            f"a pattern of {len(pattern.encode())} characters in a text of {len(content)}, expected 1 to as "
            "many",
            {"pattern": len(pattern.encode()), "text": len(content)},
        )
    session = _session(parameters, device, repeats, steps, file)
    _finish(run_search(session, content, pattern.encode(), hide_pattern, seed), session, file)


def rows(
    where: Annotated[str, typer.Option(help="Comparisons of columns with integers, and, or, not.")] = "",
    total: Annotated[str, typer.Option("--sum", help="A column to add up over those rows.")] = "",
    data: Annotated[Path | None, typer.Option(help="A CSV file of integers with a header.")] = None,
    count: Annotated[
        int, typer.Option("--rows", help="Of the table that is made without --data.", max=1 << 20)
    ] = 16,
    hide_query: Annotated[
        bool, typer.Option("--hide-query", help="Encrypt the condition's numbers too.")
    ] = False,
    parameters: Params = "",
    device: Device = "auto",
    seed: Seed = 1,
    repeats: Repeats = 1,
    steps: Steps = "",
    file: Json = None,
) -> None:
    """Rows of an encrypted table where a condition holds, their number and a sum; compared with the clear."""
    from crenel.workloads.integers.condition import parse
    from crenel.workloads.integers.filter import constants, read_csv
    from crenel.workloads.integers.measure import made_table, run_filter

    if data is not None and not where:
        raise ParameterError(
            "--data without --where, expected a condition on its columns", {"path": str(data)}
        )
    table = made_table(count, seed) if data is None else read_csv(data)
    summed = total or ("income" if data is None else None)
    condition = parse(where or WHERE)
    constants(condition, table)  # refused before keys are made
    for name in sorted(condition.columns) + ([summed] if summed else []):
        table.column(name)
    session = _session(parameters, device, repeats, steps, file)
    _finish(run_filter(session, table, condition.text, summed, hide_query, seed), session, file)


def aes(
    blocks: Annotated[int, typer.Option(help="Blocks side by side.", min=1, max=1 << 16)] = 1,
    rounds: Annotated[int, typer.Option(help="Fewer rounds than the cipher's 10; 0: all.")] = 0,
    parameters: Annotated[str, typer.Option("--set", help="A set for gates.")] = "bool128",
    device: Device = "auto",
) -> None:
    """AES-128 on encrypted bits, key schedule and all, compared with the standard's test vector."""
    from crenel import tfhe
    from crenel.workloads.ciphers.aes import ROUNDS
    from crenel.workloads.ciphers.run import run

    if not 0 <= rounds <= ROUNDS:
        raise ParameterError(f"--rounds {rounds}, expected 0 to {ROUNDS}", {"rounds": rounds})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        params = tfhe.preset(parameters, allow_insecure=True)
    raise typer.Exit(run(device=device, cipher="aes", blocks=blocks, rounds=rounds or None, params=params))


def _session(parameters: str, device: str, repeats: int, steps: str, file: Path | None) -> Session:
    import crenel
    from crenel.cli.output import expect_new
    from crenel.cli.steps import steps_of
    from crenel.workloads.integers.session import Session
    from crenel.workloads.report import Report

    expect_new(file)
    report, info = Report(), crenel.device_info(device)
    if not parameters and info.kind != "cuda":
        report.line(f"{QUICK}: INSECURE, so that this ends soon; --set {ON_GPU} is for real data")
    name = parameters or (ON_GPU if info.kind == "cuda" else QUICK)
    return Session(name, device, report, repeats, steps_of(steps) if steps else None)


def _finish(outcome: Outcome, session: Session, file: Path | None) -> None:
    if file is not None:
        from crenel.records import command_line, write_record

        write_record(file, outcome.document(session.context.device, command_line()))
    raise typer.Exit(0 if outcome.correct else 1)
