"""Hardware counters of launches by Nsight Compute (``ncu``): reading what it prints, and running it."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crenel.account import Record
from crenel.errors import StateError, UnsupportedError

PROGRAM = "ncu"
SECTOR = 32
# Where a record is named after the operation and not after its __global__ function.
FUNCTION = {
    **dict.fromkeys(("add", "sub", "mul", "mul_add"), "binary"),
    **dict.fromkeys(("neg", "mul_scalar", "mul_add_scalar", "add_scalar"), "scalar"),
    **dict.fromkeys(("sample_ternary", "sample_error"), "sample_small"),
    **dict.fromkeys(("automorphism", "automorphism_add"), "automorphism_eval"),
}
# Counters of (read, written) and the bytes of one count, the best first: sectors that the first-level caches
# asked L2 for. lts__t_bytes also counts what one half of L2 fetches from the other.
MOVED = (
    ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum", SECTOR),
    ("l1tex__m_xbar2l1tex_read_bytes.sum", "l1tex__m_l1tex2xbar_write_bytes.sum", 1),
)
TIME = "gpu__time_duration.sum"
DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
LTS = "lts__t_bytes.sum"
# What is counted in a run each. The first ones fit one pass: where a launch has to be replayed for more, the
# profiler restores what it wrote through L2, and the memory carries what no computation moves.
RUNS = ((TIME, *DRAM, LTS), tuple(name for read, written, _ in MOVED for name in (read, written)))
# Launches find the caches as those before them leave them.
OPTIONS = ("--clock-control", "none", "--cache-control", "none", "--csv", "--print-units", "base",
           "--print-kernel-base", "function", "--kernel-name-base", "function")  # fmt: skip


@dataclass
class Launch:
    """What the profiler printed about one launch."""

    function: str
    grid: str
    metrics: dict[str, float] = field(default_factory=dict)

    def moved(self) -> tuple[float, float]:
        """Bytes read and written at L2.

        Raises
        ------
        StateError : no counters of them were measured
        """
        for read, written, unit in MOVED:
            if read in self.metrics and written in self.metrics:
                return unit * self.metrics[read], unit * self.metrics[written]
        raise StateError(f"{self.function}: none of the counters {[c[0] for c in MOVED]} was measured")


def read_launches(lines: Iterable[str]) -> list[Launch]:
    """Of the profiler's CSV, in order; other lines of its output are passed over."""
    table = [line for line in lines if line.startswith('"')]
    launches: dict[str, Launch] = {}
    for row in csv.DictReader(table):
        name = row["Kernel Name"].split("(")[0].split("<")[0].split("::")[-1].split(" ")[-1]
        launch = launches.setdefault(row["ID"], Launch(name, row["Grid Size"]))
        value = row["Metric Value"].replace(",", "")
        if value and value != "n/a":
            launch.metrics[row["Metric Name"]] = float(value)
    return list(launches.values())


def _first_difference(one: Sequence[object], other: Sequence[object]) -> int:
    shorter = min(len(one), len(other))
    return next((i for i in range(shorter) if one[i] != other[i]), shorter)


def merged(runs: Sequence[Sequence[Launch]]) -> list[Launch]:
    """The same launches with the counters of every run.

    Raises
    ------
    StateError : runs of different launches
    """
    first, *others = [[(launch.function, launch.grid) for launch in run] for run in runs]
    for other in others:
        if other != first:
            at = _first_difference(first, other)
            raise StateError(
                f"launch {at}: one run of the profiler has {first[at : at + 1]}, another {other[at : at + 1]}"
                f" ({len(first)} and {len(other)} launches)"
            )
    return [
        Launch(same[0].function, same[0].grid, {k: v for launch in same for k, v in launch.metrics.items()})
        for same in zip(*runs, strict=True)
    ]


def function_of(record: Mapping[str, Any]) -> str:
    """The __global__ function of a launch that the account states."""
    kernel = str(record["kernel"])
    return FUNCTION.get(kernel, kernel)


def kernels_of(records: Iterable[Record]) -> list[Record]:
    """Without copies, which the profiler does not count."""
    return [record for record in records if record["work"] != "copy"]


