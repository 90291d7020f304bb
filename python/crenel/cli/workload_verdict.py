"""What a run of ``crenel workload`` ends with: facts for the person, the record, the figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from crenel import DeviceInfo
    from crenel.workloads.records import Network, Record
    from crenel.workloads.report import Report


def finish(report: Report, info: DeviceInfo, result: Record, json: Path | None, plot: Path | None) -> None:
    """Facts for the person; then the files; exit status 1 where the result is not what it should be."""
    from crenel.cli.output import table
    from crenel.records import command_line, provenance
    from crenel.workloads import plots, records

    report.line()
    if result.stages:
        rows = [
            (s.name, str(s.count), f"{s.seconds:.3f}", f"{100 * s.seconds / result.staged_s:.1f}")
            for s in result.stages
        ]
        table(("stage", "runs", "seconds", "% of the run"), rows)
        report.line()
    if not (isinstance(result, records.Network) and result.simulated):
        report.facts(_resources(result))
    _verdict(report, result)
    if json is not None:
        records.write(json, [result], provenance(info, command_line()))
        report.line(f"wrote {json}")
    if plot is not None:
        plots.draw(plot, result)
        report.line(f"wrote {plot}")
    raise typer.Exit(0 if result.correct else 1)


def _resources(result: Record) -> list[tuple[str, str]]:
    from crenel.cli.output import size

    memory = result.memory
    driver = memory.driver_note if memory.driver_peak is None else size(memory.driver_peak)
    return [
        ("memory, by the library", f"{size(memory.library_peak)} at most, of it {size(memory.keys)} keys"),
        ("memory, by the driver", driver),
        ("memory of the process", f"{size(memory.process_peak)} at most"),
        ("energy", _energy(result)),
        ("sent by the client", size(result.wire_bytes)),
    ]


def _energy(result: Record) -> str:
    energy = result.energy
    if energy.joules is None or energy.joules_per_step is None:
        return f"not measured: {energy.note}"
    return f"{energy.joules:.1f} J, {energy.joules_per_step:.2f} J a step ({energy.note})"


def _verdict(report: Report, result: Record) -> None:
    from crenel.workloads.records import Network, Training

    left = "; of what an earlier run had left" if result.resumed else ""
    if isinstance(result, Network):
        report.facts(_network(result))
    elif isinstance(result, Training):
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


def _network(result: Network) -> list[tuple[str, str]]:
    """What is said of a network: first how good, then how fast."""
    how = "simulated" if result.simulated else "encrypted"
    rows = []
    if result.accuracy is not None and result.float_accuracy is not None:
        rows = [
            (f"accuracy, {how}", f"{100 * result.accuracy:.2f} % of {result.steps} samples"),
            ("accuracy, float", f"{100 * result.float_accuracy:.2f} %"),
        ]
    rows += [
        ("same class as float", f"{100 * result.agreement:.2f} %; least cosine {result.cosine:.6f}"),
        (
            "error against float",
            f"{result.float_error:.3g} at most; of polynomials {result.approximation:.3g} (rms)",
        ),
        ("polynomials", result.activation),
    ]
    if not result.simulated:
        batch = 1e-3 * result.latency_us
        first = "" if result.warm else ", the first with what is made once"
        rows.append(
            (
                "time",
                f"{batch:.1f} ms a run of {result.batch}, {batch / result.batch:.1f} ms a sample "
                f"(median of {len(result.run_s)} runs{first})",
            )
        )
        if result.predicted_us is not None:
            rows.append(("time, predicted", f"{1e-3 * result.predicted_us:.1f} ms a run, by its operations"))
    return rows
