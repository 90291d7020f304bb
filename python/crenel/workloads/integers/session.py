"""A client and a server of the programs on encrypted integers, and their calls, timed and compared with the
clear: a first one, which composes circuits and makes tables, and warm ones as a running service has."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

import crenel
from crenel import tfhe
from crenel.errors import InsecureParametersWarning, ParameterError
from crenel.records import provenance, record
from crenel.workloads.report import Report

SUITE = "integer-workload"
MOST_REPEATS = 100_000


@dataclass
class Call:
    """From bytes to bytes: the client encrypts, the server works, the client decrypts and compares."""

    number: int
    """0: the first."""
    seed: int
    """Of its inputs, where these are drawn."""
    what: str = ""
    correct: bool = False
    seconds: float = 0.0
    """Of the server."""
    bootstraps: int = 0
    sent: int = 0
    """Bytes to the server, without keys."""
    received: int = 0
    """Bytes to the client."""


@dataclass
class Outcome:
    """What a run found and took. All but `correct`, keys and what is called warm is of the first call."""

    workload: str
    what: str
    params: str
    correct: bool
    """Every call's results, the warm ones' too."""
    seconds: float
    """Of the server."""
    bootstraps: int
    sent_bytes: int
    received_bytes: int
    key_bytes: int
    steps: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    """Of the first call; every warm one has the next number."""
    wrong_seeds: list[int] = field(default_factory=list)
    """Of the calls whose results differ from the clear."""
    bits_a_step: list[int] = field(default_factory=list)
    """Of the secret, that the server's rotations took by batch; none for sets without groups."""
    warm_calls: int = 0
    """Calls after the first, with the same evaluator, each on inputs of its own."""
    warm_seconds: float | None = None
    """Of the server, the median of the warm calls; None where there were none."""
    warm_q1_seconds: float | None = None
    """The lower quartile, between two calls by a straight line."""
    warm_q3_seconds: float | None = None

    def document(self, device: Any, command: str) -> dict[str, Any]:
        """The record, as files of bench/results are."""
        return record(SUITE, provenance(device, command), [self])


