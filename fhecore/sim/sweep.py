"""What a bootstrapping launches for several numbers of factors of its linear transforms, the paper's FFT
iterations: stated by the library on the device that executes nothing, no GPU needed.

usage: sweep [--out FILE]

As many factors into the slots and out of them as the library allows. Fusions that came after the profiled
bootstrapping are off, so that every kernel is one that has a cost. data/fft-sweep-boot40.json has, by kernel,
launches, limbs times polynomials and products.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import params, schedules

FILE = params.DATA / "fft-sweep-boot40.json"
SET = "boot40"
CHOICES = ((2, 2), (3, 2), (3, 3), (4, 3), (5, 3))
"""Factors (into the slots, out of them): five need OverModRaise, which boot40 has."""


def parts(log_slots: int, factors: int) -> list[int]:
    """Butterfly stages of so many nearly equal factors."""
    return [log_slots * (k + 1) // factors - log_slots * k // factors for k in range(factors)]


def summed(records: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    """By kernel [launches, limbs times polynomials, products]; copies are no kernels."""
    out: dict[str, list[int]] = {}
    for r in records:
        if r["work"] != "copy":
            own = out.setdefault(r["kernel"], [0, 0, 0])
            own[0] += 1
            own[1] += r["limbs"] * r["polys"]
            own[2] += r["multiply_adds"]
    return dict(sorted(out.items()))


def sweep(name: str = SET, choices: Iterable[tuple[int, int]] = CHOICES) -> dict[str, Any]:
    """The record."""
    import crenel
    from crenel import ckks

    sets = ckks.preset(name, allow_insecure=True)
    context = ckks.Context(sets, device=schedules.device())
    client = context.keygen()
    log_slots = sets.slots.bit_length() - 1
    rows = []
    for into, out in choices:
        options = ckks.BootstrapOptions(
            coeff_to_slot_stages=parts(log_slots, into),
            slot_to_coeff_stages=parts(log_slots, out),
            graph=False,
        )
        boot = context.bootstrapper(client.evaluation_keys(bootstrap=options), options)
        ciphertext = client.encrypt([0.5, -0.25], level=boot.levels.input)
        boot.eager(ciphertext)  # plaintexts are made once
        with crenel.profile(context) as account:
            boot.eager(ciphertext)
        rows.append({
            "coeff_to_slot": into, "slot_to_coeff": out, "levels_left": boot.levels.output,
            "kernels": summed(account.records()),
        })  # fmt: skip
    of = {"device": schedules.DEVICE, "off": list(schedules.LATER)}
    return {"kind": "fhecore-fft-sweep", "params": name, **of, "sweep": rows}


def text(document: Mapping[str, Any]) -> str:
    """Its JSON, a kernel a line."""
    return json.dumps(document).replace(', "', ',\n "') + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.sim sweep", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FILE)
    args = parser.parse_args(arguments)
    found = sweep()
    args.out.write_text(text(found))
    for row in found["sweep"]:
        launches = sum(own[0] for own in row["kernels"].values())
        print(f"{row['coeff_to_slot']} and {row['slot_to_coeff']}: {launches} launches")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
