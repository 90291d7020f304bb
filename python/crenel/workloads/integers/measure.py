"""Runs of the programs on encrypted integers: keys, client, server, client, each timed, and compared with the
clear."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import crenel
from crenel import tfhe
from crenel.errors import InsecureParametersWarning, ParameterError
from crenel.records import provenance, record
from crenel.workloads.integers.condition import parse
from crenel.workloads.integers.filter import Answer, Table, constants, narrow, select_rows, select_rows_clear
from crenel.workloads.integers.search import Hits, find, find_clear
from crenel.workloads.integers.transfer import transfer, transfer_clear
from crenel.workloads.report import Report

SUITE = "integer-workload"


@dataclass
class Outcome:
    """What a run found and took."""

    workload: str
    what: str
    params: str
    correct: bool
    seconds: float
    bootstraps: int
    sent_bytes: int
    received_bytes: int
    key_bytes: int
    steps: dict[str, float] = field(default_factory=dict)

    def document(self, device: Any, command: str) -> dict[str, Any]:
        """The record, as files of bench/results are."""
        return record(SUITE, provenance(device, command), [self])


class Session:
    """A client with keys and a server's evaluator that were made by bytes, and what both count."""

    def __init__(self, params: str, device: str, report: Report) -> None:
        crenel.device_info(device)  # refuse at once what cannot be had
        self.report = report
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureParametersWarning)
            chosen = tfhe.preset(params, allow_insecure=True)
            if not chosen.padded or chosen.plain_modulus != 32:  # before keys are made
                raise ParameterError(
                    f"'{params}' is no set for integers, expected one for tables such as lut4-128",
                    {"params": params},
                )
            self.context = tfhe.Context(chosen, device=device)
        with report.step("client: keys"):
            self.client = self.context.keygen()
            keys = self.client.evaluation_keys().to_bytes()
        with report.step("server: read the keys"):
            self.ev = self.context.evaluator(self.context.evaluation_keys_from_bytes(keys))
        self.key_bytes, self.sent, self.received, self.bootstraps = len(keys), 0, 0, 0

    def send(self, values: Any, dtype: Any = None) -> tfhe.Integers:
        """Encrypted by the client, read by the server."""
        array = self.client.encrypt(values) if dtype is None else self.client.encrypt(values, dtype=dtype)
        text = array.to_bytes()
        self.sent += len(text)
        return self.context.integers_from_bytes(text)

    def answer(self, array: tfhe.Integers | tfhe.Ciphertext) -> np.ndarray:
        """Sent back and decrypted."""
        text = array.to_bytes()
        self.received += len(text)
        read = (
            self.context.integers_from_bytes
            if isinstance(array, tfhe.Integers)
            else self.context.ciphertext_from_bytes
        )
        return np.asarray(self.client.decrypt(read(text)))

    def serve(self, work: Callable[[], Any]) -> tuple[Any, float]:
        """The server's work, timed, with its bootstraps counted."""

        def told(done: int, total: int, _: str) -> None:
            if done == total:
                self.bootstraps += total

        start = time.perf_counter()
        with crenel.progress(told):
            result = work()
            self.context.synchronize()
        seconds = time.perf_counter() - start
        self.report.line(f"{'server: ' + format(self.bootstraps, ',') + ' bootstraps':<44}{seconds:9.3f} s")
        return result, seconds

    def outcome(self, workload: str, what: str, correct: bool, seconds: float) -> Outcome:
        """The record of this run, said."""
        found = Outcome(
            workload, what, self.context.params.name, correct, seconds, self.bootstraps, self.sent,
            self.received, self.key_bytes, dict(self.report.times),
        )  # fmt: skip
        p = self.context.params
        self.report.facts(
            [
                ("computed on", f"{self.context.device.name} ({self.context.device.description})"),
                ("parameters", f"{p.name}: {p.security_bits:.0f} bits of security"),
                ("bytes sent, received", f"{self.sent:,}, {self.received:,}; keys {self.key_bytes:,}"),
                ("work", what),
                ("result", "as in the clear" if correct else "DIFFERS from the clear"),
            ]
        )
        return found


