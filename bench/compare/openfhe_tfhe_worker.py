"""NAND gates of OpenFHE's binfhe for openfhe_tfhe.py, in an interpreter that has it.

The argument is a configuration as JSON, the last line of output the result as JSON.
"""

import json
import platform
import statistics
import sys
import time
from importlib import metadata

import openfhe


def main() -> None:
    case = json.loads(sys.argv[1])
    context = openfhe.BinFHEContext()
    context.GenerateBinFHEContext(getattr(openfhe.BINFHE_PARAMSET, case["set"]), openfhe.BINFHE_METHOD.GINX)
    secret = context.KeyGen()
    begin = time.perf_counter()
    context.BTKeyGen(secret)
    keys_s = time.perf_counter() - begin
    seconds, wrong = [], 0
    for i in range(case["warm_up"] + case["gates"]):
        x, y = i & 1, i >> 1 & 1
        a, b = context.Encrypt(secret, x), context.Encrypt(secret, y)
        begin = time.perf_counter()
        c = context.EvalBinGate(openfhe.BINGATE.NAND, a, b)
        seconds.append(time.perf_counter() - begin)
        wrong += context.Decrypt(secret, c) != 1 - (x & y)
    q1, median, q3 = statistics.quantiles(seconds[case["warm_up"] :], n=4, method="inclusive")
    out = {
        **case,
        "n": context.Getn(),
        "N": context.GetN(),
        "q": context.Getq(),
        "Q": context.GetQ(),
        "keys_s": keys_s,
        "gate_s": median,
        "q1_s": q1,
        "q3_s": q3,
        "wrong": wrong,
        "versions": {"python": platform.python_version(), "openfhe": metadata.version("openfhe")},
    }
    print(json.dumps(out))


if __name__ == "__main__":
    main()
