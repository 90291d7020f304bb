"""The small networks through Orion's compiler and evaluator (Lattigo), with the same weights and samples.

    python bench/compare/orion.py --python PATH [--networks mlp,lenet] [--samples 5] [--json FILE]

PATH: an interpreter that has orion-v2-compiler, orion-v2-evaluator and orion-v2-lattigo; this one has the
package. The parameters are those of Orion's own configuration of the networks: N = 2^13, conjugate invariant,
scale 2^26. The LeNet takes more than 12 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np

PACKAGES = ("orion-v2-compiler", "orion-v2-evaluator", "orion-v2-lattigo")
LEVELS = {"mlp": 5, "lenet": 7}


def write_network(network: str, seed: int, count: int, path: Path) -> None:
    """Weights, samples and exact results, for the other interpreter."""
    from crenel import nn
    from crenel.workloads.networks import small

    model, calibration = getattr(small, network)(seed)
    samples = np.random.default_rng(seed + 1).random((count + 1, *calibration.shape[1:]))
    arrays = {"samples": samples, "wanted": model(samples)}
    layers = [m for m in model.modules if isinstance(m, (nn.Linear, nn.Conv2d))]
    for number, layer in enumerate(layers):
        arrays |= {f"weight{number}": layer.weight, f"bias{number}": layer.bias}
    np.savez(path, **arrays)


def network_of(network: str, data: dict[str, np.ndarray]):
    """The module of the other library, with these weights."""
    import orion_compiler.nn as on
    import torch

    class Network(on.Module):
        def __init__(self) -> None:
            super().__init__()
            convolutions = [(1, 32), (32, 64)] if network == "lenet" else []
            sizes = [3136, 512, 10] if network == "lenet" else [784, 128, 128, 10]
            for number, (given, made) in enumerate(convolutions):
                setattr(self, f"layer{number}", on.Conv2d(given, made, 5, stride=2, padding=2))
            for number, (given, made) in enumerate(zip(sizes, sizes[1:], strict=False), len(convolutions)):
                setattr(self, f"layer{number}", on.Linear(given, made))
            self.convolutions, self.layers = len(convolutions), len(convolutions) + len(sizes) - 1
            self.flatten = on.Flatten()
            for number in range(self.layers - 1):
                setattr(self, f"square{number}", on.Quad())

        def forward(self, x):
            for number in range(self.layers):
                if number == self.convolutions:
                    x = self.flatten(x)
                x = getattr(self, f"layer{number}")(x)
                if number < self.layers - 1:
                    x = getattr(self, f"square{number}")(x)
            return x

    made = Network()
    with torch.no_grad():
        for number in range(made.layers):
            layer = getattr(made, f"layer{number}")
            layer.weight.copy_(torch.tensor(data[f"weight{number}"], dtype=torch.float32))
            layer.bias.copy_(torch.tensor(data[f"bias{number}"], dtype=torch.float32))
    return made.eval()


class Clock:
    """Seconds of the wall and of all threads since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall, time.process_time() - self.cpu


def measured(network: str, path: Path) -> dict:
    """In the interpreter that has Orion."""
    import torch
    from lattigo import ckks, rlwe
    from orion_compiler import CKKSParams, Compiler
    from orion_evaluator import Evaluator, Model

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    with np.load(path) as file:
        data = dict(file)
    params = CKKSParams(
        logn=13, logq=(29, *[26] * LEVELS[network]), logp=(29, 29), log_default_scale=26, h=8192,
        ring_type="conjugate_invariant",
    )  # fmt: skip
    images = torch.tensor(data["samples"], dtype=torch.float32).reshape(-1, 1, 28, 28)
    clock = Clock()
    compiler = Compiler(network_of(network, data), params)
    compiler.fit(images[:8])
    program = compiler.compile().to_bytes()
    compile_s, compile_cpu_s = clock.seconds()
    model = Model.load(program)
    fields, manifest, level = model.client_params()
    clock = Clock()
    own = ckks.Parameters.from_dict(fields)
    maker = rlwe.KeyGenerator(own)
    secret = maker.gen_secret_key()
    rotations = [maker.gen_galois_key(secret, k) for k in manifest["galois_elements"]]
    keys = rlwe.MemEvaluationKeySet(maker.gen_relin_key(secret), rotations).marshal_binary()
    keys_s, keys_cpu_s = clock.seconds()
    evaluator = Evaluator(fields, keys)
    encoder, decryptor = ckks.Encoder(own), rlwe.Decryptor(own, secret)
    encryptor = rlwe.Encryptor(own, maker.gen_public_key(secret))
    times, errors = [], []
    for sample, wanted in zip(data["samples"], data["wanted"], strict=True):
        values = np.zeros(own.max_slots())
        values[: sample.size] = sample.reshape(-1)
        sent = encryptor.encrypt_new(encoder.encode(values.tolist(), level, own.default_scale()))
        sent_bytes = [sent.marshal_binary()]
        clock = Clock()
        (returned,) = evaluator.forward(model, sent_bytes)
        times.append(clock.seconds())
        plain = decryptor.decrypt_new(rlwe.Ciphertext.unmarshal_binary(returned))
        found = np.array(encoder.decode(plain, own.max_slots()))[: len(wanted)]
        errors.append(float(np.abs(found - wanted).max()))
    wall, cpu = zip(*times[1:], strict=True)
    return {
        "name": network, "versions": {name: metadata.version(name) for name in PACKAGES},
        "rotation_keys": len(rotations), "compile_s": compile_s, "compile_cpu_s": compile_cpu_s,
        "keys_s": keys_s, "keys_cpu_s": keys_cpu_s, "run_s": statistics.median(wall),
        "run_cpu_s": statistics.median(cpu), "samples": len(wall), "error": max(errors[1:]),
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "load": list(os.getloadavg()), "threads": int(os.environ["OMP_NUM_THREADS"]),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="an interpreter that has Orion")
    parser.add_argument("--networks", default="mlp,lenet")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--record", nargs=2, help=argparse.SUPPRESS)  # in the other interpreter
    options = parser.parse_args()
    if options.record:
        print("\n" + json.dumps(measured(options.record[0], Path(options.record[1]))))
        return 0
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "GOMAXPROCS"), str(options.threads))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network in options.networks.split(","):
            path = Path(folder) / f"{network}.npz"
            write_network(network, options.seed, options.samples, path)
            command = [options.python, __file__, "--record", network, str(path)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(f"{network}: ended with {done.returncode}\n{done.stderr[-2000:]}", file=sys.stderr)
                return 1
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(rows[-1])
    if options.json:
        import crenel
        from crenel.records import provenance

        where = provenance(crenel.Device("cpu"), " ".join(["python", *sys.argv]))
        document = {"kind": "crenel-comparison-orion", "format": 1, "provenance": where, "results": rows}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
