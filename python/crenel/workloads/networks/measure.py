"""A network from a task to a record: compiled, simulated, encrypted, decrypted, compared, timed by layer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crenel import ckks, device_info, nn
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.accounted import accounted
from crenel.nn.cost import CostModel
from crenel.nn.ops import Reals
from crenel.nn.passes.approximate import Strategy
from crenel.nn.plan import Refresh
from crenel.workloads import records, session
from crenel.workloads.networks import layers
from crenel.workloads.networks.clear import DRAWN, Clear, results
from crenel.workloads.networks.task import Task, agreement, least_cosine
from crenel.workloads.progress import Steps
from crenel.workloads.records import Energy, Layer, Memory, Network
from crenel.workloads.session import TABLES, Session

if TYPE_CHECKING:
    from crenel.workloads.report import Report

DEVIATIONS = 8.0  # times the root mean square of what the model draws: what a correct run does not exceed
MOST_VALUES = 512  # that a record holds of the outputs; of more every so many


@dataclass(frozen=True)
class RunOptions:
    """How a task is compiled and run.

    Attributes
    ----------
    batch : samples of a run; None: the program's, or 1
    program : a compiled program in place of compiling
    save : a file for the program that was compiled
    activation, degree, margin, composite : as of `nn.compile`; None: those of the task
    costs : of which machine the times are that layouts and bootstraps are chosen by (`costs_of`), as "NVIDIA
        H100"; None: those of the device, where there is a table, or operations are counted
    lean : less memory for more time: `lean` of `nn.compile`, and `staged` of `nn.Program.bind`
    warm : run once before, untimed
    stages : time each layer in one more run, in which the device is waited for after each
    errors : decrypt every layer of one more run under the client's key, which is a test key
    energy : sample the GPU's power
    graph : replay each run as one recording
    clear : a file ``.npz`` of the results in the clear (`clear.results`): read where it is there, else made
    """

    batch: int | None = None
    program: Path | None = None
    save: Path | None = None
    activation: Strategy = "fit"
    degree: int | None = None
    margin: float | None = None
    warm: bool = False
    stages: bool = True
    errors: bool = False
    energy: bool = False
    graph: bool = False
    clear: Path | None = None
    costs: str | None = None
    composite: str = "15,15,15"
    lean: bool = False


def prepare(
    task: Task,
    params: ckks.Params,
    options: RunOptions,
    report: Report,
    costs: CostModel | None = None,
    machine: str | None = None,
) -> nn.Program:
    """The task's program for parameters, compiled or loaded, and described.

    costs : as of `nn.compile`, where the options name none
    machine : of which the description says the time, where its launches are known; None: of no machine

    Raises ParameterError for a program of other parameters, shapes, or fewer samples a run, for a task
    without a network where no program is named, and what
    `nn.compile`, `nn.Program.load` and `CostModel.packaged` raise.
    """
    if options.program is None:
        if task.model is None:
            raise ParameterError(
                f"{task.name} without its network: name a compiled program", {"missing": "--program"}
            )
        if options.costs is not None:
            with report.step("costs of operations"):
                costs = costs_of(params, options.costs, options.batch or 1)
        with report.step("compile"):
            program = nn.compile(
                task.model, task.calibration, params=params, activation=options.activation,
                degree=_degree(task, options),
                margin=task.margin if options.margin is None else options.margin, batch=options.batch or 1,
                costs=costs, composite=options.composite, lean=options.lean,
            )  # fmt: skip
    else:
        with report.step("load the program"):
            program = nn.Program.load(options.program, allow_insecure=params.insecure)
        _check(program, task, params, options)
    if options.save is not None:
        program.save(options.save)
    with report.step("time, by a dry run"):
        taken = predicted(program, machine)
    report.line(program.describe(taken))
    return program


def costs_of(params: ckks.Params, machine: str, batch: int = 1) -> CostModel:
    """Times of operations on a machine: the packaged table with stand-ins; where there is none, by launches.

    batch : samples of a run, of which several may share a ciphertext

    Raises UnsupportedError naming the machines that are known, where this is none of them.
    """
    try:
        return CostModel.packaged(params, machine).with_stand_ins()
    except UnsupportedError:
        rows = {1, *(batch // images for images in (1, 2, 4) if batch % images == 0)}
        return accounted(params, machine, batches=sorted(rows))


def predicted(program: nn.Program, machine: str | None) -> nn.Duration | None:
    """Of a run on a machine; None: its launches are not known."""
    try:
        return None if machine is None else nn.duration(program, machine)
    except UnsupportedError:
        return None


def _degree(task: Task, options: RunOptions) -> int | Mapping[str, int] | None:
    """A degree would go before 'minimax': the task's own is of fitted polynomials."""
    if options.degree is None and options.activation != "minimax":
        return task.degree
    return options.degree


