"""``crenel bench bridge``: tables and comparisons of CKKS slots by TFHE, their time and errors."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from crenel.errors import InsecureParametersWarning

Json = dict[str, Any]


def bridge(
    parameters: Annotated[str, typer.Option("--set", help="Of CKKS, with bootstrapping.")] = "boot40",
    messages: Annotated[str, typer.Option("--tfhe", help="Of TFHE, by groups of secret bits.")] = "lut4-128",
    slots: Annotated[int, typer.Option(help="Of a ciphertext, a power of two.", min=1, max=1 << 16)] = 1024,
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
        bench = _Bench(parameters, messages, slots, device, repeats, seed, allow_insecure)
        facts, results, used = bench.facts(), bench.results(), bench.device
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


class _Bench:
    """Two contexts with keys of both and between them, and what is timed there."""

    def __init__(
        self, parameters: str, messages: str, slots: int, name: str, repeats: int, seed: int, insecure: bool
    ) -> None:
        import crenel
        from crenel import bridge, ckks, tfhe

        self.device = crenel.Device(name)
        self._context = ckks.Context(ckks.preset(parameters, allow_insecure=insecure), device=self.device)
        self._small = tfhe.Context(tfhe.preset(messages, allow_insecure=insecure), device=self.device)
        self._client, self._holder = self._context.keygen(), self._small.keygen()
        self._made = bridge.Bridge(self._context, self._small, slots)
        self._keys = bridge.make_keys(self._client, self._holder)
        self._server = self._client.evaluation_keys(**self._made.key_options())
        self._tables = self._holder.evaluation_keys()
        evaluators = self._context.evaluator(self._server), self._small.evaluator(self._tables)
        self._across = self._made.crossing(*evaluators, self._keys)
        self._repeats, self._seed, self._rng = repeats, seed, np.random.default_rng(seed)
        self._step = 2.0 / self._made.messages  # a grid from -1 up to 1 - step
        self._noise = self._made.noise(self._step)

    def results(self) -> list[Json]:
        """A row for each direction, for a table there and back, and for a comparison."""
        return [*self._of_tables(), self._of_comparison()]

    def facts(self) -> Json:
        """What the results are of."""
        return {
            "params": self._context.params.name,
            "params_id": self._context.params.id,
            "tfhe_params": self._small.params.name,
            "tfhe_params_id": self._small.params.id,
            "slots": self._made.slots,
            "seed": self._seed,
            "level": self._made.level,
            "output_level": self._made.output_level,
            "bridge_key_bytes": self._keys.nbytes,
            "bridge_wire_bytes": self._keys.wire_bytes,
            "ckks_key_bytes": self._server.nbytes,
            "tfhe_key_bytes": self._tables.nbytes,
            "resolution": self._made.resolution(1.0),
            "noise": {k: getattr(self._noise, k) for k in ("extracted", "reading", "looked_up", "packed")},
        }

    def _of_tables(self) -> Iterator[Json]:
        """Numbers within a quarter of a step of the grid, and a table of cubes."""
        slots, messages, step = self._made.slots, self._made.messages, self._step
        chosen = self._rng.integers(0, messages, slots)
        numbers = -1.0 + step * (chosen + self._rng.uniform(-0.25, 0.25, slots))
        values = np.linspace(-1.0, 1.0, messages) ** 3
        a = self._encrypted(numbers)
        crossed, row = self._timed("to messages", lambda: self._across.to_messages(a, low=-1.0, step=step))
        errors = self._holder._client.phase_errors(crossed._data, chosen.astype(np.uint64))
        circle = 2.0 * messages * step  # what one turn of a phase is
        q = 2.0 ** int(self._small.params.numbers["log_lwe_modulus"])
        moved = errors / q * circle - (numbers - (-1.0 + step * chosen))
        yield row | _judged(moved, self._noise.extracted * circle, step / 8)
        # Of each value: the phase's deviation on the slope of the sine.
        deviation = 2 * math.pi * math.hypot(self._noise.looked_up, self._noise.packed)
        slope = np.sqrt(np.maximum(0.0, 1.0 - values[chosen] ** 2))
        expected = deviation * float(np.sqrt(np.mean(slope**2)))
        calls: dict[str, Callable[[], Any]] = {
            "table and back": lambda: self._across.to_slots(crossed, values),
            "lut": lambda: self._across.lut(a, values, low=-1.0, step=step),
        }
        for name, call in calls.items():
            found, row = self._timed(name, call)
            yield row | _judged(self._decrypted(found) - values[chosen], expected, 0.01)

    def _of_comparison(self) -> Json:
        """Numbers that differ from the threshold by what the model allows it to move, and more."""
        gap = 10 * self._made.resolution(1.0)
        apart = self._rng.uniform(gap, 1.0, self._made.slots) * self._rng.choice(
            [-1.0, 1.0], self._made.slots
        )
        a = self._encrypted(apart)
        found, row = self._timed("comparison", lambda: self._across.compare(a, 0.0, bound=1.0))
        return row | _judged(self._decrypted(found) - (apart >= 0), None, 0.01)

    def _timed(self, name: str, call: Callable[[], Any]) -> tuple[Any, Json]:
        found = call()  # for memory and tables
        self._context.synchronize()
        times = []
        for _ in range(self._repeats):
            began = time.perf_counter()
            found = call()
            self._context.synchronize()
            times.append(time.perf_counter() - began)
        seconds = {"seconds": statistics.median(times), "min_seconds": min(times), "max_seconds": max(times)}
        return found, {"name": name, **seconds}

    def _encrypted(self, numbers: np.ndarray) -> Any:
        return self._client.encrypt(numbers, slots=self._made.slots, level=self._made.level)

    def _decrypted(self, found: Any) -> np.ndarray:
        return np.real(self._client.decrypt(found))


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
