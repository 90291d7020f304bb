"""Contexts on one Device object, tenants of one context, and modules that import each other one way only."""

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from tfhe_world import open_tfhe, quiet

import crenel
from crenel import tfhe

M = np.arange(16, dtype=np.uint8)


@pytest.fixture
def shared(device):
    open_tfhe(tfhe.preset("toy-lut4", allow_insecure=True), device)  # skips where the device cannot be had
    return crenel.Device(device)


def on(device, **options) -> tfhe.Context:
    return quiet(lambda: tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device=device, **options))


def test_contexts_on_one_device_work_together(shared):
    first, second = on(shared), on(shared)
    assert first.device.name == second.device.name == shared.info.name
    assert repr(shared).startswith(f"<crenel.Device {shared.info.name}: ")
    client = first.keygen()
    ev = second.evaluator(client.evaluation_keys())
    squares = ev.lut(client.encrypt(M, bits=4), lambda t: t * t % 16)
    np.testing.assert_array_equal(client.decrypt(squares), M * M % 16)
    assert first.bytes_in_use == second.bytes_in_use > 0


def test_tenants_cost_their_keys(shared):
    context = on(shared)

    def tenant():
        client = context.keygen()
        keys = client.evaluation_keys()
        ev = context.evaluator(keys)
        x = client.encrypt(np.array([250, 3], dtype=np.uint8))
        np.testing.assert_array_equal(client.decrypt(ev.add(x, 7)), [1, 10])
        bits = client.encrypt(M % 2 == 0)
        np.testing.assert_array_equal(client.decrypt(ev.nand(bits, ev.refresh(bits))), M % 2 == 1)
        return keys

    used, keys = [], []
    for _ in range(4):
        keys.append(tenant())
        used.append(context.bytes_in_use)
    while len(keys) > 1:
        keys.pop(), used.pop()
        assert context.bytes_in_use == used[-1]


def test_other_device_objects(shared):
    first, second = on(crenel.Device(shared.info.name)), on(shared)
    client = first.keygen()
    keys = client.evaluation_keys()
    if shared.info.kind == "cuda":
        with pytest.raises(tfhe.StateError, match="share one Device"):
            second.evaluator(keys)
    else:
        ev = second.evaluator(keys)
        np.testing.assert_array_equal(client.decrypt(ev.refresh(client.encrypt(M, bits=4))), M)


def test_what_is_no_device(device):
    with pytest.raises(crenel.DeviceError, match="abacus"):
        crenel.Device("abacus")
    for wrong in (None, 3):
        with pytest.raises(TypeError):
            on(wrong)


def test_parameters_are_values():
    params = tfhe.preset("toy-lut4", allow_insecure=True).with_slots(3)
    for other in (pickle.loads(pickle.dumps(params)), copy.deepcopy(params)):
        assert other == params and hash(other) == hash(params) and other.slots == 3


def test_modules_import_one_way():
    """No circle in crenel.tfhe, not for type checkers either, and no import inside a function."""
    folder = Path(tfhe.__file__).parent
    imports = {}
    for file in folder.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        name = f"crenel.tfhe.{file.stem}"
        found = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom | ast.Import)]
        imports[name] = {n.module for n in found if isinstance(n, ast.ImportFrom)}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                inner = [n for n in ast.walk(function) if isinstance(n, ast.ImportFrom | ast.Import)]
                assert not inner, f"{file.name}: {function.name} imports"
    imports.pop("crenel.tfhe.__init__")
    done: set[str] = set()
    while len(done) < len(imports):
        free = {m for m in imports if m not in done and not (imports[m] & imports.keys()) - done}
        assert free, f"a circle among {sorted(imports.keys() - done)}"
        done |= free