def _check(program: nn.Program, task: Task, params: ckks.Params, options: RunOptions) -> None:
    """Raises ParameterError where a loaded program is not of this task."""
    found, name = program.params, options.program
    if found != params:
        raise ParameterError(
            f"{name} is of parameters {found.name or found.id[:16]}, not {params.name or params.id[:16]}",
            {"found": found.id, "expected": params.id},
        )
    shape = program.plan.values[0].layout.shape
    if shape != task.samples.shape[1:]:
        raise ParameterError(
            f"{name} takes samples of shape {shape}, not {task.samples.shape[1:]}", {"found": list(shape)}
        )
    if (options.batch or 1) > program.batch:
        raise ParameterError(
            f"{name} takes up to {program.batch} samples a run, not {options.batch}", {"batch": program.batch}
        )


def run(task: Task, params: ckks.Params, device: str, options: RunOptions, report: Report) -> Network:
    """Compile, encrypt, compute, decrypt, compare.

    Raises DeviceError, OutOfMemoryError, and what `prepare` raises, before anything is encrypted.
    """
    machine = device_info(device).description
    program = prepare(task, params, options, report, CostModel.of_device(params, machine), machine)
    clear = results(task, program, options.clear, report, DRAWN)
    if options.lean:
        program.forget()
    held = Session(params, device, report, timed_stages=False, energy=options.energy)
    spec, client = program.client, nn.Client(held.client)
    keys = held.keys(lambda _: client.evaluation_keys(spec))
    with held.step(TABLES):
        server = program.on(held.device).bind(keys, staged=options.lean)
        held.context.synchronize()
    size = options.batch or program.batch
    parts = [task.samples[k : k + size] for k in range(0, len(task.samples), size)]
    with held.step("client: encrypt"):
        sent = [client.encrypt(part, spec) for part in parts]
        held.context.synchronize()
    if options.warm:
        with held.step("server: one run before"):
            server.run(sent[0], graph=options.graph)
            held.context.synchronize()
    times: list[float] = []
    returned = held.run("server: all runs", lambda: _runs(held, server, sent, times, options.graph))
    with held.step("client: decrypt"):
        found = np.concatenate([client.decrypt(y, spec) for y in returned])
    facts = held.facts(
        session.RunOptions(warm=options.warm), keys, len(task.samples), recorded=options.graph, resumed=False
    )
    found_layers = layers.measured(
        held, server, client, task.samples[:size], sent[0], timed=options.stages, errors=options.errors
    )
    if options.stages:
        facts |= {"stages": layers.by_kind(found_layers), "stages_timed": True}
    full = [t for t, part in zip(times, parts, strict=True) if len(part) == len(parts[0])]
    facts |= {
        "total_s": sum(times),
        "latency_us": 1e6 * statistics.median(full),
        "encrypt_s": held.seconds_of("client: encrypt"),
        "decrypt_s": held.seconds_of("client: decrypt"),
        "wire_bytes": sum(len(x.to_bytes()) for x in sent[:1]) * len(sent),
    }
    ms = program.expected.milliseconds
    gpu = held.device.info.name.startswith("cuda")
    if not gpu and (options.program is not None or options.costs is not None):
        ms = None  # of another machine, by whose times the program was compiled
    if size == program.batch and (taken := predicted(program, machine)) is not None:
        ms = taken.recorded_ms if options.graph else taken.ms
    return _record(task, program, clear, found, options, report, facts, times, found_layers, ms)


