"""Times OpenFHE for openfhe.py, in an interpreter that has it. The last line of output is JSON."""

import json
import math
import random
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import openfhe

FEATURES = ("PKE", "KEYSWITCH", "LEVELEDSHE")


def make_context(case: dict, log_n: int, check_security: bool):
    p = openfhe.CCParamsCKKSRNS()
    p.SetMultiplicativeDepth(case["depth"])
    p.SetScalingModSize(40)
    p.SetFirstModSize(50)
    p.SetRingDim(1 << log_n)
    p.SetScalingTechnique(getattr(openfhe.ScalingTechnique, case["technique"]))
    p.SetKeySwitchTechnique(openfhe.KeySwitchTechnique.HYBRID)
    p.SetNumLargeDigits(case["digits"])
    p.SetSecretKeyDist(openfhe.SecretKeyDist.UNIFORM_TERNARY)
    level = "HEStd_128_classic" if check_security else "HEStd_NotSet"
    p.SetSecurityLevel(getattr(openfhe.SecurityLevel, level))
    context = openfhe.GenCryptoContext(p)
    for feature in FEATURES:
        context.Enable(getattr(openfhe.PKESchemeFeature, feature))
    return context


def log_pq(case: dict) -> int:
    """Bits of the key modulus, read off a serialised key of the same chain on a small ring."""
    context = make_context(case, 11, check_security=False)
    keys = context.KeyGen()
    context.EvalMultKeyGen(keys.secretKey)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key.json"
        context.SerializeEvalMultKey(str(file), openfhe.JSON)
        bits = max(int(m) for m in re.findall(r'"m":\s*(\d+)', file.read_text()))
    context.ClearStaticMapsAndVectors()
    return bits


def measure(call, quick: bool) -> dict:
    call()
    samples = []
    stop = time.perf_counter() + (0.5 if quick else 3.0)
    while len(samples) < 3 or (time.perf_counter() < stop and len(samples) < 60):
        begin = time.perf_counter()
        call()
        samples.append((time.perf_counter() - begin) * 1e6)
    q1, median, q3 = statistics.quantiles(samples, n=4)
    return {"us": median, "q1_us": q1, "q3_us": q3, "least_us": min(samples), "samples": len(samples)}


def error_log2(found, expected) -> float:
    return math.log2(max(abs(f - e) for f, e in zip(found, expected)))  # noqa: B905


def main() -> None:
    case = json.loads(sys.argv[1])
    quick, manual = case["quick"], case["technique"] == "FIXEDMANUAL"
    bits = log_pq(case)
    context = make_context(case, case["log_n"], check_security=True)
    keys = context.KeyGen()
    context.EvalMultKeyGen(keys.secretKey)
    context.EvalRotateKeyGen(keys.secretKey, [1])
    slots = context.GetRingDimension() // 2
    rng = random.Random(1)
    x, y = ([rng.uniform(-1, 1) for _ in range(slots)] for _ in range(2))

    def encrypt(values):
        return context.Encrypt(keys.publicKey, context.MakeCKKSPackedPlaintext(values))

    def decrypt(c):
        plain = context.Decrypt(c, keys.secretKey)
        plain.SetLength(slots)
        return plain.GetRealPackedValue()

    a, b = encrypt(x), encrypt(y)
    out = {"technique": case["technique"], "log_pq": bits, "depth": case["depth"], "digits": case["digits"]}
    out["add"] = measure(lambda: context.EvalAdd(a, b), quick)
    out["rotate"] = measure(lambda: context.EvalRotate(a, 1), quick)
    if manual:

        def multiply():
            return context.Rescale(context.EvalMult(a, b))

        expected = [s * t for s, t in zip(x, y)]  # noqa: B905
    else:
        # Rescaling is lazy: a product of two unrescaled products rescales both first.
        ab, ba = context.EvalMult(a, b), context.EvalMult(b, a)

        def multiply():
            return context.EvalMult(ab, ba)

        expected = [(s * t) ** 2 for s, t in zip(x, y)]  # noqa: B905
    out["multiply_rescale"] = measure(multiply, quick)
    out["multiply_rescale"]["error_log2"] = error_log2(decrypt(multiply()), expected)
    if out["multiply_rescale"]["error_log2"] > -15:
        sys.exit(f"OpenFHE's product is wrong: {out}")
    print(json.dumps(out))


if __name__ == "__main__":
    main()
