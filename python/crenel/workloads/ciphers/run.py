"""A block cipher on encrypted bits: AES-128, or PRESENT-80 where AES would take too long.

The client encrypts plaintext and key bit by bit; the server runs the cipher gate by gate and sees neither;
the client decrypts the cipher's output and compares it with the test vector of the standard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import crenel
from crenel import tfhe
from crenel.cli.output import size
from crenel.errors import ParameterError
from crenel.workloads.ciphers import aes, present
from crenel.workloads.ciphers.circuit import Clear, Encrypted, Gates
from crenel.workloads.report import Report

CIPHERS = {"aes": aes, "present": present}
BUDGET = 110.0  # seconds that the choice may take, so that the demo ends in two minutes
_PROBE = 256  # gates of the measurement, about what a level of the circuits has


@dataclass(frozen=True)
class Job:
    """What will be run, and what it needs."""

    cipher: ModuleType
    rounds: int
    blocks: int
    gates: int
    reason: str

    @property
    def complete(self) -> bool:
        """Is it the whole cipher?"""
        return bool(self.rounds == self.cipher.ROUNDS)

    @property
    def name(self) -> str:
        text = self.cipher.NAME
        return text if self.complete else f"{text} REDUCED to {self.rounds} of {self.cipher.ROUNDS} rounds"


def run(
    device: str = "auto",
    cipher: str = "auto",
    blocks: int = 1,
    rounds: int | None = None,
    params: tfhe.Params | None = None,
    budget: float = BUDGET,
) -> int:
    """Returns 0 when the decrypted result is that of the test vector, else 1.

    rounds : fewer than the cipher has, for a shorter run whose result is compared with a clear computation
    """
    begin = time.perf_counter()
    crenel.device_info(device)  # refuse at once what cannot be had
    if cipher != "auto" and cipher not in CIPHERS:
        raise ParameterError(f"--cipher is auto, aes or present, got {cipher}", {"cipher": cipher})
    if blocks < 1:
        raise ParameterError(f"--blocks must be at least 1, got {blocks}", {"blocks": blocks})
    report = Report()
    chosen = params or tfhe.preset("bool128")
    with report.step("parameters and tables"):
        context = tfhe.Context(chosen, device=device)
    with report.step("client: secret keys"):
        client = context.keygen()
    with report.step("client: evaluation keys"):
        keys = client.evaluation_keys()
        context.synchronize()
    evaluator = context.evaluator(keys)
    with report.step(f"server: time of a gate ({_PROBE} side by side)"):
        seconds = gate_seconds(client, evaluator)
    job = choose(cipher, blocks, rounds, seconds, context.device.kind == "cuda", budget)
    report.line(f"{job.name}, {blocks} block{'s' * (blocks > 1)}: {job.gates:,} gates. {job.reason}")

    plaintext, key = _inputs(job)
    with report.step(f"client: encrypt {plaintext.size + key.size} bits"):
        bits, key_bits = client.encrypt(plaintext), client.encrypt(key)
    started = time.perf_counter()
    with progress(report, job.gates) as done:
        result = _run_cipher(job, bits, key_bits, Encrypted(evaluator), done)
        context.synchronize()
    spent = time.perf_counter() - started
    with report.step("client: decrypt"):
        found = _blocks(job, [client.decrypt(r) for r in result])
    report.line()
    return _verdict(report, job, found, context, keys, spent, time.perf_counter() - begin)


def gate_seconds(client: tfhe.Client, evaluator: tfhe.Evaluator) -> float:
    """Seconds a gate when many are done side by side."""
    bits = np.arange(_PROBE) % 2 == 0
    a, b = client.encrypt(bits), client.encrypt(bits)
    evaluator.nand(a[:2], b[:2])  # warm up
    evaluator.context.synchronize()
    begin = time.perf_counter()
    evaluator.nand(a, b)
    evaluator.context.synchronize()
    return (time.perf_counter() - begin) / _PROBE


def choose(
    cipher: str, blocks: int, rounds: int | None, seconds: float, is_gpu: bool, budget: float = BUDGET
) -> Job:
    """AES where it fits the budget and on GPUs, else PRESENT, else as many of its rounds as fit."""
    if cipher != "auto" or is_gpu:
        module = aes if cipher == "auto" else CIPHERS[cipher]
        count = module.ROUNDS if rounds is None else rounds
        if not 1 <= count <= module.ROUNDS:
            raise ParameterError(
                f"--rounds must be 1 to {module.ROUNDS} for {module.NAME}, got {count}",
                {"rounds": count},
            )
        gates = module.gate_count(blocks, count)
        return Job(module, count, blocks, gates, f"About {gates * seconds:.0f} s.")
    if rounds is not None:
        raise ParameterError("--rounds needs --cipher aes or present", {"rounds": rounds})
    measured = f"at {1e3 * seconds:.2f} ms a gate"
    gates = aes.gate_count(blocks)
    whole_aes = gates * seconds
    if whole_aes <= budget:
        return Job(aes, aes.ROUNDS, blocks, gates, f"About {whole_aes:.0f} s {measured}.")
    why = f"AES-128 would take about {whole_aes:.0f} s {measured}, more than two minutes."
    for count in range(present.ROUNDS, 0, -1):
        gates = present.gate_count(blocks, count)
        if gates * seconds <= budget or count == 1:
            return Job(present, count, blocks, gates, f"{why} This takes about {gates * seconds:.0f} s.")
    raise AssertionError


def _inputs(job: Job) -> tuple[np.ndarray, np.ndarray]:
    """Bits of plaintext and key, every block the test vector's."""
    cipher = job.cipher
    plaintext = cipher.to_bits([cipher.TEST_PLAINTEXT] * job.blocks)
    key = cipher.to_bits([cipher.TEST_KEY] * job.blocks)
    if cipher is aes:
        return plaintext.reshape(8, -1), key.reshape(8, -1)
    return plaintext.reshape(-1), key.reshape(-1)


