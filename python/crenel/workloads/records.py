"""What a run of a workload found, as dataclasses, and as JSON in the form of ``bench/results``.

Accuracy, errors and times of a record are of one and the same run. What was not measured is None, and a text
beside it says why.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from crenel import ckks
from crenel.errors import SerializationError
from crenel.records import FORMAT, KIND, record, write_record
from crenel.workloads.files import opened
from crenel.workloads.stages import Stopwatch

SUITE = "workload"
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """Seconds of a part of the program, of all its runs. Stages may nest, so their sum says nothing."""

    name: str
    seconds: float
    count: int


@dataclass(frozen=True)
class Memory:
    """Bytes. Of a device that is the host's memory, the driver's figures are None."""

    keys: int  # evaluation keys on the device
    library_peak: int  # what the library took of the device at most, by its own count
    driver_peak: int | None  # what was in use on the device at most, by its driver, every process
    driver_note: str  # how driver_peak was found, or why it was not
    process_peak: int  # resident memory of this process at most


@dataclass(frozen=True)
class Energy:
    """Of the whole board while the program ran, from samples of its power."""

    joules: float | None
    joules_per_step: float | None
    mean_watts: float | None
    samples: int
    note: str  # how it was measured, or why it was not


@dataclass(frozen=True)
class Iteration:
    """Training after so many iterations; None where the encrypted run's weights were not decrypted."""

    iteration: int
    clear_accuracy: float
    clear_loss: float
    accuracy: float | None = None
    loss: float | None = None
    error: float | None = None  # largest deviation of a weight from the clear recursion's


@dataclass(frozen=True)
class Round:
    """Sorting after so many rounds, where the state was decrypted."""

    round: int
    error: float  # largest deviation from the same circuit on the clear values
    largest: float  # magnitude of the state, of 1


@dataclass(frozen=True)
class Layer:
    """A value of a network's plan, in the order in which they are made; the input first."""

    origin: str  # the module that it comes from
    kind: str  # of step: transform, evaluate, quadratic, sum, refresh; input
    level: int
    slots: int
    ciphertexts: int
    seconds: float | None = None  # None: not timed, or the input
    expected: float | None = None  # root mean square error by the model, in units of the bound
    measured: float | None = None  # decrypted against the clear; None: not asked for


@dataclass(frozen=True)
class Result:
    """Figures that every workload has.

    ``correct`` says whether the result was decrypted and lay within ``bound`` of the clear computation.
    """

    name: str
    params: str
    params_id: str
    log_n: int
    scale_bits: int
    log_pq: float
    alpha: int
    security_bits: float
    insecure: bool
    slots: int
    variant: str
    data: str
    data_digest: str
    digest: str  # of the decrypted result
    seed: int
    steps: int  # iterations, rounds or samples
    total_s: float
    latency_us: float  # of an iteration, of the whole sort, or of a batch
    batch: int
    bootstraps: int
    correct: bool
    error: float
    bound: float
    bound_note: str
    setup_s: float  # once a context: what the server makes before the first run
    warm: bool  # was there a run before the timed one?
    graph: bool  # were recordings replayed?
    resumed: bool  # did it go on from a checkpoint? Then the times are of what was left
    keys_s: float
    encrypt_s: float
    decrypt_s: float
    wire_bytes: int
    stages_timed: bool
    memory: Memory
    energy: Energy
    stages: tuple[Stage, ...]

    @property
    def staged_s(self) -> float:
        """Seconds of the run that the stages are of."""
        return self.total_s


@dataclass(frozen=True)
class Training(Result):
    """A training run."""

    rows: int = 0
    features: int = 0
    test_rows: int = 0
    iterations: tuple[Iteration, ...] = ()
    largest_inner_product: float = 0.0


