"""``crenel bench integers``: operations on encrypted integers by type: circuits, times on any device, and
what a GPU would take by its measured look-ups."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from crenel.cli.steps import steps_of
from crenel.errors import InsecureParametersWarning, ParameterError

if TYPE_CHECKING:
    from crenel.tfhe import Client, Evaluator, Integers
    from crenel.tfhe.types import IntegerType

Clear = Callable[[int, int, int], object]  # of two values of so many bits
Run = Callable[["Evaluator", "Integers", "Integers"], Any]


def _divided(x: int, y: int, bits: int) -> int:
    return x // y if y else (1 << bits) - 1


# What is measured: on ciphertexts, and on Python's integers. Names as in crenel.tfhe's table of costs.
OPERATIONS: dict[str, tuple[Run, Clear]] = {
    "add": (lambda ev, a, b: ev.add(a, b), lambda x, y, n: (x + y) % (1 << n)),
    "sub": (lambda ev, a, b: ev.sub(a, b), lambda x, y, n: (x - y) % (1 << n)),
    "mul": (lambda ev, a, b: ev.mul(a, b), lambda x, y, n: x * y % (1 << n)),
    "divmod": (lambda ev, a, b: ev.divmod(a, b)[0], lambda x, y, n: _divided(x, y, n)),
    "less": (lambda ev, a, b: ev.less(a, b), lambda x, y, n: x < y),
    "equal": (lambda ev, a, b: ev.equal(a, b), lambda x, y, n: x == y),
    "max": (lambda ev, a, b: ev.max(a, b), lambda x, y, n: max(x, y)),
    "bit_and": (lambda ev, a, b: ev.bit_and(a, b), lambda x, y, n: x & y),
    "shift": (
        lambda ev, a, b: ev.shift_right(a, ev.cast(b, "uint8")),
        lambda x, y, n: x >> y % 256,
    ),
    "leading_zeros": (lambda ev, a, b: ev.leading_zeros(a), lambda x, y, n: n - x.bit_length()),
    "count_ones": (lambda ev, a, b: ev.count_ones(a), lambda x, y, n: x.bit_count()),
}


MANY = 1024  # integers of the array whose rate is predicted


@dataclass
class Predicted:
    """The circuits that a GPU would be given, and their time by `crenel.tfhe.lookup_times`."""

    bootstraps: int  # of one integer, the circuit for one
    depth: int
    latency_us: float
    per_second: float  # in arrays of MANY
    by_step: dict[str, float] = field(default_factory=dict)  # latency_us where all batches take one step


@dataclass
class Measured:
    """One operation on arrays of one type and size."""

    name: str
    type: str
    size: int
    circuits: str
    bootstraps: int  # of one integer
    depth: int
    gpu: Predicted
    latency_us: float | None = None  # median
    min_us: float | None = None
    amortised_us: float | None = None  # for one integer
    repeats: int = 0
    correct: bool | None = None
    skipped: str | None = None


def _chosen(text: str, known: list[str], what: str) -> list[str]:
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise ParameterError(f"{what} '{name}', expected some of {', '.join(known)}", {what: name})
    return wanted or known


def _unsigned(text: str) -> list[IntegerType]:
    from crenel.tfhe.types import integer_type

    kinds = [integer_type("bench integers", name.strip()) for name in text.split(",")]
    for kind in kinds:
        if kind.signed:
            raise ParameterError(f"type {kind}, expected unsigned ones", {"type": kind.name})
    return kinds


def _encrypted(client: Client, rng: np.random.Generator, name: str, size: int) -> tuple[list[int], Integers]:
    from crenel.tfhe.types import integer_type

    kind = integer_type("bench", name)
    values = [int.from_bytes(rng.bytes(32), "little") % (kind.high + 1) for _ in range(size)]
    return values, client.encrypt(values, dtype=name)


def integers(
    parameters: Annotated[str, typer.Option("--set", help="A set for tables.")] = "lut4-128",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref.")] = "auto",
    types: Annotated[str, typer.Option(help="Unsigned types, by commas.")] = "uint8,uint16,uint32,uint64",
    operations: Annotated[str, typer.Option(help="By commas; all by default.")] = "",
    size: Annotated[int, typer.Option(help="Integers in an array.", min=1, max=1 << 20)] = 1,
    circuits: Annotated[str, typer.Option(help="automatic, lean or fast.")] = "automatic",
    repeats: Annotated[int, typer.Option(help="Times that each operation is measured.", min=1)] = 3,
    step: Annotated[
        int, typer.Option(help="Secret bits a step, of sets with groups; 0: the set's own.", min=0, max=6)
    ] = 0,
    steps: Annotated[
        str, typer.Option(help="Further steps to choose from by batch, by commas, or automatic.")
    ] = "",
    limit: Annotated[float, typer.Option(help="Skip what would take more seconds a time.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the values.", min=0)] = 1,
    allow_insecure: Annotated[bool, typer.Option(help="Take toy sets too.")] = False,
    file: Annotated[Path | None, typer.Option("--json", help="Write the results to a new file.")] = None,
) -> None:
    """Operations on encrypted integers: look-ups, rounds, time. Exit status 1 when a result is wrong.

    GPU: the circuits that one would be given, and what they take by the look-ups that were measured there,
    rounds one after the other. Here: those of --device, with the results decrypted and compared.
    """
    from crenel import tfhe
    from crenel.cli.output import expect_new, say
    from crenel.records import command_line, provenance, record, write_record

    names, kinds = _chosen(operations, list(OPERATIONS), "operation"), _unsigned(types)
    expect_new(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        params = tfhe.preset(parameters, allow_insecure=allow_insecure)
        context = tfhe.Context(params, device=device, step=step or None)
    client = context.keygen()
    ev = context.evaluator(
        client.evaluation_keys(),
        circuits=circuits,  # type: ignore[arg-type]
        steps=steps_of(steps),
    )
    rng = np.random.default_rng(seed)
    bootstrap = _seconds_of_a_bootstrap(ev, client, size)
    results = []
    for kind in kinds:
        x, a = _encrypted(client, rng, kind.name, size)
        y, b = _encrypted(client, rng, kind.name, size)
        for name in names:
            say(f"{name} of {kind}")
            found = _measure(ev, client, name, (x, y), (a, b), repeats, limit / max(bootstrap, 1e-9))
            results.append(found)
    say("")
    _print(results, parameters, f"{context.device.description}, arrays of {size}, circuits {circuits}")
    if file is not None:
        facts = _facts(parameters, ev)
        write_record(file, record("integers", provenance(context.device, command_line()), results, **facts))
    raise typer.Exit(1 if any(r.correct is False for r in results) else 0)


def _facts(parameters: str, ev: Evaluator) -> dict[str, Any]:
    """What the results are of."""
    from crenel.tfhe.lookup_times import measured

    params = ev.context.params
    return {
        "params": parameters,
        "params_id": params.id,
        "max_norm2": params.max_norm2,
        "step": params.numbers["step"],
        "step_table": [list(rule) for rule in ev.step_table],
        "predicted_by": asdict(measured()),
        "predicted_rate_of": MANY,
    }


def _seconds_of_a_bootstrap(ev: Evaluator, client: Client, size: int) -> float:
    """For a batch of `size`, once tables are on the device: what the limit is judged by."""
    a = client.encrypt(np.arange(size) % 16, bits=4)
    client.decrypt(ev.lut(a, range(16)))
    start = time.perf_counter()
    client.decrypt(ev.lut(a, range(16)))
    return time.perf_counter() - start


def _measure(
    ev: Evaluator,
    client: Client,
    name: str,
    values: tuple[list[int], list[int]],
    arrays: tuple[Integers, Integers],
    repeats: int,
    most: float,
) -> Measured:
    from crenel import _crenel

    run, clear = OPERATIONS[name]
    kind, size, form = arrays[0].type, arrays[0].size, ev.circuits
    processors = ev.context.device.processors
    norm2, groups = ev.context.params.max_norm2, bool(ev.context.params.numbers["group"])
    bootstraps, _, depth, _ = _crenel.tfhe_integer_cost(
        name, kind.bits, False, form, size, processors, norm2, groups
    )
    result = Measured(name, kind.name, size, form, bootstraps, depth, predicted(name, kind.bits, norm2))
    if bootstraps > most:
        result.skipped = f"more than the limit: {bootstraps} bootstraps"
        return result
    times: list[float] = []
    found: Any = None
    for _ in range(repeats):
        start = time.perf_counter()
        found = run(ev, *arrays)
        ev.context.synchronize()
        times.append(1e6 * (time.perf_counter() - start))
    wanted = [clear(x, y, kind.bits) for x, y in zip(*values, strict=True)]
    result.latency_us, result.min_us = statistics.median(times), min(times)
    result.amortised_us, result.repeats = result.latency_us / size, repeats
    result.correct = client.decrypt(found).tolist() == wanted
    return result


def predicted(name: str, bits: int, max_norm2: float) -> Predicted:
    """An operation of unsigned integers on the GPU of lookups.json: one alone, and many together."""
    from crenel import _crenel
    from crenel.tfhe.lookup_times import measured

    gpu = measured()

    def cost(size: int) -> tuple[int, int, int, list[int]]:
        return _crenel.tfhe_integer_cost(name, bits, False, "automatic", size, gpu.processors, max_norm2)

    bootstraps, _, depth, rounds = cost(1)
    together = gpu.circuit(cost(MANY)[3], MANY)
    by_step = {str(step): 1e6 * gpu.of_step(step).circuit(rounds) for step, _ in gpu.steps}
    rate = MANY / together if together else 0.0
    return Predicted(bootstraps, depth, 1e6 * gpu.circuit(rounds), rate, by_step)


def _print(results: list[Measured], parameters: str, here: str) -> None:
    from crenel.cli.output import table
    from crenel.tfhe.lookup_times import measured

    gpu = measured()
    title = (
        f"{parameters}. GPU: {gpu.device}, predicted from {gpu.params}, {gpu.source}; a second: in arrays of "
        f"{MANY:,}. Here: {here}. Look-ups are of one integer, / rounds"
    )
    header = ["operation", "type", "GPU look-ups", "ms", "a second"]
    header += ["here look-ups", "ms", "ms each", "result"]
    table(header, [_row(r) for r in results], title=title)


def _row(r: Measured) -> list[str]:
    cells = [
        *(r.name, r.type, f"{r.gpu.bootstraps} / {r.gpu.depth}", f"{1e-3 * r.gpu.latency_us:.1f}"),
        *(f"{r.gpu.per_second:,.0f}", f"{r.bootstraps} / {r.depth}"),
    ]
    if r.latency_us is None or r.amortised_us is None:
        return [*cells, "-", "-", r.skipped or "-"]
    times = [f"{1e-3 * t:.2f}" for t in (r.latency_us, r.amortised_us)]
    return [*cells, *times, "exact" if r.correct else "WRONG"]
