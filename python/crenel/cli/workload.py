"""``crenel workload``: training and sorting under encryption, run, compared with the clear, and measured."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crenel.cli.workload_options import Common, with_common
from crenel.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from crenel import ckks
    from crenel.workloads.records import Sort, Training
    from crenel.workloads.report import Report
    from crenel.workloads.session import Session

app = typer.Typer(help="Training and sorting on encrypted data, measured.", no_args_is_help=True)

# Sets that end within a minute on two cores. They are toys, and every output says so.
QUICK = {"helr": "toy-boot40", "sort": "toy-boot40"}
FIGURES = (".png", ".pdf", ".svg")
ON_GPU = {"helr": "boot35", "sort": "boot40"}

JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the record to a new file.")]
ValuesFile = Annotated[
    Path | None,
    typer.Option("--json", help="Write the record to a new file, with up to 512 of the values in the clear."),
]


@app.command()
@with_common
def helr(
    common: Common,
    label: Annotated[
        str | None, typer.Option(help="Of a CSV file, the column of labels; default: the last.")
    ] = None,
    digits: Annotated[str, typer.Option(help="Of MNIST's files, two digits.")] = "3,8",
    iterations: Annotated[int, typer.Option(help="Of Nesterov's method.")] = 32,
    batch: Annotated[int, typer.Option(help="Rows of an iteration; 0: as many as suit the slots.")] = 0,
    rate: Annotated[
        float, typer.Option(help="Learning rate; lower it where weights leave their range.")
    ] = 1.0,
    weight_range: Annotated[
        float, typer.Option(help="Largest entry of the state, weights times up to 2; errors grow with it.")
    ] = 8.0,
    order: Annotated[str, typer.Option(help="Of the blocks of rows: cyclic or random.")] = "cyclic",
    json: JsonFile = None,
) -> None:
    """Train a logistic regression on encrypted rows, and compare with the training in the clear."""
    _check_files(json, common.plot)
    from crenel.workloads import data as tables
    from crenel.workloads.regression import measure

    table = tables.load_table(common.data, label, digits=_digits(digits), seed=common.seed)
    session = _session("helr", common)
    result = measure.measure(
        session, table, common.of_the_run(), iterations=iterations, batch=batch or None, rate=rate,
        order=cast(Any, order), weight_range=weight_range,
    )  # fmt: skip
    _finish(session, result, json, common.plot)


@app.command()
@with_common
def sort(
    common: Common,
    column: Annotated[str | None, typer.Option(help="Of a CSV file, the column of values.")] = None,
    count: Annotated[int, typer.Option(help="Values; 0: all of the file, or 16.")] = 0,
    comparator: Annotated[str | None, typer.Option(help="Degrees of the composed sign, 15,15,15,15.")] = None,
    radix: Annotated[
        int, typer.Option(help="2, or 4: two stages of the network a comparison; 0: what fits.")
    ] = 0,
    low: Annotated[
        float | None, typer.Option(help="No value is below: public; default 0, or the least.")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="No value is above: public; default 1, or the largest.")
    ] = None,
    descending: Annotated[bool, typer.Option("--descending", help="The largest first.")] = False,
    json: ValuesFile = None,
) -> None:
    """Sort encrypted values, and compare with the order in the clear."""
    _check_files(json, common.plot)
    from crenel.workloads import data as tables
    from crenel.workloads.sorting import measure

    data = common.data
    values = tables.load_values(data, count or (16 if data is None else None), common.seed, column=column)
    session = _session("sort", common)
    result = measure.measure(
        session, values, common.of_the_run(), source="uniform in [0, 1)" if data is None else data.name,
        comparator=comparator, radix=cast(Any, radix or None), descending=descending, low=low, high=high,
    )  # fmt: skip
    _finish(session, result, json, common.plot)


def _digits(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise ParameterError(f"--digits takes two digits, as in 3,8, got {text!r}", {"digits": text})
    return int(parts[0]), int(parts[1])


def _check_files(json: Path | None, plot: Path | None) -> None:
    """Before minutes of work: can the results be written?"""
    for option, path in (("--json", json), ("--plot", plot)):
        if path is not None and not path.parent.is_dir():
            raise ParameterError(f"{option}: there is no folder {path.parent}", {"path": str(path)})
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise ParameterError(f"{option}: {path} cannot be written", {"path": str(path)})
    if json is not None and json.exists():
        raise ParameterError(f"--json: {json} exists; name a new file", {"path": str(json)})
    if plot is not None and importlib.util.find_spec("matplotlib") is None:
        raise UnsupportedError("--plot needs matplotlib: pip install 'crenel[plot]'")
    if plot is not None and plot.suffix.lower() not in FIGURES:
        raise ParameterError(
            f"--plot: {plot} ends in {plot.suffix or 'nothing'!r}, expected one of {', '.join(FIGURES)}",
            {"path": str(plot)},
        )


def _session(workload: str, common: Common) -> Session:
    import crenel
    from crenel._crenel import security_text
    from crenel.workloads.report import Report
    from crenel.workloads.session import Session

    info = crenel.device_info(common.device)
    report = Report()
    name = common.params or (ON_GPU if info.kind == "cuda" else QUICK)[workload]
    chosen = _preset(name)
    report.line(f"{name} on {info.name} ({info.description}): {security_text(chosen)}")
    if chosen.insecure and common.params is None:
        report.line(f"a toy set, so that this ends soon; --params {ON_GPU[workload]} is a set for real data")
    return Session(chosen, common.device, report, common.stages, common.energy)


def _preset(name: str) -> ckks.Params:
    from crenel import ckks

    with warnings.catch_warnings():
        # Said in the report, and in the record.
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return ckks.preset(name, allow_insecure=True)


def _finish(session: Session, result: Training | Sort, json: Path | None, plot: Path | None) -> None:
    """Facts for the person; then the files; exit status 1 where the result is not what it should be."""
    from crenel.cli.output import size, table
    from crenel.workloads import plots, records

    report = session.report
    report.line()
    if result.stages:
        rows = [
            (s.name, str(s.count), f"{s.seconds:.3f}", f"{100 * s.seconds / result.total_s:.1f}")
            for s in result.stages
        ]
        table(("stage", "runs", "seconds", "% of the run"), rows)
        report.line()
    memory = result.memory
    driver = memory.driver_note if memory.driver_peak is None else size(memory.driver_peak)
    report.facts(
        [
            (
                "memory, by the library",
                f"{size(memory.library_peak)} at most, of it {size(memory.keys)} keys",
            ),
            ("memory, by the driver", driver),
            ("memory of the process", f"{size(memory.process_peak)} at most"),
            ("energy", _energy(result)),
            ("sent by the client", size(result.wire_bytes)),
        ]
    )
    _verdict(report, result)
    if json is not None:
        command = shlex.join(["crenel", *sys.argv[1:]])
        records.write(json, [result], records.provenance(session.device, command))
        report.line(f"wrote {json}")
    if plot is not None:
        plots.draw(plot, result)
        report.line(f"wrote {plot}")
    raise typer.Exit(0 if result.correct else 1)


def _energy(result: Training | Sort) -> str:
    energy = result.energy
    if energy.joules is None or energy.joules_per_step is None:
        return f"not measured: {energy.note}"
    return f"{energy.joules:.1f} J, {energy.joules_per_step:.2f} J a step ({energy.note})"


def _verdict(report: Report, result: Training | Sort) -> None:
    from crenel.workloads.records import Training

    left = "; of what an earlier run had left" if result.resumed else ""
    if isinstance(result, Training):
        last = result.iterations[-1]
        assert last.accuracy is not None and last.loss is not None  # the last one is always decrypted
        report.facts(
            [
                ("accuracy, encrypted", f"{100 * last.accuracy:.2f} % of {result.test_rows} test rows"),
                ("accuracy, clear", f"{100 * last.clear_accuracy:.2f} %"),
                ("loss", f"{last.loss:.4f} encrypted, {last.clear_loss:.4f} in the clear"),
                ("time", f"{result.total_s:.2f} s, {1e-3 * result.latency_us:.1f} ms an iteration{left}"),
            ]
        )
    else:
        report.facts(
            [
                ("precision", f"{result.error_bits:.1f} bits (rms {result.rms_bits:.1f}) of the range"),
                ("time", f"{result.total_s:.2f} s for {result.count} values, {result.steps} rounds{left}"),
            ]
        )
    within = "within" if result.correct else "EXCEEDS"
    report.facts(
        [
            ("bootstraps", str(result.bootstraps)),
            ("error of encryption", f"{result.error:.3g}, {within} {result.bound:.3g}: {result.bound_note}"),
        ]
    )