def _run_cipher(
    job: Job, plaintext: Any, key: Any, gates: Gates, done: Callable[[int], None] | None = None
) -> list[Any]:
    """Arrays that `gates` takes: bits in, the cipher's result out."""
    if job.cipher is aes:
        planes, key_planes = ([array[i] for i in range(8)] for array in (plaintext, key))
        return aes.encrypt(planes, key_planes, gates, done, job.rounds)
    return [present.encrypt(plaintext, key, gates, done, job.rounds)]


def _blocks(job: Job, result: list[np.ndarray]) -> list[bytes]:
    if job.cipher is aes:
        return aes.from_bits(np.array(result))
    return present.from_bits(result[0].reshape(present.BLOCK_BITS, -1))


def expected(job: Job) -> list[bytes]:
    """The test vector's ciphertext, or what the reduced cipher makes of it in the clear."""
    if job.complete:
        return [job.cipher.TEST_CIPHERTEXT] * job.blocks
    plaintext, key = _inputs(job)
    return _blocks(job, _run_cipher(job, plaintext, key, Clear()))


@contextmanager
def progress(report: Report, total: int) -> Iterator[Callable[[int], None]]:
    """Counts gates: a bar where a person watches, else a line every tenth."""
    begin = time.perf_counter()
    state = {"done": 0, "tenths": 0}

    def rate() -> str:
        return f"{state['done'] / max(time.perf_counter() - begin, 1e-9):,.0f} gates/s"

    if report.console:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("server: cipher"), BarColumn(), TextColumn("{task.fields[rate]}"))
        with Progress(*columns, TimeRemainingColumn(), console=report.console) as bar:
            task = bar.add_task("", total=total, rate="")

            def advance(count: int) -> None:
                state["done"] += count
                bar.update(task, advance=count, rate=f"{state['done']:,} of {total:,} gates, {rate()}")

            yield advance
        return

    def print_tenths(count: int) -> None:
        state["done"] += count
        if 10 * state["done"] // total > state["tenths"]:
            state["tenths"] = 10 * state["done"] // total
            report.line(f"server: {10 * state['tenths']:3d} %, {state['done']:,} gates, {rate()}")

    yield print_tenths


def _verdict(
    report: Report,
    job: Job,
    found: list[bytes],
    context: tfhe.Context,
    keys: tfhe.EvaluationKeys,
    spent: float,
    total: float,
) -> int:
    wanted = expected(job)
    right = found == wanted
    p, device = context.params, context.device
    source = "the test vector" if job.complete else "the same rounds in the clear"
    report.facts(
        [
            ("computed on", f"{device.name} ({device.description})"),
            (
                "parameters",
                f"{p.name}: a gate fails with probability 2^{p.p_fail_log2:.0f}, "
                f"{p.security_bits:.0f} bits of security",
            ),
            ("evaluation keys", f"{size(keys.nbytes)} on the device, {size(keys.wire_bytes)} when sent"),
            ("cipher", job.name),
            ("gates", f"{job.gates:,} in {spent:.1f} s: {job.gates / spent:,.0f} gates/s"),
            ("result", found[0].hex()),
            (source, f"{wanted[0].hex()}: {'agrees' if right else 'DIFFERS'}"),
            ("total time", f"{total:.1f} s"),
        ]
    )
    return 0 if right else 1
