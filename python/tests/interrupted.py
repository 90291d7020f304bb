"""Runs one long operation again and again until Ctrl-C, for test_interrupt.py: argv is device, operation.

Prints "ready" before each attempt and, when KeyboardInterrupt comes, the time and the processor time of the
process then; after the last attempt, that everything still works.
"""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from crenel import ckks, tfhe

Operation = Callable[[], object]
warnings.simplefilter("ignore")


def clocks() -> tuple[float, float]:
    """Seconds of the machine's clock, and of all threads of this process on processors."""
    use = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), use.ru_utime + use.ru_stime


class Ckks:
    """Large enough that every operation takes long, but where only the bootstrap is asked for."""

    def __init__(self, device: str, boot: bool = False) -> None:
        name = "toy-boot40" if boot else "leveled-n14-s40"
        params = ckks.preset(name, allow_insecure=True)
        self.context = ckks.Context(params, device=device)
        self.client = self.context.keygen()
        self.ev = self.context.evaluator(self.client.evaluation_keys(rotations=[1]))
        self.a = self.client.encrypt([0.5, -0.25])

    def check(self) -> None:
        """What was there before works, and what the stopped operation took is given back."""
        assert abs(self.client.decrypt(self.ev.add(self.a, self.a))[0] - 1) < 1e-3


def ckks_operations(device: str, name: str) -> tuple[Operation, Operation, Callable[[], int]]:
    w = Ckks(device, boot=name.startswith("boot"))
    context, client = w.context, w.client

    def keys() -> object:
        return client.evaluation_keys(rotations=range(1, 200))

    def encode() -> object:
        slots = context.params.slots
        return context.linear_transform({k: np.ones(slots) for k in range(400)})

    def save() -> object:
        with tempfile.TemporaryDirectory() as folder:
            try:
                while True:
                    few.save(Path(folder) / "keys")
                    context.load_evaluation_keys(Path(folder) / "keys")
            finally:
                # Complete or not there, and nothing beside it.
                assert {p.name for p in Path(folder).iterdir()} <= {"keys"}

    if name == "files":
        few = client.evaluation_keys(rotations=range(1, 3))
    if name == "bootstraps":
        boot = context.bootstrapper(client.evaluation_keys(bootstrap=True))
        low = client.encrypt(np.zeros((4, context.params.slots)), level=boot.levels.input)
    if name == "decrypt":
        many = client.encrypt(np.zeros((8 if device == "ref" else 32, context.params.slots)))
    operations = {
        "compute": lambda: w.ev.rotate(w.ev.multiply_rescale(w.a, w.a), 1),
        "decrypt": lambda: client.decrypt(many),
        "keys": keys,
        "encrypt": lambda: client.encrypt(np.zeros((64, context.params.slots))),
        "encode": encode,
        "files": save,
        "bootstrapper": lambda: context.bootstrapper(),
        "bootstraps": lambda: boot(low),
    }
    return operations[name], w.check, lambda: context.bytes_in_use


def tfhe_operations(device: str, name: str) -> tuple[Operation, Operation, Callable[[], int]]:
    preset = "bool128" if name.endswith("gates") else "lut4-128"
    if device == "ref" and name != "tfhe-keys":
        preset = "toy-gadget" if name.endswith("gates") else "toy-lut4"
    context = tfhe.Context(tfhe.preset(preset, allow_insecure=True), device=device)
    client = context.keygen()
    if name == "tfhe-keys":
        return client.evaluation_keys, client.export_secret_key, lambda: context.bytes_in_use
    if name == "tfhe-files":
        made = client.evaluation_keys()

        def files() -> object:
            return context.evaluation_keys_from_bytes(made.to_bytes())

        return files, (lambda: made.to_bytes()), lambda: context.bytes_in_use
    ev = context.evaluator(client.evaluation_keys(), max_p_fail_log2=0)
    if name == "tfhe-gates":
        a, b = (client.encrypt(np.ones(20_000, dtype=bool)) for _ in range(2))
        one, two = a[:2], b[:2]
        ev.and_(one, two)  # tables that stay
        return (lambda: ev.and_(a, b)), (lambda: ev.and_(one, two)), lambda: context.bytes_in_use
    a, b = (client.encrypt(np.arange(64, dtype=np.uint32)) for _ in range(2))
    return (lambda: ev.mul(a, b)), (lambda: ev.add(a[:1], b[:1])), lambda: 0  # its tables stay


def main() -> None:
    # A shell without job control starts its background jobs with Ctrl-C ignored, and this one under them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    device, name, attempts = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if name == "search":
        operation: Operation = lambda: ckks.Params(log_n=16, scale_bits=40, depth=20)  # noqa: E731
        check, memory = (lambda: None), (lambda: 0)
    elif name == "context":
        operation = lambda: ckks.Context(ckks.preset("boot40"), device=device)  # noqa: E731
        check, memory = (lambda: None), (lambda: 0)
    elif name.startswith("tfhe"):
        operation, check, memory = tfhe_operations(device, name)
    else:
        operation, check, memory = ckks_operations(device, name)
    before = memory()
    for _ in range(attempts):
        try:
            print("ready", flush=True)
            while True:
                operation()
        except KeyboardInterrupt:
            at, used = clocks()
            print("caught", at, used, flush=True)
    check()
    assert memory() == before, f"{memory()} bytes in use, {before} before"
    print("works", flush=True)


main()
