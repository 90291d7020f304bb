"""Runs of the programs on encrypted integers, each call compared with the clear."""

from __future__ import annotations

from typing import Any

import numpy as np

from crenel import tfhe
from crenel.errors import ParameterError
from crenel.workloads.integers.condition import parse
from crenel.workloads.integers.filter import Answer, Table, constants, narrow, select_rows, select_rows_clear
from crenel.workloads.integers.search import Hits, find, find_clear
from crenel.workloads.integers.session import Call, Outcome, Session
from crenel.workloads.integers.transfer import transfer, transfer_clear


def run_transfer(session: Session, pairs: int, bits: int, seed: int) -> Outcome:
    """`pairs` transfers side by side, about a third of which ask for more than there is."""
    if pairs < 1:
        raise ParameterError(f"pairs = {pairs}, expected at least 1", {"pairs": pairs})
    token = tfhe.IntegerType(bits)

    def one(call: Call) -> tuple[str, bool]:
        values = _drawn_transfers(token, pairs, call.seed)
        with session.encrypting(f"{3 * pairs} integers"):
            payer, payee, amount = (session.send(v, token) for v in values)
        afterwards = session.serve(lambda: transfer(session.ev, payer, payee, amount))
        found = [session.answer(x).tolist() for x in afterwards]
        wanted = transfer_clear(*values, bits)
        what = f"{pairs} transfers of {token}, of which {sum(wanted[2])} had the balance"
        return what, found == [list(w) for w in wanted]

    return session.run("transfer", one, seed)


def _drawn_transfers(
    token: tfhe.IntegerType, pairs: int, seed: int
) -> tuple[list[int], list[int], list[int]]:
    """What payers have, payees have, and amounts."""
    rng = np.random.default_rng(seed)

    def drawn(most: int) -> int:
        return int.from_bytes(rng.bytes(40), "little") % (most + 1)

    have, other = ([drawn(token.high // 2) for _ in range(pairs)] for _ in range(2))
    # what there is, one more, nothing; then anything
    edges = [have[0], *(h + 1 for h in have[1:2]), *(0 for _ in have[2:3])]
    return have, other, edges + [drawn(h + h // 2) for h in have[3:]]


def run_search(session: Session, text: bytes, pattern: bytes, hide_pattern: bool, seed: int = 1) -> Outcome:
    """A pattern in a text, the pattern public or encrypted too; warm calls have the text turned by a drawn
    number of characters, so that the pattern stands elsewhere."""
    if not text:
        raise ParameterError("the text is empty, expected a character at least", {"text": 0})

    def one(call: Call) -> tuple[str, bool]:
        turn = 0
        if call.number and len(text) > 1:
            turn = int(np.random.default_rng(call.seed).integers(1, len(text)))
        content = text[turn:] + text[:turn]
        with session.encrypting(f"{len(content)} characters"):
            characters = session.send(np.frombuffer(content, dtype=np.uint8))
            asked: Any = session.send(np.frombuffer(pattern, dtype=np.uint8)) if hide_pattern else pattern
        hits = session.serve(lambda: find(session.ev, characters, asked))
        assert isinstance(hits, Hits)
        found = (
            session.answer(hits.places).tolist(),
            int(session.answer(hits.count)),
            int(session.answer(hits.first)),
        )
        kind = "an encrypted" if hide_pattern else "a public"
        what = f"{kind} pattern of {len(pattern)} in {len(content)} characters: {found[1]} times"
        what += f", first at {found[2]}" if found[1] else ""
        return what, found == find_clear(content, pattern)

    return session.run("search", one, seed)


def run_filter(
    session: Session, table: Table, where: str, total: str | None, hide_query: bool, seed: int = 1
) -> Outcome:
    """Rows of a table where a condition holds, its numbers public or encrypted too; warm calls have as many
    rows drawn from the table's, one perhaps several times, in columns of the same types."""
    condition = parse(where)
    numbers = constants(condition, table)
    used = sorted(condition.columns | ({total} if total is not None else set()))

    def one(call: Call) -> tuple[str, bool]:
        chosen = np.arange(table.rows)
        if call.number:
            chosen = np.random.default_rng(call.seed).integers(table.rows, size=table.rows)
        drawn = Table({name: table.column(name)[chosen] for name in used})
        with session.encrypting(f"{table.rows} rows of {len(used)} columns"):
            sent = {name: session.send(column) for name, column in drawn.columns.items()}
            hidden = [session.send(n) for n in numbers] if hide_query else None
        answer = session.serve(lambda: select_rows(session.ev, sent, condition, hidden, total))
        assert isinstance(answer, Answer)
        found = [session.answer(answer.rows).tolist(), int(session.answer(answer.count))]
        if answer.total is not None:
            found.append(int(session.answer(answer.total)))
        rows, count, summed = select_rows_clear(drawn, condition, total)
        wanted = [rows.tolist(), count] + ([] if summed is None else [summed])
        what = f"{found[1]} of {table.rows} rows have {where}"
        what += f"; {total} sums to {found[2]}" if total else ""
        return what, found == wanted

    return session.run("filter", one, seed)


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
