"""``crenel bench pool``: what several devices bring, measured in one run by one clock."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from crenel.errors import InsecureParametersWarning, ParameterError

if TYPE_CHECKING:
    from crenel import ckks, tfhe
    from crenel.devices import Replication

Json = dict[str, Any]


def pool(
    devices: Annotated[
        str, typer.Option(help="By commas: cuda:0,cuda:1. The first holds inputs and results.")
    ],
    parameters: Annotated[
        str, typer.Option("--set", help="For bootstraps of CKKS; none to leave them out.")
    ] = "boot40",
    gates: Annotated[str, typer.Option(help="A set for gates of TFHE; none to leave them out.")] = "bool128",
    each: Annotated[int, typer.Option(help="Bootstraps of CKKS a device.", min=1, max=1 << 20)] = 32,
    together: Annotated[str, typer.Option(help="Bootstraps of one call, by commas.")] = "1,4",
    size: Annotated[int, typer.Option(help="Gates of TFHE a device.", min=1, max=1 << 24)] = 32768,
    against: Annotated[
        str,
        typer.Option(
            help="The one device to compare with, such as the whole of a GPU whose parts are a pool."
        ),
    ] = "",
    repeats: Annotated[int, typer.Option(help="Times that each is measured; medians are told.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="Of the messages.", min=0)] = 1,
    allow_insecure: Annotated[bool, typer.Option(help="Take toy sets too.")] = False,
    file: Annotated[Path | None, typer.Option("--json", help="Write the results to a new file.")] = None,
) -> None:
    """Several devices against one: bootstraps and gates a second, copies of keys, memory.

    Exit status 1 when a result is not that of one device, bit for bit.
    """
    from crenel.cli.output import expect_new, numbers, table
    from crenel.records import command_line, provenance, record, write_record

    names = [name.strip() for name in devices.split(",") if name.strip()]
    if not names:
        raise ParameterError(f"devices is '{devices}', expected names by commas", {"devices": devices})
    expect_new(file)
    steps = numbers(together, "--together")
    results: list[Json] = []
    described, first = "", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        if parameters != "none":
            found, made = _ckks(names, against, parameters, each, steps, repeats, seed, allow_insecure)
            results += found
            described, first = made.describe(), made.pool.devices[0]
            del made  # its keys make room for those of the gates
        if gates != "none":
            found, gate_pool = _tfhe(names, against, gates, size, repeats, seed, allow_insecure)
            results += found
            first = first or gate_pool.devices[0]
            described = described or gate_pool.describe()
    if first is None:
        raise ParameterError("neither --set nor --gates: nothing to measure", {"set": parameters})
    print(described + "\n")
    head = ["what", "set", "devices", "together", "a second", "ms", "times one device", "same bits"]
    table(head, [_row(r) for r in results if "rate" in r])
    for r in results:
        if "copies" in r:
            print(_copies(r))
    if file is not None:
        more = {"against": against} if against else {}
        write_record(file, record("pool", provenance(first, command_line()), results, devices=names, **more))
    raise typer.Exit(1 if any(r.get("same_bits") is False for r in results) else 0)


def _counts(devices: int) -> list[int]:
    """1, 2, 4, ... and all of them."""
    return sorted({1 << i for i in range(devices.bit_length())} & set(range(1, devices + 1)) | {devices})


def _timed(run: Callable[[], Any], done: Callable[[], None], repeats: int) -> tuple[Any, list[float]]:
    """What the last run gave, and the seconds of each; one before, for memory and graphs, is not counted."""
    result = run()
    done()
    times = []
    for _ in range(repeats):
        del result
        began = time.perf_counter()
        result = run()
        done()
        times.append(time.perf_counter() - began)
    return result, times


def _measured(times: list[float], things: int, alone: float | None) -> Json:
    """`alone`: things a second on one device."""
    middle = statistics.median(times)
    rate = things / middle
    return {
        "things": things,
        "seconds": middle,
        "min_seconds": min(times),
        "max_seconds": max(times),
        "rate": rate,
        "times_one_device": 1.0 if alone is None else rate / alone,
    }


def _copied(name: str, what: str, first: Replication, again: Replication) -> Json:
    return {
        "name": name,
        "params": what,
        "copies": len(first.roads),
        "bytes": first.nbytes,
        "roads": list(first.roads),
        "first_seconds": first.seconds,
        "seconds": again.seconds,
        "gb_per_s": again.nbytes / again.seconds / 1e9 if again.seconds else None,
    }


def _memory(pool: ckks.DevicePool | tfhe.DevicePool) -> list[Json]:
    found = []
    for device in pool.devices:
        use, pools = device.memory(), device.pools()
        found.append({"device": device.name, "used": use.used, "held": pools.held, "peak": pools.peak})
    return found


def _ckks(
    names: list[str],
    against: str,
    preset: str,
    each: int,
    steps: Sequence[int],
    repeats: int,
    seed: int,
    insecure: bool,
) -> tuple[list[Json], ckks.PoolEvaluator]:
    from crenel import _crenel, ckks

    params = ckks.preset(preset, allow_insecure=insecure)
    pool = ckks.DevicePool(params, names)
    client = pool.context.keygen()
    keys = client.evaluation_keys(bootstrap=True)
    first = pool.evaluator(keys).replication
    ev = pool.evaluator(keys)  # into memory that the pool holds by now: the copies alone
    boot = ev.bootstrapper()
    rng = np.random.default_rng(seed)
    whole = [
        client.encrypt(row, level=boot.levels.input)
        for row in rng.uniform(-1, 1, (min(each * len(names), 8), params.slots))
    ]
    rows: list[Json] = []
    facts = {"name": "bootstrap", "params": preset, "params_id": params.id}
    home = boot.bootstrappers[0]
    inputs = [whole[i % len(whole)] for i in range(each)]
    found, times = _timed(lambda: [home(c) for c in inputs], pool.synchronize, repeats)
    expected = [c.to_bytes() for c in found[: len(whole)]]  # of the library without a pool
    rows.append({**facts, "devices": 1, "together": None, **_measured(times, each, None), "same_bits": True})
    groups: list[tuple[int, Json, ckks.DevicePool, Any]] = [
        (count, {}, pool, boot.first(count)) for count in _counts(len(names))
    ]
    if against:
        lone = ckks.DevicePool(params, [against])
        other = lone.evaluator(_crenel.copy_to(lone.context, keys)).bootstrapper()
        groups.insert(0, (1, {"device": lone.devices[0].name}, lone, other))
    for step in steps:
        alone: float | None = None
        for count, where, of, some in groups:
            inputs = [whole[i % len(expected)] for i in range(each * count)]
            if where:
                inputs = [of.context.ciphertext_from_bytes(c.to_bytes()) for c in inputs]

            def run(some: Any = some, inputs: Any = inputs, step: int = step) -> list[ckks.Ciphertext]:
                return some(inputs, together=step)

            found, times = _timed(run, of.synchronize, repeats)
            checked = range(0, len(found), max(1, len(found) // 8))
            same = all(found[i].to_bytes() == expected[i % len(expected)] for i in checked)
            measured = _measured(times, len(inputs), alone)
            alone = alone or measured["rate"]
            rows.append({**facts, **where, "devices": count, "together": step, **measured, "same_bits": same})
    if first is not None and ev.replication is not None:
        rows.append(_copied("keys", preset, first, ev.replication) | {"memory": _memory(pool)})
    return rows, ev


def _tfhe(
    names: list[str], against: str, preset: str, size: int, repeats: int, seed: int, insecure: bool
) -> tuple[list[Json], tfhe.DevicePool]:
    from crenel import _crenel, tfhe

    pool = tfhe.DevicePool(tfhe.preset(preset, allow_insecure=insecure), names)
    client = pool.context.keygen()
    keys = client.evaluation_keys()
    limit = 0.0 if insecure else None
    first = pool.evaluator(keys, max_p_fail_log2=limit).replication
    ev = pool.evaluator(keys, max_p_fail_log2=limit)
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 2, (2, size * len(names))).astype(bool)
    a, b = client.encrypt(x), client.encrypt(y)
    rows: list[Json] = []
    alone: float | None = None
    single = b""
    groups: list[tuple[int, Json, tfhe.DevicePool, Any]] = [
        (count, {}, pool, ev.first(count)) for count in _counts(len(names))
    ]
    if against:
        lone = tfhe.DevicePool(pool.params, [against])
        copied = _crenel.copy_to(lone.context._context, keys)
        other = lone.evaluator(copied, max_p_fail_log2=limit)
        groups.insert(0, (1, {"device": lone.devices[0].name}, lone, other))
    for count, where, of, some in groups:
        some_a, some_b = a[: size * count], b[: size * count]
        if where:
            some_a, some_b = (of.context.ciphertext_from_bytes(x.to_bytes()) for x in (some_a, some_b))
        run = partial(some.nand, some_a, some_b)
        found, times = _timed(run, of.synchronize, repeats)
        part = found[:size]
        single = single or part.to_bytes()
        measured = _measured(times, size * count, alone)
        alone = alone or measured["rate"]
        home = pool.context.ciphertext_from_bytes(part.to_bytes()) if where else part
        exact = insecure or bool((client.decrypt(home) == ~(x[:size] & y[:size])).all())
        facts = {"name": "nand", "params": preset, "params_id": pool.params.id, **where, "devices": count}
        same = part.to_bytes() == single and exact
        rows.append({**facts, "together": None, **measured, "same_bits": same})
    rows.append(_copied("keys", preset, first, ev.replication) | {"memory": _memory(pool)})
    return rows, pool


def _row(r: Json) -> list[str]:
    return [
        *(r["name"], r["params"], r.get("device") or str(r["devices"]), str(r["together"] or "-")),
        *(f"{r['rate']:.1f}", f"{1e3 * r['seconds']:.2f}", f"{r['times_one_device']:.3f}"),
        "yes" if r["same_bits"] else "NO",
    ]


def _copies(r: Json) -> str:
    if not r["copies"]:
        return f"keys of {r['params']}: on one device"
    held = ", ".join(f"{m['device']} {m['held'] / 1e9:.1f} GB" for m in r["memory"])
    return (
        f"keys of {r['params']}: {r['bytes'] / 1e9:.2f} GB to {r['copies']} devices in {r['seconds']:.3f} s, "
        f"{r['gb_per_s']:.0f} GB/s ({', '.join(r['roads'])}); the first time {r['first_seconds']:.3f} s; "
        f"memory held: {held}"
    )
