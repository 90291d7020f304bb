#!/usr/bin/env python3
"""Independent check of CKKS parameter sets, in exact integers and 60-digit decimals.

usage: params_model.py FILE.toml...

Shares no code with the library: primality by trial division, moduli and base-conversion bounds as
big integers, scales as decimals, the content hash through hashlib. Prints one line a set (limbs,
log PQ, largest scale deviation, id) and exits 1 when a set breaks a rule or its own figures.
"""

import decimal
import hashlib
import math
import pathlib
import struct
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

decimal.getcontext().prec = 60
LN2 = decimal.Decimal(2).ln()
# 128-bit bounds on log PQ, dense ternary secret (ePrint 2024/463, Table 5.2), by log2 N.
BOUND_128 = {10: 26, 11: 53, 12: 106, 13: 214, 14: 430, 15: 868, 16: 1747, 17: 3523}


def log2(value):
    return decimal.Decimal(value).ln() / LN2


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def read(path):
    """The fields of one file, ``based_on`` resolved."""
    fields = tomllib.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    base = fields.get("based_on")
    return {**read(pathlib.Path(path).with_name(f"{base}.toml")), **fields} if base else fields


def modulus(spec, level):
    main, terminal = spec["levels"][level]
    return math.prod(spec["main"][:main]) * math.prod(spec["terminal"][:terminal])


def scale_logs(spec):
    """log2 of the canonical scales: s_l^2 = s_{l-1} Q_l / Q_{l-1}."""
    scale = decimal.Decimal(2) ** spec["log_scale"]
    logs = [log2(scale)]
    for level in range(1, spec["normal_top_level"] + 1):
        ratio = decimal.Decimal(modulus(spec, level)) / decimal.Decimal(modulus(spec, level - 1))
        scale = (scale * ratio).sqrt()
        logs.append(log2(scale))
    return logs


def accumulator(sources, target):
    """Largest value of the lazy base-conversion sum, plus the target modulus."""
    product = math.prod(sources)
    return sum(product // d % target * (d - 1) for d in sources) + target


def conversions(spec):
    """Every (sources, target) of every key switching at every level."""
    chain = spec["terminal"][::-1] + spec["main"]
    alpha, terminals = len(spec["auxiliary"]), len(spec["terminal"])
    seen = set()
    for main, terminal in spec["levels"]:
        window = range(terminals - terminal, terminals + main)
        for block in range(0, len(chain), alpha):
            digit = [i for i in window if block <= i < block + alpha]
            rest = [chain[i] for i in window if i not in digit] + spec["auxiliary"]
            for target in rest if digit else []:
                seen.add((tuple(chain[i] for i in digit), target))
    seen |= {(tuple(spec["auxiliary"]), q) for q in chain}
    return seen


def identifier(spec):
    """The 128-bit content hash."""

    def words(*values):
        return struct.pack(f"<{len(values)}Q", *values)

    data = b"crenel.ckks.params.1\0" + words(
        spec["log_n"], spec["log_scale"], spec["normal_top_level"], spec.get("hamming_weight", 0)
    )
    for key in ("main", "terminal", "auxiliary"):
        data += words(len(spec[key]), *spec[key])
    data += words(len(spec["levels"]), *(n for level in spec["levels"] for n in level))
    return hashlib.sha256(data).hexdigest()[:32]


def figures(spec):
    everything = spec["main"] + spec["terminal"] + spec["auxiliary"]
    return {
        "limbs": len(spec["main"]) + len(spec["terminal"]),
        "log_pq": float(log2(math.prod(everything))),
        "max_scale_deviation": float(max(abs(x - spec["log_scale"]) for x in scale_logs(spec))),
        "id": identifier(spec),
    }


def problems(spec, insecure=False):
    """Broken rules, as text."""
    found = []
    everything = spec["main"] + spec["terminal"] + spec["auxiliary"]
    two_n = 2 << spec["log_n"]
    found += [f"{p} is not prime" for p in everything if not is_prime(p)]
    found += [f"{p} is not 1 modulo 2N" for p in everything if p % two_n != 1]
    found += [f"{p} is out of range" for p in everything if not 2**19 <= p < 2**31]
    if len(set(everything)) != len(everything):
        found.append("a prime is repeated")
    moduli = [modulus(spec, level) for level in range(len(spec["levels"]))]
    found += [f"Q does not grow at level {i}" for i in range(1, len(moduli)) if moduli[i] <= moduli[i - 1]]
    used = [max(level[i] for level in spec["levels"]) for i in (0, 1)]
    if used != [len(spec["main"]), len(spec["terminal"])]:
        found.append("a prime is used at no level")
    chain, alpha = spec["terminal"][::-1] + spec["main"], len(spec["auxiliary"])
    special = math.prod(spec["auxiliary"])
    found += [
        f"digit {i // alpha} exceeds P"
        for i in range(0, len(chain), alpha)
        if math.prod(chain[i : i + alpha]) > special
    ]
    found += [
        f"conversion of {len(sources)} primes to {target} overflows"
        for sources, target in sorted(conversions(spec))
        if accumulator(sources, target) >= 2**64
    ]
    result = figures(spec)
    if result["max_scale_deviation"] > 0.1:
        found.append(f"scale deviation is {result['max_scale_deviation']}")
    if not insecure and result["log_pq"] > BOUND_128[spec["log_n"]]:
        found.append(f"log PQ is {result['log_pq']}")
    return found


def check_file(path):
    """Print the figures of one file; returns the problems."""
    spec = read(path)
    result = figures(spec)
    found = problems(spec, insecure=spec["name"].startswith("toy-"))
    expected = spec["expected"]
    for key, digits in (("limbs", 0), ("log_pq", 2), ("max_scale_deviation", 4)):
        if abs(result[key] - expected[key]) > 0.5001 * 10**-digits:
            found.append(f"{key} is {result[key]}, the file says {expected[key]}")
    print(
        f"{spec['name']:24} {result['limbs']:3} limbs  log PQ {result['log_pq']:9.3f}  "
        f"deviation {result['max_scale_deviation']:.6f}  {result['id']}"
    )
    for problem in found:
        print(f"  {problem}")
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    problems = [check_file(path) for path in sys.argv[1:]]  # every file, also after a mismatch
    sys.exit(1 if any(problems) else 0)


if __name__ == "__main__":
    main()
