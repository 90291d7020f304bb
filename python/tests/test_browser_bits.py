"""Keys and ciphertexts of the WebAssembly module are the bytes that the native library makes."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from browser_world import ROOT, native, node, page

import crenel
from crenel import ckks, nn
from crenel.errors import CrenelError
from crenel.nn import archive
from crenel.nn.form import layout_form
from crenel.nn.layout import Layout

WIRE = ROOT / "tests" / "golden" / "wire"
IMPORTS = {
    "crenel.crenel_random", "env.emscripten_notify_memory_growth",
    *(f"wasi_snapshot_preview1.{name}" for name in (
        "clock_time_get", "proc_exit", "fd_close", "fd_pread", "fd_seek", "fd_write", "fd_read",
        "environ_sizes_get", "environ_get",
    )),
}  # fmt: skip

WITH_THREADS = {
    "crenel.crenel_random", "env.memory",
    *(f"env.{name}" for name in (
        "emscripten_get_now", "emscripten_memcpy_big", "emscripten_resize_heap",
        "emscripten_check_blocking_allowed", "__emscripten_init_main_thread_js", "__pthread_create_js",
        "__syscall_open", "abort",
    )),
    *(f"wasi_snapshot_preview1.{name}" for name in (
        "fd_close", "fd_pread", "fd_seek", "fd_write", "fd_read", "environ_sizes_get", "environ_get",
    )),
}  # fmt: skip
"""What a module with threads is given."""
NEVER = {
    f"env.{name}" for name in (
        "__emscripten_thread_cleanup", "_emscripten_default_pthread_stack_size", "exit", "strftime_l",
        "_emscripten_notify_thread_queue", "__syscall_fcntl64", "__syscall_ioctl",
        "emscripten_receive_on_main_thread_js", "emscripten_set_canvas_element_size",
        "emscripten_unwind_to_js_event_loop", "emscripten_webgl_create_context",
    )
}  # fmt: skip
"""What emscripten's C library names besides, and no client's work calls."""


@pytest.fixture(scope="module")
def seed() -> int:
    found = int(np.random.default_rng().integers(1 << 62))
    print(f"seed {found}")
    return found


@pytest.fixture(scope="module")
def program(seed: int) -> nn.Program:
    """Convolutions, so that layouts have gaps, and random weights."""
    page()
    rng = np.random.default_rng(seed)
    model = nn.Sequential(
        nn.Conv2d(rng.normal(0, 0.3, (3, 1, 3, 3)), stride=2, padding=1), nn.Square(), nn.Flatten(),
        nn.Linear(rng.normal(0, 0.2, (4, 48))),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
        return nn.compile(model, rng.normal(size=(60, 1, 8, 8)), params=params, batch=3, device="cpu")


@pytest.fixture(scope="module")
def folder(program: nn.Program, seed: int, tmp_path_factory) -> Path:
    """With the client's file and three samples."""
    found = tmp_path_factory.mktemp("browser")
    program.client.save(found / "client")
    bound = program.client.input_bound
    samples = np.random.default_rng(seed + 1).uniform(-bound, bound, (3, 1, 8, 8))
    (found / "samples").write_bytes(samples.tobytes())
    return found


@pytest.fixture(scope="module", params=[("cpu", 0), ("ref", 0), ("cpu", 1), ("cpu", 3)], ids=str)
def made(request, folder: Path, seed: int) -> tuple[Path, dict]:
    """Both sides' files, with the same randomness: on the module without threads, and on that with some."""
    device, threads = request.param
    native(device, folder, seed)
    told = node("make", device, folder, seed, threads=threads)
    assert told["answer"]["memory"]["threads"] == max(threads, 1)
    return folder, {**told, "threads": threads}


@pytest.mark.parametrize("what", ["secret", "keys", "tensor", "single"])
def test_the_same_randomness_gives_the_same_bytes(made: tuple[Path, dict], what: str) -> None:
    folder, told = made
    ours, theirs = ((folder / f"{side}-{what}").read_bytes() for side in ("native", "browser"))
    assert hashlib.sha256(ours).hexdigest() == hashlib.sha256(theirs).hexdigest()
    assert ours == theirs
    if what == "keys":
        assert told["answer"]["stated"] == len(theirs)
        assert told["answer"]["count"] == told["answer"]["parts"]


