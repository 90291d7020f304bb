"""Writes a file of every kind and form that this version writes, with what is in each: tests/compat/VERSION.

    python tests/compat/make.py

Run for a release, and before it for a kind or form that came since: only parts that are not there are
written, none again. Those that came with forms are in forms.py. python/tests/test_compat.py reads the files
with every later version. The keys are toys, of insecure sets, and protect nothing.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import forms
import numpy as np
from forms import pairs

import crenel
from crenel import bridge, ckks, nn, tfhe
from crenel.serve import forms as bodies
from crenel.serve.functions import Function
from crenel.serve.integer_functions import IntegerFunction
from crenel.workloads import checkpoint, encrypt_values
from crenel.workloads.regression.state import TrainingState
from crenel.workloads.regression.tables import EncryptedTable
from crenel.workloads.regression.training import EncryptedScores
from crenel.workloads.sorting import running

FOLDER = Path(__file__).resolve().parent
warnings.simplefilter("ignore", crenel.InsecureParametersWarning)


class Writer:
    """A folder that takes files, and the values that stand in them. What it had stays as it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts = folder / "values.json"
        had = json.loads(self.facts.read_text(encoding="utf-8"))["files"] if self.facts.exists() else {}
        self.values: dict[str, object] = had

    def put(self, file: str, data: bytes, /, **values: object) -> None:
        if file in self.values:
            raise FileExistsError(f"{file} of {self.folder.name} is there: it is never written again")
        (self.folder / file).write_bytes(data)
        self.values[file] = values

    def close(self) -> None:
        text = json.dumps({"version": crenel.__version__, "files": self.values}, indent=1)
        self.facts.write_text(text + "\n", encoding="utf-8")


