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

PART = 32  # samples at a time: more take memory, and are not faster
SAME = 1e-9  # of the largest output: processors add up in other orders
NAMES = ("exact", "plan", "noisy")  # of the arrays
KEPT = ("inputs", "name", "weights", "data")  # and of those that make a task


@dataclass(frozen=True, eq=False)
class Clear:
    """Outputs of a task without encryption."""

    exact: Reals  # of the network in float64
    plan: Reals  # of the compiled program, without errors
    noisy: Reals  # with errors drawn from the model

    @property
    def noise(self) -> float:
        """Root mean square of the drawn errors."""
        return float(np.sqrt(np.mean((self.noisy - self.plan) ** 2)))


def results(task: Task, program: nn.Program, file: Path | None, report: Report) -> Clear:
    """The network in float64, and the program in the clear without and with errors: of the file, or computed,
    and then written to it.

    Raises ParameterError for a file of another network, of another program or of other samples, and for a
    task that is not the file's and has no network; SerializationError for what is no such file, and FileError
    where it cannot be read or written.
    """
    if file is not None and file.exists():
        with report.step("in the clear: as the file has it"):
            return _read(file, task, program)
    found = _computed(task, program, report)
    if file is not None:
        _write(file, found, task, program)
    return found


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


def _computed(task: Task, program: nn.Program, report: Report) -> Clear:
    if task.model is None:
        raise ParameterError(f"{task.name} without its network: no results in the clear can be computed")
    parts = [task.samples[k : k + PART] for k in range(0, len(task.samples), PART)]
    with report.step("in the clear: the network in float64"):
        exact = np.concatenate([task.model(part) for part in parts])
    with report.step("in the clear: the program, with errors"):
        plan = np.concatenate([program.simulate(part, noise=False) for part in parts])
        noisy = np.concatenate([program.simulate(part) for part in parts])
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


def _read(file: Path, task: Task, program: nn.Program) -> Clear:
    arrays = _members(file, (*NAMES, "program", "samples"))
    expected = {"program": program.fingerprint, "samples": records.digest(task.samples)}
    for name, value in expected.items():
        if (there := str(arrays[name])) != value:
            raise ParameterError(
                f"{file} has results of other {name}: {there[:16]}, expected {value[:16]}",
                {"path": str(file), "found": there, "expected": value},
            )
    found = [arrays[name] for name in NAMES]
    shape = (len(task.samples), *found[0].shape[1:])
    if any(a.dtype != np.float64 or a.shape != shape or not np.isfinite(a).all() for a in found):
        raise SerializationError(f"{file}: expected finite float64 of shape {shape}", {"path": str(file)})
    if task.model is None:  # the task is the file's own
        return Clear(*found)
    first = task.model(task.samples[:1])
    if not np.allclose(found[0][:1], first, rtol=0, atol=SAME * np.abs(first).max()):
        raise ParameterError(f"{file} has results of another network", {"path": str(file)})
    return Clear(*found)