def test_results_decrypt_to_the_same_doubles(made: tuple[Path, dict], program: nn.Program) -> None:
    folder, told = made
    threads = told["threads"]
    server = program.bind(folder / "browser-keys")
    client = program.client.client_from_secret_key((folder / "browser-secret").read_bytes(), device="cpu")
    samples = np.frombuffer((folder / "samples").read_bytes()).reshape(-1, 1, 8, 8)
    for name in ("tensor", "single"):
        result = server.run(server.tensor_from_bytes((folder / f"browser-{name}").read_bytes())).to_bytes()
        (folder / "result").write_bytes(result)
        expected = np.atleast_2d(client.decrypt(client.tensor_from_bytes(result), program.client))
        found = node("decrypt", folder, folder / "browser-secret", folder / "result", threads=threads)[
            "answer"
        ]
        assert [bytes.fromhex(row) for row in found] == [row.tobytes() for row in expected]
        clear = program.simulate(samples[: len(expected)])
        assert np.abs(expected - clear).max() < 1e-3 * program.client.output_bound


def test_keys_lie_in_no_locked_memory_and_it_says_so(made: tuple[Path, dict]) -> None:
    kept = made[1]["answer"]["memory"]["secretMemory"]
    assert kept["bytes"] > 0
    assert kept["lockedBytes"] == 0 and kept["guardPages"] is False
    assert kept["unlockedBytes"] == kept["dumpableBytes"] == kept["bytes"] + kept["idleBytes"]


@pytest.mark.parametrize("threads", [0, 2])
def test_the_module_asks_for_randomness_and_nothing_of_a_network(threads: int) -> None:
    told = node("names", threads=threads)
    if threads:
        assert set(told["imports"]) - NEVER == WITH_THREADS
    else:
        assert set(told["imports"]) == IMPORTS
    assert told["early"]["error"] == "StateError" and "initAsync" in told["early"]["message"]
    exported = [name for name in told["exported"] if name.startswith("crenel_")]
    assert 0 < len(exported) <= 25


