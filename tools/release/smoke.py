"""Run where a wheel was installed, by its own Python: what a first user does. Prints JSON."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
import warnings

import numpy as np

import crenel
from crenel import ckks, tfhe

warnings.simplefilter("ignore", crenel.InsecureParametersWarning)


def numbers() -> float:
    """Encrypt, multiply, decrypt, at 128 bits; the largest error."""
    params = ckks.Params(log_n=13, scale_bits=28, depth=2)
    context = ckks.Context(params, device="cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    x, y = np.random.default_rng().uniform(-1, 1, (2, params.slots))
    error = np.abs(client.decrypt(ev(client.encrypt(x)) * ev(client.encrypt(y))) - x * y).max()
    assert error < 2**-10, error
    return float(error)


def gates() -> int:
    """NAND of encrypted bits; how many."""
    context = tfhe.Context(tfhe.preset("toy-gadget", allow_insecure=True), device="cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    a, b = np.random.default_rng().integers(0, 2, (2, 64)).astype(bool)
    assert (client.decrypt(ev.nand(client.encrypt(a), client.encrypt(b))) == ~(a & b)).all()
    return a.size


def refusal() -> str:
    """device="cuda" where there is none is an error that says why, never the CPU."""
    if not (reason := crenel.cuda_unavailable_reason()):
        return "there is a GPU"
    try:
        ckks.Context(ckks.Params(log_n=13, scale_bits=28, depth=2), device="cuda")
    except crenel.DeviceError as error:
        return str(error)
    raise AssertionError(f"no error, though: {reason}")


def model() -> str:
    """Of a build with CUDA: the model of a GPU that needs none, on which an operation is accounted for; else
    nothing."""
    if not crenel._crenel.build_info()["cuda_toolkit"]:
        return ""
    context = ckks.Context(ckks.Params(log_n=13, scale_bits=28, depth=2), device="cuda:dry")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    a = client.encrypt(np.zeros(context.params.slots))
    with crenel.profile(context) as account:
        ev.multiply(a, a)
    assert account.records()
    return context.device.description


def command(*arguments: str) -> float:
    """Seconds of `crenel ...`, which has to succeed."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "crenel", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return round(time.perf_counter() - start, 2)


def main() -> None:
    found = {"python": platform.python_version(), "libc": " ".join(platform.libc_ver())}
    found["module"] = crenel._crenel.__file__.rpartition("/")[2]
    found["error"] = numbers()
    found["gates"] = gates()
    found["refusal"] = refusal()
    found["model"] = model()
    commands = [("version",), ("params", "list"), ("doctor",), *(("demo", d) for d in sys.argv[1:])]
    found["seconds"] = {" ".join(c): command(*c) for c in commands}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
