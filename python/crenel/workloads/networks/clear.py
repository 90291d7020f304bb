"""A task's results in the clear, with which encrypted ones are compared; kept in a file where one is named,
since they take minutes of a processor, and neither a key nor a GPU. The samples are kept with them, so that a
compiled program and this file are all that a run elsewhere needs: no weights, no data."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crenel import nn, write_file
from crenel.errors import ParameterError, SerializationError
from crenel.nn.ops import Reals
from crenel.workloads import records
from crenel.workloads.networks.task import Task
from crenel.workloads.tables import read_npz

if TYPE_CHECKING:
    from crenel.workloads.report import Report

DRAWN = 128  # samples whose errors are drawn, where the rest is computed under encryption
PART = 32  # samples at a time: more take memory, and are not faster
SAME = 1e-9  # of the largest output: processors add up in other orders
NAMES = ("exact", "plan", "noisy")  # of the arrays
OF = ("program", "samples")  # of what they are the results
KEPT = ("inputs", "name", "weights", "data")  # and of those that make a task


@dataclass(frozen=True, eq=False)
class Clear:
    """Outputs of a task without encryption."""

    exact: Reals  # of the network in float64
    plan: Reals  # of the compiled program, without errors
    noisy: Reals  # of the first samples, with errors drawn from the model

    @property
    def noise(self) -> float:
        """Root mean square of the drawn errors."""
        return float(np.sqrt(np.mean((self.noisy - self.plan[: len(self.noisy)]) ** 2)))


def results(
    task: Task, program: nn.Program, file: Path | None, report: Report, drawn: int | None = None
) -> Clear:
    """The network in float64, and the program in the clear without and with errors: of the file, or computed,
    and then written to it.

    drawn : samples whose errors are drawn where nothing is kept, from the first on; None: all, of a file too

    Raises ParameterError for a file of another network, of another program or of other samples, and for a
    task that is not the file's and has no network; SerializationError for what is no such file, and FileError
    where it cannot be read or written.
    """
    if file is not None and file.exists():
        with report.step("in the clear: as the file has it"):
            return _read(file, task, program, drawn)
    found = _computed(task, program, report, drawn)
    if file is not None:
        _write(file, found, task, program)
    return found


def expect_results(file: Path) -> None:
    """Before a network is compiled for it: SerializationError for what is no file of `results`, FileError."""
    _members(file, (*NAMES, *OF))


def kept(file: Path, name: str) -> Task:
    """What a file of `results` is of, without the network: a task for a program that is compiled.

    name : of the command

    Raises ParameterError for a file of another command, SerializationError for what is no such file and for
    one without samples, FileError.
    """
    arrays = _members(file, KEPT)
    if (found := str(arrays["name"])) != name:
        raise ParameterError(
            f"{file} has samples of {found[:40]}, not {name}", {"path": str(file), "found": found[:40]}
        )
    samples, labels = arrays["inputs"], arrays.get("labels")
    sound = samples.dtype == np.float64 and samples.ndim > 1 and len(samples) and np.isfinite(samples).all()
    if not sound or not (labels is None or (labels.dtype == np.int64 and labels.shape == samples.shape[:1])):
        raise SerializationError(
            f"{file}: expected finite float64 samples, int64 labels", {"path": str(file)}
        )
    return Task(name, None, str(arrays["weights"]), str(arrays["data"]), samples[:0], samples, labels)


def _computed(task: Task, program: nn.Program, report: Report, drawn: int | None) -> Clear:
    if task.model is None:
        raise ParameterError(f"{task.name} without its network: no results in the clear can be computed")
    parts = [task.samples[k : k + PART] for k in range(0, len(task.samples), PART)]
    with report.step("in the clear: the network in float64"):
        exact = np.concatenate([task.model(part) for part in parts])
    with report.step("in the clear: the program, with errors"):
        plan = np.concatenate([program.simulate(part, noise=False) for part in parts])
        some = task.samples[:drawn]
        noisy = np.concatenate([program.simulate(some[k : k + PART]) for k in range(0, len(some), PART)])
    return Clear(exact, plan, noisy)


def _write(file: Path, clear: Clear, task: Task, program: nn.Program) -> None:
    arrays = {name: getattr(clear, name) for name in NAMES}
    arrays |= {} if task.labels is None else {"labels": task.labels}
    content = io.BytesIO()
    np.savez_compressed(
        content, program=program.fingerprint, samples=records.digest(task.samples), inputs=task.samples,
        name=task.name, weights=task.weights, data=task.data, **arrays,
    )  # fmt: skip
    write_file(file, content.getvalue())


def _members(file: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    arrays = read_npz(file)
    if missing := [name for name in names if name not in arrays]:
        raise SerializationError(f"{file}: no array {missing[0]!r}", {"path": str(file), "array": missing[0]})
    return arrays


def _read(file: Path, task: Task, program: nn.Program, drawn: int | None) -> Clear:
    arrays = _members(file, (*NAMES, *OF))
    expected = {"program": program.fingerprint, "samples": records.digest(task.samples)}
    for name, value in expected.items():
        if (there := str(arrays[name])) != value:
            raise ParameterError(
                f"{file} has results of other {name}: {there[:16]}, expected {value[:16]}",
                {"path": str(file), "found": there, "expected": value},
            )
    found = [arrays[name] for name in NAMES]
    counts = [len(task.samples)] * 2 + [min(len(found[-1]) if found[-1].ndim else 0, len(task.samples))]
    shapes = [(count, *found[0].shape[1:]) for count in counts]
    if any(
        a.dtype != np.float64 or a.shape != shape or not np.isfinite(a).all()
        for a, shape in zip(found, shapes, strict=True)
    ):
        raise SerializationError(f"{file}: expected finite float64 of shape {shapes[0]}", {"path": str(file)})
    least = len(task.samples) if drawn is None else 1
    if counts[-1] < least:
        raise ParameterError(
            f"{file} has errors of {counts[-1]} samples, expected {least}",
            {"path": str(file), "drawn": counts[-1]},
        )
    if task.model is None:  # the task is the file's own
        return Clear(*found)
    first = task.model(task.samples[:1])
    if not np.allclose(found[0][:1], first, rtol=0, atol=SAME * np.abs(first).max()):
        raise ParameterError(f"{file} has results of another network", {"path": str(file)})
    return Clear(*found)