class Session:
    """A client with keys and a server's evaluator that were made by bytes, and what both count.

    repeats : warm calls after the first, 0 to MOST_REPEATS
    steps : as `tfhe.Context.evaluator` takes them; None: 'automatic' on a GPU for a set with groups, else
        the set's own

    Raises ParameterError for other repeats and for sets that have no integers, and what the evaluator raises
    for steps.
    """

    def __init__(
        self,
        params: str,
        device: str,
        report: Report,
        repeats: int = 1,
        steps: Sequence[int] | Literal["automatic"] | None = None,
    ) -> None:
        if not isinstance(repeats, int) or not 0 <= repeats <= MOST_REPEATS:
            raise ParameterError(f"repeats = {repeats}, expected 0 to {MOST_REPEATS}", {"repeats": repeats})
        self.repeats = repeats
        info = crenel.device_info(device)  # refuse at once what cannot be had
        self.report = report
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureParametersWarning)
            chosen = tfhe.preset(params, allow_insecure=True)
            if not chosen.padded or chosen.plain_modulus != 32:  # before keys are made
                raise ParameterError(
                    f"'{params}' is no set for integers, expected one for tables such as lut4-128",
                    {"params": params},
                )
            if steps is None:
                steps = "automatic" if info.kind == "cuda" and chosen.numbers["key_group"] else ()
            self.context = tfhe.Context(chosen, device=device)
        with report.step("client: keys"):
            self.client = self.context.keygen()
            keys = self.client.evaluation_keys().to_bytes()
        with report.step("server: read the keys"):
            self.ev = self.context.evaluator(self.context.evaluation_keys_from_bytes(keys), steps=steps)
        self.key_bytes = len(keys)
        self.call = Call(0, 0)

    def encrypting(self, what: str) -> AbstractContextManager[None]:
        """The client's step of the first call, timed and said; the warm calls are one step together."""
        return nullcontext() if self.call.number else self.report.step(f"client: encrypt {what}")

    def send(self, values: Any, dtype: Any = None) -> tfhe.Integers:
        """Encrypted by the client, read by the server."""
        array = self.client.encrypt(values) if dtype is None else self.client.encrypt(values, dtype=dtype)
        text = array.to_bytes()
        self.call.sent += len(text)
        return self.context.integers_from_bytes(text)

    def answer(self, array: tfhe.Integers | tfhe.Ciphertext) -> np.ndarray:
        """Sent back and decrypted."""
        text = array.to_bytes()
        self.call.received += len(text)
        read = (
            self.context.integers_from_bytes
            if isinstance(array, tfhe.Integers)
            else self.context.ciphertext_from_bytes
        )
        return np.asarray(self.client.decrypt(read(text)))

    def serve(self, work: Callable[[], Any]) -> Any:
        """The server's work, timed, with its bootstraps counted."""
        call = self.call

        def told(done: int, total: int, _: str) -> None:
            if done == total:
                call.bootstraps += total

        start = time.perf_counter()
        with crenel.progress(told):
            result = work()
            self.context.synchronize()
        call.seconds = time.perf_counter() - start
        if not call.number:
            self.report.line(
                f"{'server: ' + format(call.bootstraps, ',') + ' bootstraps':<44}{call.seconds:9.3f} s"
            )
        return result

    def run(self, workload: str, one: Callable[[Call], tuple[str, bool]], seed: int) -> Outcome:
        """The first call and the warm ones, of inputs by seeds that follow each other; said and recorded.

        one : makes a call with this session; gives what it found, in words, and whether it is as in the clear
        """

        def made(number: int) -> Call:
            self.call = call = Call(number, seed + number)
            call.what, call.correct = one(call)
            return call

        first, warm = made(0), []
        if self.repeats:
            with self.report.step(f"client and server: warm calls, {self.repeats:,}"):
                warm = [made(number) for number in range(1, self.repeats + 1)]
        wrong = [c.seed for c in (first, *warm) if not c.correct]
        found = Outcome(
            workload, first.what, self.context.params.name, not wrong,
            first.seconds, first.bootstraps, first.sent, first.received, self.key_bytes,
            dict(self.report.times), seed, wrong, list(self.ev.steps), len(warm),
        )  # fmt: skip
        if warm:
            quartiles = np.quantile([c.seconds for c in warm], [0.25, 0.5, 0.75]).tolist()
            found.warm_q1_seconds, found.warm_seconds, found.warm_q3_seconds = quartiles
        self._say(found)
        return found

    def _taken(self) -> str:
        return f", steps of {' and '.join(map(str, self.ev.steps))} bits" if self.ev.steps else ""

    def _say(self, found: Outcome) -> None:
        p, seeds = self.context.params, f"{found.seed}"
        times = [("server, the first call", f"{1e3 * found.seconds:,.3f} ms")]
        if found.warm_calls:
            q1, median, q3 = (
                f"{1e3 * (s or 0):,.3f}"
                for s in (found.warm_q1_seconds, found.warm_seconds, found.warm_q3_seconds)
            )
            text = f"{median} ms, the median of {found.warm_calls:,}; quartiles {q1} to {q3}"
            times.append(("server, warm calls", text))
            seeds += f" to {found.seed + found.warm_calls}, a call each"
        result = "as in the clear"
        if found.wrong_seeds:
            result = f"DIFFERS from the clear with seed {', '.join(map(str, found.wrong_seeds))}"
        self.report.facts(
            [
                ("computed on", f"{self.context.device.name} ({self.context.device.description})"),
                ("parameters", f"{p.name}: {p.security_bits:.0f} bits of security{self._taken()}"),
                (
                    "bytes sent, received",
                    f"{found.sent_bytes:,}, {found.received_bytes:,}; keys {found.key_bytes:,}",
                ),
                ("work", found.what),
                ("seeds", seeds),
                *times,
                ("result", result),
            ]
        )
