"""Bootstrapping: latency, precision, levels, memory."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from crenel import ckks
from crenel.bench import record
from crenel.cli.output import size, table

_SLACK = 2.0  # a result is right when its error is at most this many times the expected one


@dataclass
class BootBench:
    """One set on one device. `rows` are the results, each with its correctness."""

    params: ckks.Params
    device: str = "auto"
    minimal: bool = False
    slots: int | None = None
    seed: int = 1
    rows: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = ckks.BootstrapOptions(slots=self.slots, keys="minimal" if self.minimal else "hoisted")
        options.rotations(self.params)  # refuses what cannot be, before any work
        self.context = ckks.Context(self.params, device=self.device)
        client = self.context.keygen()
        begin = time.perf_counter()
        keys = client.evaluation_keys(bootstrap=options)
        self.context.synchronize()
        self.keys_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        self.boot = self.context.bootstrapper(keys, options)
        self.context.synchronize()
        self.setup_seconds = time.perf_counter() - begin

        rng = np.random.default_rng(self.seed)
        x, y = rng.uniform(-1, 1, (2, self.boot.options.slots or 1))
        self.values = x + 1j * y
        self.input = client.encrypt(self.values, level=self.boot.levels.input, slots=len(x))
        self.client = client

    @property
    def wrong(self) -> list[str]:
        """Names of the rows whose result was wrong."""
        return [f"bootstrap, {_mode(row)}" for row in self.rows if not row["correct"]]

    def run(self, runs: int = 0) -> None:
        """Times eager calls and, where the device has graphs, replays; the bits must be the same."""
        self._row(self.boot.eager, False, runs)
        if self.context.device.kind == "cuda":  # elsewhere a graph is the callable itself
            self._row(self.boot, True, runs)
        if len({row["digest"] for row in self.rows}) != 1:
            for row in self.rows:
                row["correct"] = False

    def _row(self, boot: Callable[[ckks.Ciphertext], ckks.Ciphertext], graph: bool, runs: int) -> None:
        self.context.reset_peak()
        timing = record.timed(lambda: boot(self.input), self.context.synchronize, runs)
        peak = self.context.peak_bytes
        result = boot(self.input)
        errors = np.abs(self.client.decrypt(result) - self.values)
        largest, rms = float(errors.max()), float(np.sqrt(np.mean(errors**2)))
        p, report = self.params, self.boot.report()
        levels, slots = report.levels, len(self.values)
        bound = _SLACK * report.expected_error
        gained = levels.output - levels.input
        self.rows.append(
            {
                "name": "bootstrap",
                "params": p.name,
                "params_id": p.id,
                "log_n": p.log_n,
                "scale_bits": p.log_scale,
                "log_pq": p.log_pq,
                "alpha": p.alpha,
                "security_bits": p.security_bits,
                "level": levels.input,
                "limbs": sum(p.levels[levels.input]),
                "output_level": levels.output,
                "slots": slots,
                "keys": self.boot.options.keys,
                "graph": graph,
                "batch": result.batch,
                "latency_us": 1e6 * timing.median,
                "q1_us": 1e6 * timing.q1,
                "q3_us": 1e6 * timing.q3,
                "min_us": 1e6 * timing.least,
                "amortised_us": 1e6 * timing.median / result.batch,
                "slot_level_ns": 1e9 * timing.median / (result.batch * slots * gained),
                "groups": timing.runs,
                "calls_per_group": 1,
                "bytes": result.nbytes,
                "key_count": report.key_count,
                "key_bytes": report.key_bytes,
                "plaintext_bytes": report.plaintext_bytes,
                "workspace_bytes": report.workspace_bytes,
                "peak_bytes": peak,
                "error_log2": record.log2(largest),
                "rms_log2": record.log2(rms),
                "bound_log2": record.log2(bound),
                "correct": bool(largest <= bound),
                "digest": hashlib.sha256(result.to_bytes()).hexdigest(),
            }
        )

    def print(self) -> None:
        """What was measured, for people."""
        p, device = self.params, self.context.device
        print(f"{p.name or p.id} on {device.name} ({device.description})")
        if p.insecure:
            print("INSECURE parameters, for tests only")
        print(self.boot.describe())
        print(f"set-up          keys {self.keys_seconds:.2f} s, plaintexts {self.setup_seconds:.2f} s\n")
        rows = []
        for row in self.rows:
            peak = size(int(row["peak_bytes"]))  # type: ignore[call-overload]
            cells = [f"{row[name]:.1f}" for name in ("latency_us", "q1_us", "q3_us", "slot_level_ns")]
            bits = [f"2^{row[name]:.1f}" for name in ("error_log2", "rms_log2")]
            rows.append((_mode(row), *cells, str(row["groups"]), *bits, peak, _verdict(row)))
        header = ("", "median us", "q1", "q3", "ns / slot / level", "runs", "largest error", "rms")
        table((*header, "peak memory", ""), rows)
        print(f"digest of the result {self.rows[0]['digest']}")

    def write(self, path: Path, command: str) -> None:
        """The results as JSON."""
        record.write(path, "boot", record.provenance(self.context.device, command), self.rows)


def _mode(row: dict[str, object]) -> str:
    return "graph" if row["graph"] else "eager"


def _verdict(row: dict[str, object]) -> str:
    return "right" if row["correct"] else "WRONG"