@dataclass(frozen=True)
class Sort(Result):
    """A sort: ``expected`` and ``found`` are the exact order and what came out; of long ones a part."""

    count: int = 0
    comparator: str = ""
    radix: int = 2
    descending: bool = False
    error_bits: float = 0.0  # -log2 of the largest error of a value, of the range
    rms_bits: float = 0.0
    rounds: tuple[Round, ...] = ()
    every: int = 1  # places from one of expected, and of found, to the next
    expected: tuple[float, ...] = field(default=(), repr=False)
    found: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Network(Result):
    """A network on encrypted samples. ``latency_us`` is the median of runs of ``batch`` samples, ``steps``
    the samples, ``error`` the largest against the same plan in the clear, ``setup_s`` of binding to the keys.

    ``expected`` and ``found`` are outputs of the network in float64 and of the encrypted run; of many a part.
    """

    network: str = ""
    weights: str = ""  # where they come from
    program: str = ""  # its fingerprint
    activation: str = ""  # polynomials of the plan, and how many
    input_level: int = 0
    rotations: int = 0  # keys of them
    weight_bytes: int = 0  # of encoded weights, on the device
    compile_s: float | None = None  # None: a compiled program was loaded
    predicted_us: float | None = None  # of a run, by measured operations; None: compiled without their times
    run_s: tuple[float, ...] = ()  # of each timed run
    simulated: bool = False  # nothing was encrypted: times and memory say nothing
    accuracy: float | None = None  # None: samples have no labels
    float_accuracy: float | None = None
    simulated_accuracy: float | None = None
    agreement: float = 0.0  # share of samples with the largest output of the network in float64
    simulated_agreement: float = 0.0
    cosine: float = 0.0  # least over samples, between outputs and those of float64
    expected_noise: float = 0.0  # root mean square of the errors that the model draws for these samples
    float_error: float = 0.0  # largest against float64: of polynomials and encryption
    approximation: float = 0.0  # root mean square of the polynomials' part of it
    layers: tuple[Layer, ...] = field(default=(), repr=False)
    every: int = 1  # outputs from one of expected, and of found, to the next
    expected: tuple[float, ...] = field(default=(), repr=False)
    found: tuple[float, ...] = field(default=(), repr=False)

    @property
    def staged_s(self) -> float:
        """Seconds of the run that the stages are of: a further one, of one batch."""
        return sum(stage.seconds for stage in self.stages)


Record: TypeAlias = "Training | Sort | Network"
RESULTS: dict[str, type[Training] | type[Sort] | type[Network]] = {
    "helr": Training,
    "sort": Sort,
    "network": Network,
}


def facts_of(params: ckks.Params) -> Json:
    """The fields of `Result` that parameters have."""
    return {
        "params": params.name or "own",
        "params_id": params.id,
        "log_n": params.log_n,
        "scale_bits": params.log_scale,
        "log_pq": round(params.log_pq, 2),
        "alpha": params.alpha,
        "security_bits": round(params.security_bits, 3),
        "insecure": params.insecure,
        "slots": params.slots,
    }


def digest(*arrays: np.ndarray) -> str:
    """SHA-256 of arrays with their shapes, as float64 little-endian."""
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(repr(array.shape).encode())
        hashed.update(np.ascontiguousarray(array, "<f8").tobytes())
    return hashed.hexdigest()


def stages_of(watch: Stopwatch) -> tuple[Stage, ...]:
    """What a stopwatch has."""
    return tuple(Stage(name, seconds, watch.counts[name]) for name, seconds in watch.seconds.items())


def process_peak_bytes() -> int:
    """Resident memory of this process at most, so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def document(results: list[Record], where: Mapping[str, object]) -> Json:
    """The JSON document of runs on one machine."""
    return record(SUITE, where, results)


def write(path: Path, results: list[Record], where: Mapping[str, object]) -> None:
    """Write the document; the file is whole or not there. Raises FileError."""
    write_record(path, document(results, where))


def read(path: Path) -> tuple[list[Record], Json]:
    """Results and provenance of a document that `write` wrote.

    Raises FileError, and SerializationError for anything else than such a document.
    """
    with opened(path) as file:
        data = file.read()
    try:
        found = json.loads(data)
        if (found["kind"], found["format"], found["suite"]) != (KIND, FORMAT, SUITE):
            raise ValueError(f"kind {found['kind']}, format {found['format']}, suite {found['suite']}")
        return [_result(row) for row in found["results"]], dict(found["provenance"])
    except (ValueError, KeyError, TypeError) as error:
        raise SerializationError(f"{path}: no record of a workload: {error!r}", {"path": str(path)}) from None


def _result(row: Json) -> Record:
    row = dict(row)
    row["memory"], row["energy"] = Memory(**row["memory"]), Energy(**row["energy"])
    row["stages"] = tuple(Stage(**stage) for stage in row["stages"])
    if row["name"] == "helr":
        row["iterations"] = tuple(Iteration(**i) for i in row["iterations"])
    else:
        row["expected"], row["found"] = tuple(row["expected"]), tuple(row["found"])
    if row["name"] == "sort":
        row["rounds"] = tuple(Round(**r) for r in row["rounds"])
    if row["name"] == "network":
        row["layers"] = tuple(Layer(**layer) for layer in row["layers"])
        row["run_s"] = tuple(row["run_s"])
    return RESULTS[row["name"]](**row)
