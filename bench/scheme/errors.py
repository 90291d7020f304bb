"""Errors of slots after encryption, rotation and product, and along a chain of products, and what is stated.

    python bench/scheme/errors.py --json bench/results/errors-cpu.json [--params NAME] [--runs 5] [--seed 1]

Messages are uniform in [-1, 1] + [-1, 1]i; factors of the chain lie on the unit circle, so that the message
keeps its size and the error alone grows. Histograms are of real and imaginary parts, of all runs together.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import warnings
from pathlib import Path

import numpy as np

import crenel
from crenel import ckks

ROOT = Path(__file__).resolve().parents[2]
BINS = 81
WIDTH = 5.0  # standard deviations to each side


def histogram(name: str, errors: np.ndarray, bound: ckks.ErrorBound) -> dict:
    """Counts of the parts' errors in units of their standard deviation; what was expected, and the bound."""
    parts = np.concatenate([errors.real.ravel(), errors.imag.ravel()])
    deviation = float(parts.std())
    counts, _ = np.histogram(parts / deviation, bins=BINS, range=(-WIDTH, WIDTH))
    return {
        "name": name,
        "deviation_log2": float(np.log2(deviation)),
        "mean_over_deviation": float(parts.mean() / deviation),
        "largest_log2": float(np.log2(np.abs(errors).max())),
        "expected_rms_log2": float(np.log2(bound.variance) / 2),
        "bound_largest_log2": float(np.log2(bound.max)),
        "parts": int(parts.size),
        "counts": counts.tolist(),
    }


def circle(rng: np.random.Generator, slots: int) -> np.ndarray:
    return np.exp(2j * np.pi * rng.uniform(size=slots))


class Run:
    """Errors of one set of keys, by name."""

    def __init__(self, context: ckks.Context, rng: np.random.Generator) -> None:
        self.slots = context.params.slots
        self.client = context.keygen()
        self.ev = context.evaluator(self.client.evaluation_keys(rotations=[1]))
        self.rng = rng

    def errors(self) -> dict[str, np.ndarray]:
        x, y = (
            self.rng.uniform(-1, 1, self.slots) + 1j * self.rng.uniform(-1, 1, self.slots) for _ in range(2)
        )
        a, b = self.client.encrypt(x), self.client.encrypt(y)
        found = {"fresh": self.client.decrypt(a) - x}
        found["rotation"] = self.client.decrypt(self.ev.rotate(a, 1)) - np.roll(x, -1)
        found["product"] = self.client.decrypt(self.ev.multiply_rescale(a, b)) - x * y
        return found

    def chain(self, depth: int) -> list[float]:
        """Root mean square of the error after so many products, from none on."""
        clear = circle(self.rng, self.slots)
        ct = self.client.encrypt(clear)
        found = [float(np.sqrt(np.mean(np.abs(self.client.decrypt(ct) - clear) ** 2)))]
        for _ in range(depth):
            factor = circle(self.rng, self.slots)
            other = self.client.encrypt(factor, level=ct.level, scale=ct.scale)
            ct, clear = self.ev.multiply_rescale(ct, other), clear * factor
            found.append(float(np.sqrt(np.mean(np.abs(self.client.decrypt(ct) - clear) ** 2))))
        return found


def stated(params: ckks.Params) -> tuple[dict[str, ckks.ErrorBound], list[ckks.ErrorBound]]:
    """What the library says beforehand of the same circuits."""
    model = ckks.ErrorModel(params)
    a = model.input(max_abs=2**0.5)
    single = {"fresh": a, "rotation": model.rotate(a, 1), "product": model.multiply_rescale(a, a)}
    ct = model.input(max_abs=1.0)
    chain = [ct]
    while ct.level > 0:
        ct = model.multiply_rescale(ct, model.input(max_abs=1.0, level=ct.level, scale=ct.scale))
        chain.append(ct)
    return single, chain


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--params", default="leveled-n15-s40")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore", crenel.InsecureParametersWarning)
    params = ckks.preset(args.params, allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    rng = np.random.default_rng(args.seed)
    single, bounds = stated(params)
    runs = [Run(context, rng) for _ in range(args.runs)]
    errors = [run.errors() for run in runs]
    chains = np.array([run.chain(len(bounds) - 1) for run in runs])
    provenance = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": f"errors.py --params {args.params} --runs {args.runs} --seed {args.seed}",
        "version": crenel.__version__,
        "commit": git("rev-parse", "HEAD"),
        "dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
        "device": "cpu",
        "device_description": crenel.device_info("cpu").description,
        "python": platform.python_version(),
    }
    result = {
        "kind": "crenel-errors",
        "format": 1,
        "provenance": provenance,
        "params": args.params,
        "log_n": params.log_n,
        "security_bits": params.security_bits,
        "range_deviations": WIDTH,
        "histograms": [histogram(n, np.array([e[n] for e in errors]), single[n]) for n in single],
        "chain": {
            "rms_log2": np.log2(np.sqrt((chains**2).mean(axis=0))).tolist(),
            "expected_rms_log2": [float(np.log2(b.variance) / 2) for b in bounds],
            "bound_largest_log2": [float(np.log2(b.max)) for b in bounds],
        },
    }
    args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({k: v for k, v in result.items() if k != "histograms"}, indent=1))


if __name__ == "__main__":
    main()
