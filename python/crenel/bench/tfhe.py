"""TFHE: bootstraps a second of whole arrays, latency of one, sizes of keys, failures."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from crenel import tfhe
from crenel.bench import record
from crenel.cli.output import size, table

_ALLOWED_EXPECTATION = 1e-3  # where fewer failures than this are expected, one is wrong


@dataclass
class TfheBench:
    """One set on one device: a gate, or a table where the set is for tables. `rows` are the results."""

    params: tfhe.Params
    device: str = "auto"
    packing: int = 1
    arithmetic: str | None = None
    batch: int = 1024
    seed: int = 1
    rows: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context = tfhe.Context(
            self.params, device=self.device, packing=self.packing, arithmetic=self.arithmetic
        )
        begin = time.perf_counter()
        self.client = self.context.keygen()
        keys = self.client.evaluation_keys()
        self.context.synchronize()
        self.keys_seconds = time.perf_counter() - begin
        self.ev = self.context.evaluator(keys)
        self.operation = "lut" if self.context.params.padded else "nand"

    @property
    def wrong(self) -> list[str]:
        """Names of the rows with more failures than their probability explains."""
        return [f"{row['name']}, {row['mode']}" for row in self.rows if not row["correct"]]

    def run(self, runs: int = 0) -> None:
        """Times a whole array that stays on the device, and a single row of ciphertexts."""
        inputs, expected = self._inputs(self.batch)
        self._row("resident", inputs, expected, lambda: self._call(inputs), runs)
        one, alone = self._inputs(self.packing)
        self._row("latency", one, alone, lambda: self._call(one), runs)

    def _inputs(self, count: int) -> tuple[list[tfhe.Ciphertext], np.ndarray]:
        rng = np.random.default_rng(self.seed)
        if self.operation == "nand":
            x, y = rng.integers(0, 2, (2, count)).astype(bool)
            return [self.client.encrypt(x), self.client.encrypt(y)], ~(x & y)
        limit = self.context.params.plain_modulus // 2
        m = rng.integers(0, limit, count, dtype=np.uint16)
        return [self.client.encrypt(m, bits=limit.bit_length() - 1)], (m * m + 1) % limit

    def _call(self, inputs: list[tfhe.Ciphertext]) -> tfhe.Ciphertext:
        if self.operation == "nand":
            return self.ev.nand(*inputs)
        limit = self.context.params.plain_modulus // 2
        return self.ev.lut(inputs[0], [(m * m + 1) % limit for m in range(limit)])

    def _row(
        self,
        mode: str,
        inputs: list[tfhe.Ciphertext],
        expected: np.ndarray,
        call: Callable[[], tfhe.Ciphertext],
        runs: int,
    ) -> None:
        self.context.reset_peak()
        timing = record.timed(call, self.context.synchronize, runs)
        found = self.client.decrypt(call())
        failures = int((found != expected).sum())
        p = self.context.params
        likely = len(expected) * 2.0**p.p_fail_log2
        allowed = 0.0 if likely < _ALLOWED_EXPECTATION else likely + 3 * likely**0.5 + 1
        self.rows.append(
            {
                "name": self.operation,
                "params": p.name,
                "params_id": p.id,
                "slots": p.slots,
                "arithmetic": p.arithmetic,
                "operation": self.operation,
                "mode": mode,
                "bootstraps_per_operation": 1,
                "p_fail_log2": p.p_fail_log2,
                "security_bits": p.security_bits,
                "size": len(expected),
                "batch": len(expected),
                "operations_per_s": len(expected) / timing.median,
                "bootstraps_per_s": len(expected) / timing.median,
                "latency_us": 1e6 * timing.median,
                "q1_us": 1e6 * timing.q1,
                "q3_us": 1e6 * timing.q3,
                "min_us": 1e6 * timing.least,
                "groups": timing.runs,
                "calls_per_group": 1,
                "bytes": sum(c.nbytes for c in inputs),
                "peak_bytes": self.context.peak_bytes,
                "failures": failures,
                "correct": failures <= allowed,
                "digest": hashlib.sha256(found.tobytes()).hexdigest(),
            }
        )

    def print(self) -> None:
        """What was measured, for people."""
        p, device, keys = self.context.params, self.context.device, self.ev.keys
        print(f"{p.name} on {device.name} ({device.description}), {p.slots} a mask, {p.arithmetic}")
        print(p.warning or f"a bootstrap fails with probability 2^{p.p_fail_log2:.1f}")
        sizes = f"{size(keys.nbytes)} on the device, {size(keys.wire_bytes)} when sent"
        print(f"keys            {sizes}, made in {self.keys_seconds:.2f} s\n")
        rows = []
        for row in self.rows:
            cells = [f"{row[name]:.1f}" for name in ("latency_us", "q1_us", "q3_us", "bootstraps_per_s")]
            verdict = "right" if row["correct"] else "WRONG"
            rows.append(
                (
                    f"{row['name']}, {row['mode']}",
                    str(row["size"]),
                    *cells,
                    str(row["groups"]),
                    str(row["failures"]),
                    verdict,
                )
            )
        header = ("", "messages", "median us", "q1", "q3", "bootstraps / s", "runs", "failures", "")
        table(header, rows)
        print(f"digest of the results {self.rows[0]['digest']}")

    def write(self, path: Path, command: str) -> None:
        """The results as JSON."""
        facts = record.provenance(self.context.device, command)
        record.write(path, "tfhe", facts, self.rows)