def numbers(out: Writer, rng: np.random.Generator) -> None:
    """CKKS: parameters, keys, ciphertexts with and without a seed, a plaintext, an array, a checkpoint."""
    params = ckks.Params(log_n=10, scale_bits=28, depth=2, alpha=4, allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    client = context.keygen()
    keys = client.evaluation_keys(rotations=[1])
    ev = context.evaluator(keys)
    x, y = rng.uniform(-1, 1, (2, 16)) + 1j * rng.uniform(-1, 1, (2, 16))
    a, b = (client.encrypt(v, slots=16, bound=1.5) for v in (x, y))
    out.put("ckks-params.safetensors", params.to_bytes(), log_n=params.log_n, id=params.id)
    out.put("ckks-secret_key.safetensors", client.export_secret_key(), id=client.secret_key_id)
    out.put("ckks-public_key.safetensors", client.public_key().to_bytes())
    out.put("ckks-evaluation_keys.safetensors", keys.to_bytes(), rotations=[1])
    out.put("ckks-ciphertext.safetensors", a.to_bytes(), slots=pairs(x), bound=1.5, level=a.level)
    product = ev.multiply_rescale(a, b)
    out.put("ckks-product.safetensors", product.to_bytes(), slots=pairs(x * y), level=product.level)
    plain = context.encode(y, slots=16, level=1)
    out.put("ckks-plaintext.safetensors", plain.to_bytes(), times=pairs(x * y))
    matrix = rng.uniform(-1, 1, (3, 4))
    out.put("ckks-array.safetensors", ckks.encrypt(client, matrix).to_bytes(), array=matrix.tolist())
    belongs, progress = {"params": params.id}, {"iteration": 7}
    data = checkpoint.packed("compat", belongs, progress, {"state": a})
    out.put("ckks-checkpoint.safetensors", data, belongs=belongs, progress=progress, slots=pairs(x))


def sorting(out: Writer, rng: np.random.Generator) -> None:
    """Encrypted values of a sort, at the lowest level, where they are small."""
    params = ckks.preset("toy-boot40", allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    values = rng.uniform(2, 3, 16)
    encrypted = encrypt_values(client, values, low=2.0, high=3.0)
    low = replace(encrypted, columns=tuple(ev.adjust_level(c, 0) for c in encrypted.columns))
    out.put("values-secret_key.safetensors", client.export_secret_key())
    out.put("values.safetensors", low.to_bytes(), values=values.tolist(), params="toy-boot40")


def messages(out: Writer, rng: np.random.Generator) -> None:
    """TFHE: parameters, keys, bits, messages and integers."""
    params = tfhe.preset("toy-lut4", allow_insecure=True)
    context = tfhe.Context(params, device="cpu")
    client = context.keygen()
    small = rng.integers(0, 16, (2, 3))
    wide = rng.integers(-(2**15), 2**15, 3, dtype=np.int16)
    out.put("tfhe-params.safetensors", params.to_bytes(), name=params.name)
    out.put("tfhe-secret_key.safetensors", client.export_secret_key())
    out.put("tfhe-evaluation_keys.safetensors", client.evaluation_keys().to_bytes())
    out.put("tfhe-messages.safetensors", client.encrypt(small, bits=4).to_bytes(), messages=small.tolist())
    out.put("tfhe-integers.safetensors", client.encrypt(wide).to_bytes(), integers=wide.tolist())


def stored(out: Writer, rng: np.random.Generator) -> None:
    """TFHE by groups: keys with that of lists, an array stored each message by itself and in a list."""
    params = tfhe.preset("toy-lut4g4", allow_insecure=True)
    context = tfhe.Context(params, device="cpu")
    client = context.keygen()
    keys = client.evaluation_keys(lists=True)
    ev = context.evaluator(keys, max_p_fail_log2=-90)  # that the toy has room for
    small = rng.integers(0, 16, 5).astype(np.uint8)
    a = client.encrypt(small, bits=4)
    out.put("stored-params.safetensors", params.to_bytes(), name=params.name)
    out.put("stored-secret_key.safetensors", client.export_secret_key())
    out.put("stored-evaluation_keys.safetensors", keys.to_bytes())
    out.put("stored-switched.safetensors", ev.compress(a).to_bytes(), messages=small.tolist())
    out.put("stored-lists.safetensors", ev.compress(a, lists=True).to_bytes(), messages=small.tolist())


def network(out: Writer, rng: np.random.Generator) -> None:
    """crenel.nn: a program, its client's file, a sample and its scores."""
    weights = rng.normal(0, 0.3, (4, 8)), rng.normal(0, 0.3, (3, 4))
    model = nn.Sequential(nn.Linear(weights[0]), nn.Square(), nn.Linear(weights[1]))
    params = ckks.Params(log_n=10, scale_bits=28, depth=3, alpha=4, allow_insecure=True)
    program = nn.compile(model, rng.normal(size=(100, 8)), params=params, device="cpu")
    client = program.client.keygen(device="cpu")
    server = program.bind(client.evaluation_keys(program.client))
    sample = rng.uniform(-0.5, 0.5, 8)
    sent = client.encrypt(sample, program.client)
    scores = weights[1] @ (weights[0] @ sample) ** 2
    out.put("nn-program.safetensors", program.to_bytes())
    out.put("nn-client.safetensors", program.client.to_bytes())
    out.put("nn-secret_key.safetensors", client.export_secret_key())
    out.put("nn-sample.safetensors", sent.to_bytes(), sample=sample.tolist(), scores=scores.tolist())
    out.put("nn-scores.safetensors", server.run(sent).to_bytes(), scores=scores.tolist())


def crossing(out: Writer, rng: np.random.Generator) -> None:
    """Keys of the bridge, with both secrets and numbers on the grid that a table reads."""
    context = ckks.Context(ckks.preset("toy-boot40", allow_insecure=True), device="cpu")
    small = tfhe.Context(tfhe.preset("toy-lut4g4", allow_insecure=True), device=context.device)
    client, holder = context.keygen(), small.keygen()
    world = bridge.Bridge(context, small, slots=16)
    read = rng.integers(0, 16, 16)
    sent = client.encrypt(read / 8 - 1, slots=16, level=world.level)
    out.put("bridge-ckks_secret_key.safetensors", client.export_secret_key(), params="toy-boot40")
    out.put("bridge-tfhe_secret_key.safetensors", holder.export_secret_key(), params="toy-lut4g4")
    out.put("bridge-keys.safetensors", bridge.make_keys(client, holder).to_bytes())
    out.put("bridge-numbers.safetensors", sent.to_bytes(), low=-1.0, step=1 / 8, messages=read.tolist())


def training(out: Writer, rng: np.random.Generator) -> None:
    """What workloads keep and send: a table's block, a training's state, its scores, a sort under way."""
    params = ckks.Params(log_n=10, scale_bits=28, depth=1, alpha=4, allow_insecure=True)
    client = ckks.Context(params, device="cpu").keygen()
    x = rng.uniform(-1, 1, (4, 16))
    a, b, c, d = (client.encrypt(v, slots=16, level=0) for v in x)
    table = EncryptedTable("labels", [a], (9,))
    state = TrainingState(7, a, b, c, (9,), {"model": "compat"})
    scores = EncryptedScores([d], (9,), 7, "compat")
    rounds = checkpoint.packed(running.KIND, {"program": "compat"}, {"rounds": 3}, {"column 0": d})
    out.put("training-params.safetensors", params.to_bytes())
    out.put("training-secret_key.safetensors", client.export_secret_key())
    out.put("training-table.safetensors", table.to_bytes()[0], slots=pairs(x[0]), rows=9)
    out.put("training-state.safetensors", state.to_bytes(), slots=[pairs(v) for v in x[:3]], iteration=7)
    out.put("training-scores.safetensors", scores.to_bytes(), slots=pairs(x[3]), iteration=7)
    out.put("training-sort.safetensors", rounds, slots=pairs(x[3]), rounds=3)


def service(out: Writer, rng: np.random.Generator) -> None:
    """What a client of a served function is given."""
    params = ckks.Params(log_n=10, scale_bits=28, depth=1, alpha=4, allow_insecure=True)
    turn = int(rng.integers(1, 16))
    served = Function("turned", params, lambda ev, x: ev.rotate(x, turn), rotations=(turn,))
    out.put("service-function.safetensors", served.client_file, document=served.document)


def functions(out: Writer, rng: np.random.Generator) -> None:
    """Functions whose keys were counted, of integers, and what a client sends to one of several inputs."""
    params = ckks.Params(log_n=10, scale_bits=28, depth=2, alpha=4, allow_insecure=True)
    shape = (3, 4)
    counted = Function.of(
        "counted", params, lambda x, a: (x.conjugate(), a + a), (bodies.Vector(16), np.zeros(shape))
    )
    out.put("functions-counted.safetensors", counted.client_file, document=counted.document)
    toy = tfhe.preset("toy-lut4", allow_insecure=True)
    integers = IntegerFunction("less", toy, lambda ev, a, b: ev(a) < b, ("uint8", "uint8"))
    out.put("functions-integers.safetensors", integers.client_file, document=integers.document)
    client = ckks.Context(params, device="cpu").keygen()
    out.put("functions-secret_key.safetensors", client.export_secret_key())
    x, a = rng.uniform(-1, 1, 16), rng.uniform(-1, 1, shape)
    sent = [client.encrypt(x, slots=16), ckks.encrypt(client, a)]
    body = bodies.packed(counted.program, sent, result=False, single=False)
    out.put(
        "functions-sent.safetensors", body, program=counted.program, slots=pairs(x + 0j), array=a.tolist()
    )


PARTS = {
    "ckks": numbers, "values": sorting, "tfhe": messages, "stored": stored, "bridge": crossing, "nn": network,
    "training": training, "service": service, "functions": functions, **forms.PARTS,
}  # fmt: skip


def main() -> int:
    folder = FOLDER / crenel.__version__
    folder.mkdir(exist_ok=True)
    out = Writer(folder)
    there = {name.partition("-")[0].partition(".")[0] for name in out.values}
    missing = [part for part in PARTS if part not in there]
    if not missing:
        print(f"{folder.name} has every part: files of a version are never written again", file=sys.stderr)
        return 1
    rng = np.random.default_rng(2026)
    for part in missing:
        PARTS[part](out, rng)
    out.close()
    print(f"{sum(f.stat().st_size for f in folder.iterdir()):,} bytes in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
