"""``crenel bench bridge``: tables and comparisons of CKKS slots by TFHE, their time and errors."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from crenel.errors import InsecureParametersWarning

Json = dict[str, Any]


def bridge(
    parameters: Annotated[str, typer.Option("--set", help="Of CKKS, with bootstrapping.")] = "boot40",
    messages: Annotated[str, typer.Option("--tfhe", help="Of TFHE, by groups of secret bits.")] = "lut4-128",
    slots: Annotated[int, typer.Option(help="Of a ciphertext, a power of two.", min=1)] = 1024,
    device: Annotated[str, typer.Option(help="ref, cpu, cuda, cuda:<index> or auto.")] = "auto",
    repeats: Annotated[int, typer.Option(help="Times that each is measured; medians are told.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="Of the numbers.", min=0)] = 1,
    allow_insecure: Annotated[bool, typer.Option(help="Take toy sets too.")] = False,
    file: Annotated[Path | None, typer.Option("--json", help="Write the results to a new file.")] = None,
) -> None:
    """From CKKS to TFHE and back: milliseconds, errors against the model, sizes of keys.

    Exit status 1 when a slot is wrong.
    """
    from crenel.cli.output import expect_new, table
    from crenel.records import command_line, provenance, record, write_record

    expect_new(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        facts, results, used = _measure(parameters, messages, slots, device, repeats, seed, allow_insecure)
    print(
        f"{parameters} and {messages} on {used.name}, {slots} slots: keys of the bridge "
        f"{facts['bridge_key_bytes'] / 2**20:.2f} MiB, of CKKS {facts['ckks_key_bytes'] / 2**30:.2f} GiB, "
        f"of TFHE {facts['tfhe_key_bytes'] / 2**20:.0f} MiB; level {facts['level']} or above to level "
        f"{facts['output_level']}\n"
    )
    table(["what", "ms", "wrong", "error rms", "by the model", "largest error"], [_row(r) for r in results])
    if file is not None:
        write_record(file, record("bridge", provenance(used, command_line()), results, **facts))
    raise typer.Exit(1 if any(r["wrong"] for r in results) else 0)


def _measure(
    parameters: str, messages: str, slots: int, name: str, repeats: int, seed: int, insecure: bool
) -> tuple[Json, list[Json], Any]:
    import crenel
    from crenel import bridge, ckks, tfhe

    device = crenel.Device(name)
    context = ckks.Context(ckks.preset(parameters, allow_insecure=insecure), device=device)
    small = tfhe.Context(tfhe.preset(messages, allow_insecure=insecure), device=device)
    client, holder = context.keygen(), small.keygen()
    made = bridge.Bridge(context, small, slots)
    keys, server = bridge.make_keys(client, holder), client.evaluation_keys(**made.key_options())
    tables = holder.evaluation_keys()
    across = made.crossing(context.evaluator(server), small.evaluator(tables), keys)
    rng = np.random.default_rng(seed)
    step = 2.0 / made.messages  # a grid from -1 up to 1 - step
    chosen = rng.integers(0, made.messages, slots)
    numbers = -1.0 + step * (chosen + rng.uniform(-0.25, 0.25, slots))
    values = np.linspace(-1.0, 1.0, made.messages) ** 3
    a = client.encrypt(numbers, slots=slots, level=made.level)
    results = []

    def timed(what: str, run: Callable[[], Any]) -> tuple[Any, Json]:
        found = run()  # for memory and tables
        context.synchronize()
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            found = run()
            context.synchronize()
            times.append(time.perf_counter() - began)
        return found, {
            "name": what,
            "seconds": statistics.median(times),
            "min_seconds": min(times),
            "max_seconds": max(times),
        }

    noise = made.noise(step)
    crossed, row = timed("to messages", lambda: across.to_messages(a, low=-1.0, step=step))
    errors = holder._client.phase_errors(crossed._data, chosen.astype(np.uint64))
    circle = 2.0 * made.messages * step  # what one turn of a phase is
    q = 2.0 ** int(small.params.numbers["log_lwe_modulus"])
    moved = errors / q * circle - (numbers - (-1.0 + step * chosen))
    results.append(row | _judged(moved, noise.extracted * circle, step / 8))
    back, row = timed("table and back", lambda: across.to_slots(crossed, values))
    # Of each value: the phase's deviation on the slope of the sine.
    slope = (
        2 * math.pi * np.sqrt(np.maximum(0.0, 1.0 - values**2)) * math.hypot(noise.looked_up, noise.packed)
    )
    expected = float(np.sqrt(np.mean(slope[chosen] ** 2)))
    results.append(row | _judged(np.real(client.decrypt(back)) - values[chosen], expected, 0.01))
    whole, row = timed("lut", lambda: across.lut(a, values, low=-1.0, step=step))
    results.append(row | _judged(np.real(client.decrypt(whole)) - values[chosen], expected, 0.01))
    # Numbers that differ from the threshold by what the model allows it to move.
    gap = 10 * made.resolution(1.0)
    apart = rng.uniform(gap, 1.0, slots) * rng.choice([-1.0, 1.0], slots)
    b = client.encrypt(apart, slots=slots, level=made.level)
    signs, row = timed("comparison", lambda: across.compare(b, 0.0, bound=1.0))
    results.append(row | _judged(np.real(client.decrypt(signs)) - (apart >= 0), None, 0.01))
    facts = {
        "params": parameters,
        "params_id": context.params.id,
        "tfhe_params": messages,
        "tfhe_params_id": small.params.id,
        "slots": slots,
        "seed": seed,
        "level": made.level,
        "output_level": made.output_level,
        "bridge_key_bytes": keys.nbytes,
        "bridge_wire_bytes": keys.wire_bytes,
        "ckks_key_bytes": server.nbytes,
        "tfhe_key_bytes": tables.nbytes,
        "resolution": made.resolution(1.0),
        "noise": {k: getattr(noise, k) for k in ("extracted", "reading", "looked_up", "packed")},
    }
    return facts, results, device


def _judged(errors: np.ndarray, expected: float | None, limit: float) -> Json:
    """Root mean square and largest of errors, and how many exceed the limit, of a wrong message."""
    return {
        "rms": float(np.sqrt(np.mean(errors**2))),
        "expected_rms": expected,
        "largest": float(np.abs(errors).max()),
        "wrong": int((np.abs(errors) > limit).sum()),
    }


def _row(r: Json) -> list[str]:
    model = "-" if r["expected_rms"] is None else f"2^{math.log2(r['expected_rms']):.1f}"
    return [
        *(r["name"], f"{1e3 * r['seconds']:.1f}", str(r["wrong"])),
        *(f"2^{_log2(r['rms'])}", model, f"2^{_log2(r['largest'])}"),
    ]


def _log2(x: float) -> str:
    return f"{math.log2(x):.1f}" if x > 0 else "-inf"