def run_transfer(session: Session, pairs: int, bits: int, seed: int) -> Outcome:
    """`pairs` transfers side by side, about a third of which ask for more than there is."""
    if pairs < 1:
        raise ParameterError(f"pairs = {pairs}, expected at least 1", {"pairs": pairs})
    token = tfhe.IntegerType(bits)
    rng = np.random.default_rng(seed)

    def drawn(most: int) -> int:
        return int.from_bytes(rng.bytes(40), "little") % (most + 1)

    have = [[drawn(token.high // 2) for _ in range(pairs)] for _ in range(2)]
    # what there is, one more, all of it; then anything
    edges = [have[0][0], *(h + 1 for h in have[0][1:2]), *(0 for _ in have[0][2:3])]
    amounts = edges + [drawn(h + h // 2) for h in have[0][3:]]
    with session.report.step(f"client: encrypt {3 * pairs} integers"):
        payer, payee, amount = (session.send(v, token) for v in (*have, amounts))
    (left, grown, moved), seconds = session.serve(lambda: transfer(session.ev, payer, payee, amount))
    found = [session.answer(x).tolist() for x in (left, grown, moved)]
    wanted = transfer_clear(have[0], have[1], amounts, bits)
    correct = found == [list(w) for w in wanted]
    what = f"{pairs} transfers of {token}, of which {sum(wanted[2])} had the balance"
    return session.outcome("transfer", what, correct, seconds)


def run_search(session: Session, text: bytes, pattern: bytes, hide_pattern: bool) -> Outcome:
    """A pattern in a text, the pattern public or encrypted too."""
    if not text:
        raise ParameterError("the text is empty, expected a character at least", {"text": 0})
    with session.report.step(f"client: encrypt {len(text)} characters"):
        characters = session.send(np.frombuffer(text, dtype=np.uint8))
        asked: Any = session.send(np.frombuffer(pattern, dtype=np.uint8)) if hide_pattern else pattern
    hits, seconds = session.serve(lambda: find(session.ev, characters, asked))
    assert isinstance(hits, Hits)
    found = (
        session.answer(hits.places).tolist(),
        int(session.answer(hits.count)),
        int(session.answer(hits.first)),
    )
    kind = "an encrypted" if hide_pattern else "a public"
    what = f"{kind} pattern of {len(pattern)} in {len(text)} characters: {found[1]} times"
    what += f", first at {found[2]}" if found[1] else ""
    return session.outcome("search", what, found == find_clear(text, pattern), seconds)


def run_filter(session: Session, table: Table, where: str, total: str | None, hide_query: bool) -> Outcome:
    """Rows of a table where a condition holds, its numbers public or encrypted too."""
    condition = parse(where)
    numbers = constants(condition, table)
    used = condition.columns | ({total} if total is not None else set())
    columns = {name: table.column(name) for name in sorted(used)}
    with session.report.step(f"client: encrypt {table.rows} rows of {len(columns)} columns"):
        sent = {name: session.send(column) for name, column in columns.items()}
        hidden = [session.send(n) for n in numbers] if hide_query else None
    answer, seconds = session.serve(lambda: select_rows(session.ev, sent, condition, hidden, total))
    assert isinstance(answer, Answer)
    found = [session.answer(answer.rows).tolist(), int(session.answer(answer.count))]
    if answer.total is not None:
        found.append(int(session.answer(answer.total)))
    rows, count, summed = select_rows_clear(table, condition, total)
    wanted = [rows.tolist(), count] + ([] if summed is None else [summed])
    what = f"{found[1]} of {table.rows} rows have {where}" + (
        f"; {total} sums to {found[2]}" if total else ""
    )
    return session.outcome("filter", what, found == wanted, seconds)


def made_table(rows: int, seed: int) -> Table:
    """People: age, city and income."""
    if rows < 1:
        raise ParameterError(f"rows = {rows}, expected at least 1", {"rows": rows})
    rng = np.random.default_rng(seed)
    columns = {
        "age": rng.integers(18, 91, rows),
        "city": rng.integers(0, 8, rows),
        "income": rng.gamma(3.0, 900.0, rows).astype(np.int64),
    }
    return Table({name: narrow(values.tolist()) for name, values in columns.items()})