def pair(records: Sequence[Record], launches: Sequence[Launch]) -> list[tuple[Record, Launch]]:
    """Records with the launches that they state.

    Raises
    ------
    StateError : not the same kernels in the same order
    """
    kernels = kernels_of(records)
    wanted = [function_of(record) for record in kernels]
    found = [launch.function for launch in launches]
    if wanted != found:
        at = _first_difference(wanted, found)
        raise StateError(
            f"launch {at}: the account says {wanted[at : at + 3]}, the profiler {found[at : at + 3]}"
            f" ({len(wanted)} and {len(found)} launches)"
        )
    return list(zip(kernels, launches, strict=True))


def row_of(record: Record, launch: Launch) -> dict[str, Any]:
    """A launch as records of counters have it: stated and counted."""
    read, written = launch.moved()
    model = record["read_bytes"] + record["written_bytes"]
    return {
        "kernel": record["kernel"], "stage": record["stage"], "grid": launch.grid,
        "limbs": record["limbs"], "polys": record["polys"],
        "model_read": record["read_bytes"], "model_written": record["written_bytes"],
        "read": round(read), "written": round(written), "difference": model / (read + written) - 1,
        "us": launch.metrics.get(TIME, 0.0) / 1e3,
        "dram_bytes": round(sum(launch.metrics.get(name, 0.0) for name in DRAM)),
        "lts_bytes": round(launch.metrics.get(LTS, 0.0)),
    }  # fmt: skip


def expect(device: str) -> None:
    """Before anything is computed: that there is something to count, and who counts.

    Raises
    ------
    UnsupportedError : no GPU, or no profiler
    """
    if not device.startswith("cuda") or device.startswith("cuda:dry"):
        raise UnsupportedError(
            f"device {device} has no counters, expected cuda or cuda:<index>", {"device": device}
        )
    if shutil.which(PROGRAM) is None:
        raise UnsupportedError(
            f"{PROGRAM} is not on the PATH: it is Nsight Compute's command line, a part of the CUDA toolkit",
            {"program": PROGRAM},
        )


def count(params: str, device: str, operation: str, level: int, seconds: float) -> list[dict[str, Any]]:
    """Every launch of one operation, stated and counted: one process runs it to state its launches and those
    before, and one for each of `RUNS` under the profiler, which skips these.

    Parameters
    ----------
    level : of the operation's inputs
    seconds : that each run of the profiler may take

    Raises
    ------
    UnsupportedError : the profiler is missing, or may not or cannot count here; its own words say why
    StateError : the launches of two processes differ
    """
    expect(device)
    with tempfile.TemporaryDirectory(prefix="crenel-counters-") as folder:

        def program(file: Path) -> list[str]:
            return [
                sys.executable,
                "-m",
                "crenel.cli.counted",
                params,
                device,
                operation,
                str(level),
                str(file),
            ]

        file = Path(folder) / "stated.json"
        _run(program(file), seconds)
        stated = json.loads(file.read_text(encoding="utf-8"))
        kernels = kernels_of(stated["records"])
        names = sorted({function_of(record) for record in kernels} | set(stated["functions_before"]))
        profiler = [
            PROGRAM, *OPTIONS, "--kernel-name", f"regex:^({'|'.join(names)})$",
            "--launch-skip", str(stated["kernels_before"]), "--launch-count", str(len(kernels)),
        ]  # fmt: skip
        runs = []
        for i, metrics in enumerate(RUNS):
            file = Path(folder) / f"counted-{i}.json"
            printed = _run([*profiler, "--metrics", ",".join(metrics), *program(file)], seconds)
            runs.append(read_launches(printed.splitlines()))
            if not runs[-1]:
                raise UnsupportedError(
                    f"{PROGRAM} counted no launch: {_reason(printed)}", {"program": PROGRAM}
                )
            if json.loads(file.read_text(encoding="utf-8")) != stated:
                raise StateError("the launches of a process under the profiler differ from those without it")
        return [row_of(*both) for both in pair(stated["records"], merged(runs))]


def _run(command: list[str], seconds: float) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise UnsupportedError(
            f"{command[0]} took more than {seconds:g} s", {"program": command[0], "seconds": seconds}
        ) from None
    if done.returncode != 0:
        raise UnsupportedError(
            f"{Path(command[0]).name} failed: {_reason(done.stdout + done.stderr)}",
            {"program": command[0], "status": done.returncode},
        )
    return done.stdout


def _reason(printed: str) -> str:
    """What a program said last, or what the profiler calls an error."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line]
    return " ".join(errors[:2]) or (lines[-1] if lines else "it printed nothing")
