"""One bootstrap configuration of OpenFHE for openfhe_boot.py, in an interpreter that has it.

The argument is a configuration as JSON, the last line of output the result as JSON.
"""

import gc
import json
import math
import platform
import re
import statistics
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import openfhe

FEATURES = ("PKE", "KEYSWITCH", "LEVELEDSHE", "ADVANCEDSHE", "FHE")


def make_context(case: dict, log_n: int, security: str):
    """HEStd_128_classic fails where log PQ is too large for the degree; HEStd_NotSet checks nothing."""
    secret = getattr(openfhe.SecretKeyDist, case["secret"])
    depth = openfhe.CryptoContext.GetBootstrapDepth(case["level_budget"], secret) + case["levels_after"]
    p = openfhe.CCParamsCKKSRNS()
    p.SetSecretKeyDist(secret)
    p.SetSecurityLevel(getattr(openfhe.SecurityLevel, security))
    p.SetRingDim(1 << log_n)
    p.SetScalingTechnique(getattr(openfhe.ScalingTechnique, case["technique"]))
    p.SetScalingModSize(case["scale_bits"])
    p.SetFirstModSize(case["first_bits"])
    p.SetKeySwitchTechnique(openfhe.KeySwitchTechnique.HYBRID)
    p.SetNumLargeDigits(case["digits"])
    p.SetCKKSDataType(openfhe.CKKSDataType.COMPLEX)
    p.SetBatchSize(1 << (log_n - 1))
    p.SetMultiplicativeDepth(depth)
    context = openfhe.GenCryptoContext(p)
    for feature in FEATURES:
        context.Enable(getattr(openfhe.PKESchemeFeature, feature))
    return context


def log_pq(case: dict) -> int:
    """Bits of the key modulus, read off a serialised key of the same chain on a small ring."""
    context = make_context(case, 11, "HEStd_NotSet")
    context.EvalMultKeyGen(context.KeyGen().secretKey)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key.json"
        context.SerializeEvalMultKey(str(file), openfhe.JSON)
        bits = max(int(m) for m in re.findall(r'"m":\s*(\d+)', file.read_text()))
    context.ClearStaticMapsAndVectors()
    openfhe.ReleaseAllContexts()
    return bits


def timed(call) -> tuple:
    """The result and its seconds."""
    begin = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begin


def uniform(rng, slots: int):
    return rng.uniform(-1, 1, slots) + 1j * rng.uniform(-1, 1, slots)


def repeated(context, keys, bootstrap, slots: int, level: int, runs: int):
    """Seconds, processor seconds, largest and mean square errors of each, one more than `runs` for the
    warm-up; and the last input and result."""
    rng = np.random.default_rng(2026)
    rows = []
    for _ in range(1 + runs):
        values = uniform(rng, slots)
        plain = context.MakeCKKSPackedPlaintext(values, 1, level, None, slots)
        encrypted = context.Encrypt(keys.publicKey, plain)
        gc.collect()
        used = time.process_time()
        refreshed, taken = timed(lambda c=encrypted: bootstrap(c))
        used = time.process_time() - used
        found = context.Decrypt(refreshed, keys.secretKey)
        found.SetLength(slots)
        error = np.abs(np.asarray(found.GetCKKSPackedValue())[:slots] - values)
        error[np.isnan(error)] = math.inf
        rows.append((taken, used, float(error.max()), float((error**2).mean())))
    return [list(each) for each in zip(*rows, strict=True)], encrypted, refreshed


def main() -> None:
    case = json.loads(sys.argv[1])
    slots = 1 << (case["log_n"] - 1)
    bits = log_pq(case)
    context, context_s = timed(lambda: make_context(case, case["log_n"], case["security"]))
    depth = context.GetMultiplicativeDepth()

    def make_keys():
        keys = context.KeyGen()
        context.EvalMultKeyGen(keys.secretKey)
        context.EvalBootstrapKeyGen(keys.secretKey, slots)
        return keys

    first = case["slots_to_coeffs_first"]
    _, setup_s = timed(
        lambda: context.EvalBootstrapSetup(
            case["level_budget"], case["dim1"], slots, case["correction"], True, first
        )
    )
    keys, keys_s = timed(make_keys)
    rotations = context.GetExistingEvalAutomorphismKeyIndices(keys.publicKey.GetKeyTag())
    bootstrap = context.EvalBootstrapStCFirst if first else context.EvalBootstrap
    # SlotsToCoeffs takes its levels from the input where it comes first: the result's last levels are not for
    # others. One more level is always needed.
    transform = case["level_budget"][1] if first else 0
    level = depth - transform - 1
    found, encrypted, refreshed = repeated(context, keys, bootstrap, slots, level, case["runs"])
    # A scale that is still to be divided by costs a level.
    left = depth - refreshed.GetLevel() - (refreshed.GetNoiseScaleDeg() - 1)
    if refreshed.GetLevel() >= encrypted.GetLevel() or left - transform < case["levels_after"]:
        sys.exit(f"OpenFHE's bootstrap leaves {left} levels")
    seconds, processor, largest, squares = found
    q1, median, q3 = statistics.quantiles(seconds[1:], n=4, method="inclusive")
    out = {
        **case,
        "log_pq": bits,
        "depth": depth,
        "levels_left": left - transform,
        "context_s": context_s,
        "setup_s": setup_s,
        "keys_s": keys_s,
        "key_count": len(rotations) + 1,
        "bootstrap_s": median,
        "q1_s": q1,
        "q3_s": q3,
        "warm_up_s": seconds[0],
        "runs_s": seconds[1:],
        "processor_s": statistics.median(processor[1:]),
        "worst_error_log2": math.log2(max(largest)),
        "rms_error_log2": math.log2(statistics.mean(squares)) / 2,
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("openfhe", "numpy")},
        },
    }
    print(json.dumps(out))


if __name__ == "__main__":
    main()