def test_wire_files_are_read_and_written_as_natively(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = ckks.Params.from_bytes((WIRE / "params.safetensors").read_bytes(), allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    client = context.client_from_secret_key((WIRE / "secret_key.safetensors").read_bytes())
    names = ["ciphertext", "ciphertext_seeded", "evaluation_keys", "evaluation_keys_none"]
    files = [WIRE / f"{name}.safetensors" for name in names]
    told = node("rewrite", WIRE / "params.safetensors", WIRE / "secret_key.safetensors", tmp_path, *files)
    assert (tmp_path / "secret_key").read_bytes() == client.export_secret_key()
    for k, file in enumerate(files):
        data = file.read_bytes()
        if "keys" in file.name:
            assert (tmp_path / str(k)).read_bytes() == context.evaluation_keys_from_bytes(data).to_bytes()
            continue
        ciphertext = context.ciphertext_from_bytes(data)
        assert (tmp_path / str(k)).read_bytes() == ciphertext.to_bytes()
        expected = np.ascontiguousarray(np.real(client.decrypt(ciphertext)))
        assert bytes.fromhex(told["answer"][k]) == expected.tobytes()


def test_scales_are_the_same_at_every_level(tmp_path: Path) -> None:
    names = ["leveled-n13-s28", "leveled-n14-s40", "toy-leveled-n15-s50", "toy-boot40"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = [ckks.preset(name, allow_insecure=True) for name in names]
    for name, params in zip(names, sets, strict=True):
        (tmp_path / name).write_bytes(params.to_bytes())
    told = node("scales", *(tmp_path / name for name in names))["answer"]
    assert told == [[p.scale(level) for level in range(p.normal_top_level + 1)] for p in sets]


def test_layouts_place_alike(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed + 2)
    layouts = []
    while len(layouts) < 60:
        capacity = 1 << int(rng.integers(4, 9))
        kind = int(rng.integers(3))
        if kind == 0:
            layout = Layout.of(tuple(int(n) for n in rng.integers(1, 12, 2)), capacity)
        elif kind == 1:
            gap = tuple(int(n) for n in rng.integers(1, 4, 2))
            size = tuple(int(n) for n in rng.integers(1, 7, 3))
            plane = (size[1] * gap[0] + int(rng.integers(3)), size[2] * gap[1] + int(rng.integers(3)))
            layout = Layout(size, size, gap, plane, capacity, images=1 << int(rng.integers(4)))
        else:
            groups, each = int(rng.integers(1, 4)), int(rng.integers(1, 9))
            layout = Layout((groups * each,), (groups * each, 1, 1), (1, 1), (1, 1), capacity, groups=groups)
        (tmp_path / f"layout{len(layouts)}").write_text(json.dumps(layout_form(layout)))
        layouts.append(layout)
    told = node("positions", tmp_path, len(layouts))["answer"]
    for layout, (slots, ciphertexts, digest) in zip(layouts, told, strict=True):
        positions = layout.positions().astype("<f8").tobytes()
        assert (slots, ciphertexts) == (layout.slots, layout.ciphertexts), str(layout)
        assert digest == hashlib.sha256(positions).hexdigest(), str(layout)


def _hostile(rng: np.random.Generator, data: bytes) -> bytes:
    """Cut, flipped, doubled or with other text in its header."""
    kind, at = int(rng.integers(4)), int(rng.integers(len(data)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]
    if kind == 2:
        return data + data[: at + 1]
    head = int(rng.integers(min(len(data), 600)))
    return data[:head] + bytes(rng.integers(0, 256, 8, dtype=np.uint8)) + data[head + 8 :]


def _natively(kind: str, data: bytes, client: nn.Client, spec: nn.ClientSpec) -> str | None:
    try:
        if kind == "client":
            nn.ClientSpec.from_bytes(data, allow_insecure=True)
        elif kind == "tensor":
            client.decrypt(client.tensor_from_bytes(data), spec)
        elif kind == "params":
            ckks.Params.from_bytes(data, allow_insecure=True)
        else:
            client.ckks_client.decrypt(client.ckks_client.context.ciphertext_from_bytes(data))
    except CrenelError as error:
        return error.code
    return None


def test_hostile_bytes_are_refused_alike(made: tuple[Path, dict], program: nn.Program, seed: int) -> None:
    folder, told = made
    rng, spec, count = np.random.default_rng(seed + 3), program.client, 120
    client = spec.client_from_secret_key((folder / "browser-secret").read_bytes(), device="cpu")
    tensor = (folder / "browser-single").read_bytes()
    document, parts = archive.unpacked(tensor, "tensor")
    assert isinstance(document, dict)
    good = {
        "client": (folder / "client").read_bytes(),
        "tensor": archive.packed("tensor", {**document, "result": True}, parts),
        "ciphertext": parts["ciphertext0"],
        "params": spec.params.to_bytes(),
    }
    kinds = [list(good)[k % 4] for k in range(count)]
    sent = [_hostile(rng, good[kind]) for kind in kinds]
    for k, data in enumerate(sent):
        (folder / f"hostile{k}").write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [_natively(kind, data, client, spec) for kind, data in zip(kinds, sent, strict=True)]
    found = node("refuse", folder, folder / "browser-secret", count, threads=told["threads"])["answer"]
    for k, (ours, theirs) in enumerate(zip(expected, found, strict=True)):
        assert theirs.get("error") == ours, f"{kinds[k]} {k}: {theirs}, natively {ours}"


@pytest.mark.parametrize("threads", [0, 3])
def test_what_is_wrong_is_refused_by_name(folder: Path, threads: int) -> None:
    found = node("guards", folder, threads=threads)["answer"]
    assert [found[name]["error"] for name in ("range", "nan", "many", "short")] == ["ParameterError"] * 4
    assert found["range"]["fields"]["index"] == [0, 0] and found["nan"]["fields"]["index"] == [1, 0]
    assert found["insecure"]["error"] == "SerializationError"
    for name in ("other", "early", "freed", "input"):
        assert found[name]["error"] == "StateError", found[name]
    assert found["large"]["error"] == "ParameterError" and "too large" in found["large"]["message"]
    assert found["after"]["value"] == 4
    assert {told["error"] for told in found["entropy"]} == {"StateError"}
    assert all("crypto.getRandomValues" in told["message"] for told in found["entropy"])


def test_errors_have_the_library_names() -> None:
    for told in node("names")["answer"]:
        kind = getattr(crenel.errors, told["code"], None)
        if kind is None:
            continue  # a service's, which this build of the package may not have
        assert kind.__mro__[1].__name__ == told["parent"] or told["code"] == "CrenelError"
    registered = {"ParameterError", "StateError", "KeyMissingError", "SerializationError", "DeviceError",
                  "OutOfMemoryError", "UnsupportedError", "Cancelled", "CrenelError"}  # fmt: skip
    assert registered <= {told["code"] for told in node("names")["answer"]}
