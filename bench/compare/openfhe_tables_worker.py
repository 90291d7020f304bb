"""Functional bootstraps and an adder of gates by OpenFHE's binfhe for openfhe_tables.py.

Runs in an interpreter that has openfhe.

The argument is a configuration as JSON, the last line of output the result as JSON.
"""

import json
import platform
import secrets
import statistics
import sys
import time
from collections.abc import Iterator
from importlib import metadata

import openfhe

MESSAGES = 16
BITS = 8
GINX = openfhe.BINFHE_METHOD.GINX
STD128 = openfhe.BINFHE_PARAMSET.STD128


def with_keys(context: openfhe.BinFHEContext) -> tuple:
    begin = time.perf_counter()
    secret = context.KeyGen()
    context.BTKeyGen(secret)
    return secret, time.perf_counter() - begin


def wide_enough() -> Iterator[tuple[openfhe.BinFHEContext, int]]:
    """Contexts that hold the messages, and log2 of the modulus that each was asked with; the cheaper first.

    An arbitrary function takes two messages a coefficient of the ring, whose degree by default holds 8: it
    is asked for. Asked with 2^11 the large modulus has 27 bits, with more 54.
    """
    for log_n in (11, 12, 13):
        for log_q in (11, 12):
            context = openfhe.BinFHEContext()
            context.GenerateBinFHEContext(STD128, True, log_q, 1 << log_n, GINX, False)
            if context.GetMaxPlaintextSpace() >= MESSAGES:
                yield context, log_q


def timed_look_ups(context: openfhe.BinFHEContext, log_q: int, count: int) -> dict:
    secret, keys_s = with_keys(context)
    space = context.GetMaxPlaintextSpace()
    values = [secrets.randbelow(MESSAGES) for _ in range(space)]
    table = context.GenerateLUTviaFunction(lambda m, p: values[m], space)
    seconds, wrong = [], 0
    for _ in range(1 + count):
        m = secrets.randbelow(MESSAGES)
        a = context.Encrypt(secret, m, openfhe.BINFHE_OUTPUT.SMALL_DIM, space)
        begin = time.perf_counter()
        c = context.EvalFunc(a, table)
        seconds.append(time.perf_counter() - begin)
        wrong += context.Decrypt(secret, c, space) != values[m]
    about = {"log_q": log_q, "plaintexts": space, "operation": "EvalFunc"}
    return summary(context, keys_s, seconds, wrong) | about


def look_ups(count: int) -> dict:
    """Of the cheapest context whose results are all right; those before it are told."""
    unfit = []
    for context, log_q in wide_enough():
        result = timed_look_ups(context, log_q, count)
        if result["wrong"] == 0:
            return result | {"unfit": unfit}
        unfit.append({key: result[key] for key in ("log_q", "N", "Q", "seconds", "wrong")})
    raise SystemExit(f"no context of OpenFHE looks {MESSAGES} messages up without errors: {unfit}")


def add(context: openfhe.BinFHEContext, a: list, b: list) -> tuple[list, int]:
    """a + b without the last carry, and the number of gates."""
    gates = 0

    def gate(kind, x, y):
        nonlocal gates
        gates += 1
        return context.EvalBinGate(getattr(openfhe.BINGATE, kind), x, y)

    out, carry = [], None
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        half = gate("XOR", x, y)
        out.append(half if carry is None else gate("XOR", half, carry))
        if i + 1 < BITS:
            both = gate("AND", x, y)
            carry = both if carry is None else gate("OR", both, gate("AND", half, carry))
    return out, gates


def sums(count: int) -> dict:
    context = openfhe.BinFHEContext()
    context.GenerateBinFHEContext(STD128, GINX)
    secret, keys_s = with_keys(context)
    seconds, wrong, gates = [], 0, 0
    for _ in range(1 + count):
        x, y = secrets.randbelow(1 << BITS), secrets.randbelow(1 << BITS)
        a, b = ([context.Encrypt(secret, v >> i & 1) for i in range(BITS)] for v in (x, y))
        begin = time.perf_counter()
        bits, gates = add(context, a, b)
        seconds.append(time.perf_counter() - begin)
        total = sum(context.Decrypt(secret, bit) << i for i, bit in enumerate(bits))
        wrong += total != (x + y) % (1 << BITS)
    return summary(context, keys_s, seconds, wrong) | {"operation": "gates", "gates": gates}


def summary(context: openfhe.BinFHEContext, keys_s: float, seconds: list[float], wrong: int) -> dict:
    q1, median, q3 = statistics.quantiles(seconds[1:], n=4, method="inclusive")
    return {
        "set": "STD128",
        "n": context.Getn(),
        "N": context.GetN(),
        "q": context.Getq(),
        "Q": context.GetQ(),
        "keys_s": keys_s,
        "seconds": median,
        "q1_s": q1,
        "q3_s": q3,
        "wrong": wrong,
        "versions": {"python": platform.python_version(), "openfhe": metadata.version("openfhe")},
    }


def main() -> None:
    request = json.loads(sys.argv[1])
    print(json.dumps({"look-up": look_ups, "u8 sum": sums}[request["what"]](request["count"])))


if __name__ == "__main__":
    main()
