"""tests/unit mirrors src/, and no source goes without a test. Exit code 1 names every violation.

1. A unit test lies in the folder of src/ that it tests (fhecore/model for the functional model), and sees,
   through itself and tests/support, that layer and those below it.
2. Every source of src/ has a unit test of its own name (src/a/b.cpp: tests/unit/a/b_test.cpp), or a test that
   includes its header (itself or through tests/support), or a line in COVERED.
"""

from __future__ import annotations

import sys
from pathlib import Path

from check_layers import ALLOWED, INCLUDE, ROOT, layer_of, public_layer

TESTS = ROOT / "tests"
UNIT = TESTS / "unit"
# Unit test -> why it reaches its layer through a higher one.
WIDER = {
    "backends/cuda/dry_test.cpp": "counts the bytes of whole CKKS operations",
    "device/fhecore/plan_test.cpp": "the unit's own statement of its counts is the other side",
    "fhecore/model/barrett_test.cpp": "support/fhecore_world.h makes the kernels of a device too",
    "fhecore/model/unit_test.cpp": "support/fhecore_world.h makes the kernels of a device too",
    "rlwe/encapsulation_test.cpp": "decrypts with a client of CKKS",
    "rlwe/short_levels_test.cpp": "takes the chain of primes of a set of CKKS",
    "rlwe/ring_switch_test.cpp": "takes the ring and the secrets of a context of CKKS",
}
# Prefix of sources that no test names -> the test that covers them, below tests/.
COVERED = {
    "backends/cpu/": "conformance/cpu_isa_test.cpp",
    "backends/cuda/": "conformance/arithmetic_test.cpp",
    "backends/host/": "conformance/fhecore_test.cpp",
    "backends/none/": "unit/device/account_test.cpp",
    "backends/ref/": "golden/kernels_test.cpp",
    "bridge/": "unit/bridge/bridge_test.cpp",
    "backends/split/": "unit/backends/split/stream_test.cpp",
    "circuits/bootstrapping/": "unit/circuits/bootstrapping/bootstrapping_test.cpp",
    "circuits/linear_transform/": "unit/circuits/linear_transform/linear_transform_test.cpp",
    "circuits/mod1/": "unit/circuits/mod1/sine_fit_test.cpp",
    "ckks/bound_operand": "unit/ckks/error_model_test.cpp",
    "ckks/ciphertext": "unit/ckks/evaluator_test.cpp",
    "ckks/combinations": "unit/ckks/evaluator_test.cpp",
    "ckks/decode": "unit/ckks/encoder_test.cpp",
    "ckks/encode": "unit/ckks/encoder_test.cpp",
    "ckks/keygen": "unit/ckks/context_test.cpp",
    "ckks/params/": "unit/ckks/params/generate_test.cpp",
    "core/version": "integration/find_package/main.cpp",
    "device/poly/checks": "conformance/refusal_test.cpp",
    "device/poly/compose/": "conformance/fused_test.cpp",
    "device/registry": "conformance/stream_test.cpp",
    "device/stream": "unit/device/pool_test.cpp",
    "device/torus/": "conformance/torus_rotate_test.cpp",
    "rlwe/": "unit/ckks/rotations_test.cpp",
    "rlwe/secret/": "unit/rlwe/encapsulation_test.cpp",
    "serialize/": "unit/serialize/round_trip_test.cpp",
    "serialize/tfhe": "unit/serialize/tfhe_round_trip_test.cpp",
    "tfhe/": "unit/tfhe/keygen_test.cpp",
}


def seen_by(file: Path, seen: set[Path] | None = None) -> set[str]:
    """What a test includes, itself and through the headers of tests/."""
    seen = set() if seen is None else seen
    found = set()
    for _, include in INCLUDE.findall(file.read_text(encoding="utf-8")):
        helper = TESTS / include
        if not helper.is_file():
            found.add(include)
        elif helper not in seen:
            seen.add(helper)
            found |= seen_by(helper, seen)
    return found


def check_place(file: Path) -> list[str]:
    inside = file.relative_to(UNIT).as_posix()
    layer = layer_of(inside)
    folder = ROOT / "src" / inside
    if layer is None or not (folder.parent.is_dir() or layer == "fhecore/model"):
        return [f"tests/unit/{inside}: src/ has no such folder"]
    above = {}
    for include in seen_by(file):
        target = layer_of(include) or public_layer(include)
        if target and target != layer and target not in ALLOWED[layer]:
            above[target] = include
    if inside in WIDER:
        return [] if above else [f"tests/unit/{inside}: needs no line in WIDER of check_mirror.py"]
    return [f"tests/unit/{inside}: a test of {layer} must not include {i} ({t})" for t, i in above.items()]


def untested() -> list[str]:
    """Sources of src/ that no test names."""
    included = {i.removeprefix("crenel/") for test in TESTS.rglob("*_test.cpp") for i in seen_by(test)}
    found = []
    for file in sorted((ROOT / "src").rglob("*")):
        if file.suffix not in (".cpp", ".cu"):
            continue
        stem = file.relative_to(ROOT / "src").with_suffix("").as_posix()
        if f"{stem}.h" not in included and not (UNIT / f"{stem}_test.cpp").is_file():
            found.append(file.relative_to(ROOT / "src").as_posix())
    return found


def errors() -> list[str]:
    found = [line for file in sorted(UNIT.rglob("*.cpp")) for line in check_place(file)]
    found += [
        f"check_mirror.py: WIDER names {f}, which is not there" for f in WIDER if not (UNIT / f).is_file()
    ]
    used = set()
    for source in untested():
        prefix = max((p for p in COVERED if source.startswith(p)), key=len, default=None)
        if prefix is None:
            found.append(
                f"src/{source}: no test names it, and check_mirror.py does not say which one covers it"
            )
        used.add(prefix)
    for prefix, test in COVERED.items():
        if prefix not in used:
            found.append(f"check_mirror.py: COVERED names {prefix}, which needs no line")
        if not (TESTS / test).is_file():
            found.append(f"check_mirror.py: {prefix} is covered by {test}, which is not there")
    return found


def main() -> int:
    found = errors()
    for line in found:
        print("   error:", line)
    print(f"   unit tests and sources: {len(found)} errors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
