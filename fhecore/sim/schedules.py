"""What whole workloads launch: stated by the library on the device that executes nothing, no GPU needed.

usage: schedules [--only NAME] [--out FILE]         NAME: lr, resnet20 or bert-tiny

Logistic regression: 32 iterations of 1,024 rows of 196 features. ResNet-20 and BERT-Tiny have random weights,
which decide no launch but through diagonals that are zero; degrees of polynomials are given. One image, one
sequence. Fusions that came after the profiled bootstrapping are off, so that every kernel is one that has a
cost. data/schedules.json counts the launches by kernel, limbs, polynomials and products. Minutes, and
some GiB of memory for the networks.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from . import params

FILE = params.DATA / "schedules.json"
SET = "boot35"
DEVICE = "cuda:dry"
SEED = 1
ITERATIONS, ROWS, FEATURES, BLOCKS = 32, 1024, 196, 11
DEGREE = 63  # of ResNet-20's ReLU
# Of the random batch norms.
RANGES = {"running_mean": (-0.1, 0.1), "running_var": (0.8, 1.2), "weight": (0.6, 1.0), "bias": (-0.1, 0.1)}
FIELDS = ("kernel", "limbs", "polys", "multiply_adds", "bytes", "count")


LATER = ("shared_keys", "rotated_rows", "product_rows", "divided_rows", "convert_columns")
"""Optimisations that the kernels of the archive do not have."""


def device() -> Any:
    """One that executes nothing, with the fusions that the archive's kernels have."""
    import crenel

    found = crenel.Device(DEVICE)
    found.optimisations = crenel.Optimisations().replace(**dict.fromkeys(LATER, False))
    return found


def counted(records: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Launches that are alike, once with their number; copies and fills are no kernels."""
    seen: Counter[tuple[Any, ...]] = Counter()
    for r in records:
        if r["work"] != "copy":
            moved = r["read_bytes"] + r["written_bytes"]
            seen[r["kernel"], r["limbs"], r["polys"], r["multiply_adds"], moved] += 1
    return [[*key, count] for key, count in sorted(seen.items())]


def logistic_regression() -> dict[str, Any]:
    """A training as the papers run it, with as many blocks of rows as MNIST's 3 and 8 fill."""
    import numpy as np

    import crenel
    from crenel import ckks
    from crenel.workloads import LogisticRegression

    sets = ckks.preset(SET)
    context = ckks.Context(sets, device=device())
    model = LogisticRegression(sets, features=FEATURES, batch=ROWS)
    client = context.keygen()
    keys = model.keys(client)
    rng = np.random.default_rng(SEED)
    x = model.encrypt(client, rng.random((BLOCKS * ROWS, FEATURES)))
    y = model.encrypt_labels(client, np.where(rng.random(BLOCKS * ROWS) < 0.5, -1.0, 1.0))
    evaluator = context.evaluator(keys)
    ready = context.bootstrapper(keys, model.bootstrap)
    model.fit(evaluator, x, y, 6)  # tables and plaintexts of the first refresh are made once
    with crenel.profile(context) as account:
        model.fit(evaluator, x, y, ITERATIONS)
    del ready
    what = f"{ITERATIONS} iterations of {ROWS:,} rows of {FEATURES} features, {BLOCKS} blocks"
    return {"name": "lr", "title": "LR", "what": what, "launches": counted(account.records())}


def _network(name: str, title: str, what: str, model: Any, samples: Any, **options: Any) -> dict[str, Any]:
    import crenel
    from crenel import ckks, nn

    on = device()  # one: nothing that it holds can be read, to go to another
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of agreement, which random weights have none of
        program = nn.compile(model, samples, params=ckks.preset(SET), device=on, **options)
    client = program.client.keygen(on)
    server = program.bind(client.evaluation_keys(program.client))
    encrypted = client.encrypt(samples[0], program.client)
    server.run(encrypted)  # what bootstraps make once
    with crenel.profile(server.context) as account:
        server.run(encrypted)
    return {"name": name, "title": title, "what": what, "launches": counted(account.records())}


def resnet20() -> dict[str, Any]:
    """One image of 32 x 32."""
    import numpy as np

    from crenel.workloads.networks.resnet20 import BLOCKS as DEEP
    from crenel.workloads.networks.resnet20 import CHANNELS, CLASSES
    from crenel.workloads.networks.resnet20 import resnet20 as network

    rng = np.random.default_rng(SEED)
    weights: dict[str, np.ndarray] = {}

    def layer(name: str, norm: str, outputs: int, inputs: int) -> None:
        weights[f"{name}.weight"] = rng.standard_normal((outputs, inputs, 3, 3)) * np.sqrt(2 / (9 * inputs))
        for part, (low, high) in RANGES.items():
            weights[f"{norm}.{part}"] = rng.uniform(low, high, outputs)

    layer("conv1", "bn1", CHANNELS[0], 3)
    inputs = CHANNELS[0]
    for stage, outputs in enumerate(CHANNELS, start=1):
        for block in range(DEEP):
            for k, given in ((1, inputs), (2, outputs)):
                layer(f"layer{stage}.{block}.conv{k}", f"layer{stage}.{block}.bn{k}", outputs, given)
            inputs = outputs
    weights["linear.weight"] = rng.standard_normal((CLASSES, inputs)) / np.sqrt(inputs)
    weights["linear.bias"] = rng.uniform(-0.1, 0.1, CLASSES)
    samples = rng.standard_normal((50, 3, 32, 32))
    what = f"one image, ReLU by degree {DEGREE}"
    return _network("resnet20", "ResNet-20", what, network(weights), samples, degree=DEGREE)


def bert_tiny() -> dict[str, Any]:
    """One sequence of 128 tokens."""
    from crenel.workloads.networks import bert

    model, samples = bert.bert_tiny(SEED)
    return _network("bert-tiny", "BERT-Tiny", "one sequence of 128 tokens", model, samples, **bert.OPTIONS)


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "lr": logistic_regression, "resnet20": resnet20, "bert-tiny": bert_tiny,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.sim schedules", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(MAKERS), help="one workload; the file keeps the others")
    parser.add_argument("--out", type=Path, default=FILE)
    args = parser.parse_args(arguments)
    made = {name: make() for name, make in MAKERS.items() if args.only in (None, name)}
    found = json.loads(args.out.read_text()) if args.only and args.out.exists() else {"workloads": []}
    by_name = {w["name"]: w for w in found["workloads"]} | made
    for name, workload in made.items():
        print(f"{name}: {sum(row[-1] for row in workload['launches'])} launches", flush=True)
    whole = [by_name[name] for name in MAKERS if name in by_name]
    document = {
        "kind": "fhecore-schedules",
        "params": SET,
        "device": DEVICE,
        "fields": FIELDS,
        "workloads": whole,
    }
    args.out.write_text(
        json.dumps(document, indent=None, separators=(",", ":")).replace('],["', '],\n["') + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