def simulated(task: Task, params: ckks.Params, options: RunOptions, report: Report) -> Network:
    """As `run`, but what is compared with float64 is the program in the clear, with errors drawn."""
    program = prepare(task, params, options, report, machine=options.costs)
    with report.step("memory, by a dry run"):
        taken = nn.footprint(program)
    report.line(f"{'memory of a GPU':<18}{taken}")
    clear = results(task, program, options.clear, report)
    nothing = "nothing was encrypted"
    facts = records.facts_of(params) | {
        "variant": "crenel", "seed": 0, "steps": len(task.samples), "total_s": 0.0, "latency_us": 0.0,
        "setup_s": 0.0, "warm": False, "graph": False, "resumed": False, "keys_s": 0.0, "encrypt_s": 0.0,
        "decrypt_s": 0.0, "wire_bytes": 0, "stages_timed": False, "stages": (), "simulated": True,
        "memory": Memory(program.demand.key_bytes, 0, None, nothing, records.process_peak_bytes()),
        "energy": Energy(None, None, None, 0, nothing),
    }  # fmt: skip
    return _record(
        task,
        program,
        clear,
        clear.noisy,
        options,
        report,
        facts,
        [],
        tuple(layers.of_plan(program.plan).values()),
        program.expected.milliseconds,
    )


def _runs(
    held: Session, server: nn.Server, sent: list[nn.EncryptedTensor], times: list[float], graph: bool
) -> list[nn.EncryptedTensor]:
    """The results; `times` gets the seconds of each run."""
    found = []
    with Steps(None, len(sent), "runs") as steps:
        for x in sent:
            start = time.perf_counter()
            found.append(server.run(x, graph=graph))
            held.context.synchronize()
            times.append(time.perf_counter() - start)
            steps.step()
    return found


def _record(
    task: Task,
    program: nn.Program,
    clear: Clear,
    found: Reals,
    options: RunOptions,
    report: Report,
    facts: dict[str, Any],
    times: list[float],
    found_layers: tuple[Layer, ...],
    ms: float | None,
) -> Network:
    error = float(np.abs(found - clear.plan).max())
    bound = DEVIATIONS * clear.noise
    every = -(-found.size // MOST_VALUES)
    demand = program.demand
    return Network(
        **facts,
        name="network",
        network=task.name,
        weights=task.weights,
        data=task.data,
        data_digest=records.digest(task.samples),
        digest=records.digest(found),
        program=program.fingerprint,
        activation=layers.polynomials(program.plan),
        batch=options.batch or program.batch,
        bootstraps=sum(isinstance(step, Refresh) for step in program.plan.steps),
        correct=error <= bound,
        error=error,
        bound=bound,
        bound_note=f"{DEVIATIONS:g} times the root mean square of the model's errors",
        input_level=program.plan.input_level,
        rotations=len(demand.rotations),
        weight_bytes=demand.plaintext_bytes,
        compile_s=report.times.get("compile"),
        predicted_us=None if ms is None else 1e3 * ms,
        run_s=tuple(times),
        accuracy=task.accuracy(found),
        float_accuracy=task.accuracy(clear.exact),
        simulated_accuracy=task.accuracy(clear.noisy),
        agreement=agreement(found, clear.exact),
        simulated_agreement=agreement(clear.noisy, clear.exact[: len(clear.noisy)]),
        cosine=least_cosine(found, clear.exact),
        expected_noise=clear.noise,
        float_error=float(np.abs(found - clear.exact).max()),
        approximation=float(np.sqrt(np.mean((clear.plan - clear.exact) ** 2))),
        layers=found_layers,
        every=every,
        expected=tuple(clear.exact.reshape(-1)[::every].tolist()),
        found=tuple(found.reshape(-1)[::every].tolist()),
    )
