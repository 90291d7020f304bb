"""Small networks on a CPU: an MLP and a LeNet with squares and random weights, in the benchmark schema.

    python bench/workload/small_networks.py --threads 2 [--networks mlp,lenet] [--json FILE] [...]

Each network is a process of its own, so that its peak of memory is its own; client and server share it. A run
is timed from the encrypted sample to the encrypted result, once for each of `--samples` fresh samples behind
one that is not timed; each result is decrypted and compared with the network in float64. Needs the package
installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SETS = {"mlp": "leveled-n13-s28", "lenet": "leveled-n14-s30"}
MOST_DEVIATIONS = 6.0  # of a correct run's largest error, in root mean squares that compile expects


class Clock:
    """Seconds of the wall and of all threads, by what was done."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall.setdefault(what, []).append(time.perf_counter() - wall)
        self.cpu.setdefault(what, []).append(time.process_time() - cpu)

    def medians(self) -> dict[str, float]:
        """As fields of a record."""
        found = {f"{what}_s": statistics.median(times) for what, times in self.wall.items()}
        return found | {f"{what}_cpu_s": statistics.median(times) for what, times in self.cpu.items()}


def measured(network: str, name: str, seed: int, count: int) -> dict:
    """The record of one network."""
    import numpy as np

    from crenel import ckks, nn
    from crenel.workloads import records
    from crenel.workloads.networks import small

    params = ckks.preset(name)
    model, calibration = getattr(small, network)(seed)
    samples = np.random.default_rng(seed + 1).random((count + 1, *calibration.shape[1:]))
    clock = Clock()
    with clock("compile"):
        program = nn.compile(model, calibration[:32], params=params, device="cpu")
    spec = program.client
    client = spec.keygen(device="cpu")
    with clock("keys"):
        keys = client.evaluation_keys(spec)
    with clock("encode"):
        server = program.bind(keys)
    server.run(client.encrypt(samples[0], spec))
    found = []
    for sample in samples[1:]:
        with clock("encrypt"):
            sent = client.encrypt(sample, spec)
        with clock("run"):
            returned = server.run(sent)
        with clock("decrypt"):
            found.append(client.decrypt(returned, spec))
    wanted = model(samples[1:])
    errors = np.abs(np.stack(found) - wanted)
    demand, expected = program.demand, program.expected
    return {
        "name": network, **records.facts_of(params), "seed": seed, "samples": count,
        "levels": program.plan.input_level, "diagonals": demand.operations["diagonals"],
        "rotation_keys": len(demand.rotations), "key_bytes": demand.key_bytes,
        "plaintext_bytes": demand.plaintext_bytes, "peak_bytes": records.process_peak_bytes(),
        **clock.medians(), "runs_s": clock.wall["run"],
        "error": float(errors.max()), "rms": float(np.sqrt(np.mean(errors**2))),
        "expected_rms": expected.noise, "largest_output": float(np.abs(wanted).max()),
        "correct": bool(errors.max() <= MOST_DEVIATIONS * expected.noise),
        "digest": records.digest(samples, np.stack(found)), "load": list(os.getloadavg()),
        "threads": int(os.environ["OMP_NUM_THREADS"]),
        "wait_policy": os.environ.get("OMP_WAIT_POLICY", "default"),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="mlp,lenet")
    parser.add_argument("--params", help=f"one set for all; default {SETS}")
    parser.add_argument("--seed", type=int, default=1, help="of weights and samples")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--record", help=argparse.SUPPRESS)  # one network, in this process
    options = parser.parse_args()
    if options.record:
        name = options.params or SETS[options.record]
        print(json.dumps(measured(options.record, name, options.seed, options.samples)))
        return 0
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads)}
    rows = []
    for network in options.networks.split(","):
        command = [sys.executable, __file__, "--record", network]
        command += ["--seed", str(options.seed), "--samples", str(options.samples)]
        command += ["--params", options.params] if options.params else []
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{network}: {done.stderr}", file=sys.stderr)
            return 1
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        print(
            f"{network}: {1e3 * row['run_s']:.1f} ms a run ({1e3 * row['run_cpu_s']:.1f} of all threads), "
            f"compile {row['compile_s']:.2f} s, keys {row['keys_s']:.2f} s, encode {row['encode_s']:.2f} s, "
            f"peak {row['peak_bytes'] / 2**30:.2f} GiB, largest error {row['error']:.3g} "
            f"(expected rms {row['expected_rms']:.3g}), outputs to {row['largest_output']:.3g}, "
            f"{'correct' if row['correct'] else 'WRONG'}, load {row['load'][0]:.1f}"
        )
    if options.json:
        import crenel
        from crenel.records import provenance, record, write_record

        where = provenance(crenel.Device("cpu"), " ".join(["python", *sys.argv]))
        write_record(options.json, record("small-networks", where, rows))
    return 0 if all(row["correct"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
