"""Files of programs and clients: between processes, and from strangers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from nn_world import quiet_compile, rng, small_cnn, toy, weights  # noqa: F401

from crenel import nn
from crenel.errors import CrenelError, FileError, SerializationError, StateError
from crenel.nn import archive, form, ops

SERVER = """
import sys, warnings
warnings.simplefilter("ignore")
from crenel import nn
program, keys, sent, result = sys.argv[1:]
server = nn.Program.load(program, device="cpu", allow_insecure=True).bind(keys)
tensor = server.tensor_from_bytes(open(sent, "rb").read())
open(result, "wb").write(server.run(tensor).to_bytes())
heavy = ("sklearn", "scipy", "torch", "onnx")
print("loaded", *[name for name in sys.modules if name.split(".")[0] in heavy])
"""


@pytest.fixture
def program(rng):  # noqa: F811
    return quiet_compile(
        small_cnn(rng), rng.standard_normal((60, 1, 8, 8)), params=toy(), degree=7, batch=2, device="cpu"
    )


@pytest.fixture
def tiny(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 3, 4), weights(rng, 3)), nn.Square())
    return quiet_compile(model, rng.standard_normal((30, 4)), params=toy("toy-leveled-n14-s40"), device="cpu")


def test_files_know_every_linear_operation():
    """One that is missing there compiles, runs and is saved, and its file is refused."""
    known = {kind for kind in ops.OPS.values() if kind.linear and kind is not ops.Add}
    assert known == set(form.LINEAR)


def test_a_client_and_a_server_in_two_processes(program, rng, tmp_path):  # noqa: F811
    """The contract: two files, keys and tensors as bytes, and the server has no secret."""
    program.save(tmp_path / "net.crn")
    program.client.save(tmp_path / "net.client")
    spec = nn.ClientSpec.load(tmp_path / "net.client", allow_insecure=True)
    client = spec.keygen(device="cpu")
    client.evaluation_keys(spec).save(tmp_path / "keys")
    samples = rng.uniform(-1, 1, (2, 1, 8, 8))
    (tmp_path / "sent").write_bytes(client.encrypt(samples, spec).to_bytes())
    names = [str(tmp_path / name) for name in ("net.crn", "keys", "sent", "result")]
    done = subprocess.run([sys.executable, "-c", SERVER, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["loaded"]
    # Another process of the client has the secret key and the two files alone.
    again = nn.ClientSpec.load(tmp_path / "net.client", allow_insecure=True)
    later = again.client_from_secret_key(client.export_secret_key(), device="cpu")
    result = later.tensor_from_bytes((tmp_path / "result").read_bytes())
    found = later.decrypt(result, again)
    np.testing.assert_allclose(
        found, program.simulate(samples, noise=False), atol=1e3 * program.expected.noise
    )


def test_a_program_survives_its_file(program, rng):  # noqa: F811
    data = program.to_bytes()
    again = nn.Program.from_bytes(data, allow_insecure=True)
    assert again.to_bytes() == data
    assert again.fingerprint == program.fingerprint
    assert again.explain() == program.explain() and again.describe() == program.describe()
    samples = rng.uniform(-1, 1, (3, 1, 8, 8))
    np.testing.assert_array_equal(
        again.simulate(samples, noise=False), program.simulate(samples, noise=False)
    )
    assert again.client.to_bytes() == program.client.to_bytes()


def test_one_module_in_two_places_keeps_its_fingerprint(rng):  # noqa: F811
    """Arrays that are one object in memory are two after loading: the client's tensors must still fit."""
    half = nn.Linear(weights(rng, 4, 4), weights(rng, 4))
    model = nn.Sequential(half, nn.Square(), half, nn.Square(), nn.Add(half, half))
    program = quiet_compile(
        model, rng.standard_normal((30, 4)), params=toy("toy-leveled-n14-s40"), device="cpu"
    )
    again = nn.Program.from_bytes(program.to_bytes(), allow_insecure=True)
    assert again.fingerprint == program.fingerprint
    assert again.to_bytes() == program.to_bytes()
    _, parts = archive.unpacked(program.to_bytes(), "program")
    assert len(parts) == len(set(parts.values())), "equal arrays are stored once"


def test_the_client_has_no_weights(program):
    """Its size does not depend on them, and no array is in it."""
    document, parts = archive.unpacked(program.client.to_bytes(), "client")
    assert parts == {}
    assert set(document) == {
        "params", "program", "rotations", "relinearisation", "bootstraps",
        "input", "input_level", "input_bound", "output", "output_shape", "output_bound", "batch",
    }  # fmt: skip


def test_insecure_parameters_want_a_word(tiny, tmp_path):
    tiny.save(tmp_path / "p")
    tiny.client.save(tmp_path / "c")
    for load in (nn.Program.load, nn.ClientSpec.load):
        path = tmp_path / ("p" if load == nn.Program.load else "c")
        with pytest.raises(SerializationError, match="allow_insecure"):
            load(path)


def test_files_that_are_not_there_or_of_another_kind(tiny, tmp_path):
    with pytest.raises(FileError):
        nn.Program.load(tmp_path / "none")
    tiny.save(tmp_path / "p")
    with pytest.raises(StateError, match="a file of a program, expected one of a client"):
        nn.ClientSpec.load(tmp_path / "p", allow_insecure=True)
    os.mkdir(tmp_path / "folder")
    with pytest.raises(FileError):
        tiny.save(tmp_path / "folder")


@pytest.mark.parametrize("limit", [True, np.True_, 2.5, "1", [1]])
def test_limits_of_tensors_are_numbers(tiny, rng, limit):  # noqa: F811
    client = tiny.client.keygen(device="cpu")
    data = client.encrypt(rng.uniform(-1, 1, (1, *tiny.plan.values[0].layout.shape)), tiny.client).to_bytes()
    kind = type(limit).__name__
    with pytest.raises(TypeError, match=f"max_bytes: expected an integer or None, got {kind}"):
        client.tensor_from_bytes(data, max_bytes=limit)
    with pytest.raises(SerializationError, match="max_bytes=") as refused:
        client.tensor_from_bytes(data, max_bytes=1)
    found = client.tensor_from_bytes(data, max_bytes=refused.value.fields["needed"])
    assert found.to_bytes() == data


def test_damage_is_found(tiny, rng):  # noqa: F811
    data = tiny.to_bytes()
    for place in rng.integers(0, len(data), 40):
        broken = bytearray(data)
        broken[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(SerializationError):
            nn.Program.from_bytes(bytes(broken), allow_insecure=True)
    for length in (0, 7, 19, 200, len(data) - 1):
        with pytest.raises(SerializationError):
            nn.Program.from_bytes(data[:length], allow_insecure=True)


def places(document, prefix=()):
    """Paths of everything in a JSON document."""
    yield prefix
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in items:
        yield from places(value, (*prefix, key))


@pytest.mark.parametrize("kind", ["program", "client"])
def test_forged_documents_are_refused_or_harmless(tiny, rng, kind):  # noqa: F811
    """With right checksums: a member that is another thing raises an error of the library, or loads."""
    whole = tiny if kind == "program" else tiny.client
    document, parts = archive.unpacked(whole.to_bytes(), kind)
    load = nn.Program.from_bytes if kind == "program" else nn.ClientSpec.from_bytes
    refused = 0
    for path in list(places(document))[1:]:
        for other in (None, -1, 2**62, 1.5, "x", [], {}, [[]], True):
            forged = json.loads(json.dumps(document))
            holder = forged
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = other
            try:
                load(archive.packed(kind, forged, parts), allow_insecure=True)
            except CrenelError:
                refused += 1
    assert refused > 100


OTHER = (0, 1, 2, 3, 5, 8, 16, 7.0, 1e-308, 1e308, np.inf, np.nan, 2**20, "add", "input", "activation")
OTHER += ("polynomial", "flatten", "linear", "conv2d", "affine", "place", "avg_pool2d", "series", "sum")


def changed(document, path, other):
    """A copy with one member exchanged."""
    forged = json.loads(json.dumps(document))
    holder = forged
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = other
    return forged


def sealed(monkeypatch, kind, document, parts):
    """The bytes of a file with right checksums, also of numbers that JSON has not but Python reads."""
    dumps = json.dumps
    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", lambda value, **options: dumps(value, **options | {"allow_nan": True}))
        return archive.packed(kind, document, parts)


@pytest.mark.parametrize("count", [400])
def test_what_a_forged_program_loads_as_can_be_used(program, rng, monkeypatch, count):  # noqa: F811
    """Plausible numbers and other operations: refused when loaded, or used without raw errors."""
    document, parts = archive.unpacked(program.to_bytes(), "program")
    paths = list(places(document))[1:]
    loaded = 0
    samples = rng.uniform(-1, 1, (2, 1, 8, 8))
    tries = [(paths[k], OTHER[j]) for k in range(len(paths)) for j in range(len(OTHER))]
    for k in rng.choice(len(tries), count, replace=False):
        path, other = tries[int(k)]
        print(path, other)
        data = sealed(monkeypatch, "program", changed(document, path, other), parts)
        try:
            again = nn.Program.from_bytes(data, allow_insecure=True)
        except SerializationError:
            continue
        loaded += 1
        shape = again.plan.values[0].layout.shape
        try:
            nn.ClientSpec.from_bytes(again.client.to_bytes(), allow_insecure=True)
            again.describe(), again.explain(), again.to_bytes()
            again.simulate(samples if shape == (1, 8, 8) else np.zeros((1, *shape)))
        except CrenelError as error:  # of numbers near the ends of float64
            print(f"used: {error}")
    assert 0 < loaded < count


@pytest.mark.parametrize(
    ("path", "other"),
    [
        (("plan", "output_shape"), [4]),
        (("plan", "steps", 0, "chains", 0, 0), {"op": "add"}),
        (("plan", "steps", 0, "chains", 0, 0, "bias", "shape"), [1, 3]),
        (("plan", "steps", 0, "chains", 0, 0, "weight", "shape"), [3, 2, 2]),
        (("plan", "steps", 0, "chains", 0, 0), {"op": "place", "channels": 3, "offset": 0}),
        (("plan", "values", 2, "layout", "gap"), [2, 1]),
        (("plan", "values", 2, "bound"), 1.0),
        (("plan", "values", 2, "bound"), 1e308),
        (("expected", 0), np.nan),
        (("expected", 4), np.inf),
        (("expected", 5), -1),
    ],
    ids=lambda value: str(value)[:40],
)
def test_forged_members_are_refused_when_loaded(tiny, monkeypatch, path, other):
    document, parts = archive.unpacked(tiny.to_bytes(), "program")
    data = sealed(monkeypatch, "program", changed(document, path, other), parts)
    with pytest.raises(SerializationError):
        nn.Program.from_bytes(data, allow_insecure=True)


@pytest.mark.parametrize(
    ("path", "other"),
    [
        (("program",), None),
        (("program",), "x" * 64),
        (("relinearisation",), -5),
        (("relinearisation",), 10**6),
        (("relinearisation",), True),
        (("input_level",), 10**6),
        (("output", "capacity"), 1 << 19),
        (("rotations",), [[1 << 19, 1]]),
        (("rotations",), [[1, 10**6]]),
        (("rotations",), [[1, 1], [1, 2]]),
        (("bootstraps",), [4]),
        (("bootstraps",), 0),
    ],
    ids=str,
)
def test_a_clients_file_is_within_its_parameters(tiny, path, other):
    document, parts = archive.unpacked(tiny.client.to_bytes(), "client")
    assert nn.ClientSpec.from_bytes(tiny.client.to_bytes(), allow_insecure=True).rotations
    with pytest.raises(SerializationError):
        data = archive.packed("client", changed(document, path, other), parts)
        nn.ClientSpec.from_bytes(data, allow_insecure=True)


def test_a_small_file_cannot_ask_for_large_memory(rng, monkeypatch):  # noqa: F811
    """Two pools: the first one's padding is the second one's window."""
    model = nn.Sequential(nn.AvgPool2d(1), nn.AvgPool2d(1))
    program = quiet_compile(model, rng.standard_normal((30, 1, 1, 1)), params=toy("toy-leveled-n14-s40"))
    document, parts = archive.unpacked(program.to_bytes(), "program")
    first, second = document["plan"]["steps"][0]["chains"][0]
    assert nn.Program.from_bytes(program.to_bytes(), allow_insecure=True).fingerprint == program.fingerprint
    first["padding"], second["kernel"] = [1 << 30, 1 << 30], [(1 << 31) + 1, (1 << 31) + 1]
    with pytest.raises(SerializationError, match="avg_pool2d to a tensor"):
        nn.Program.from_bytes(sealed(monkeypatch, "program", document, parts), allow_insecure=True)


def test_weights_that_are_not_finite_are_refused_in_files(tiny):
    document, parts = archive.unpacked(tiny.to_bytes(), "program")
    name = next(iter(parts))
    parts[name] = np.full(len(parts[name]) // 8, np.nan).tobytes()
    with pytest.raises(SerializationError, match="not finite"):
        nn.Program.from_bytes(archive.packed("program", document, parts), allow_insecure=True)


def test_nn_is_imported_at_its_first_use():
    code = (
        "import sys, crenel; print('crenel.nn' in sys.modules); crenel.nn; print('crenel.nn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_weights_of_single_precision_take_four_bytes(rng):  # noqa: F811
    """And come back as they were, with the same fingerprint; of double precision they take eight."""
    sizes = {}
    for kind in (np.float32, np.float64):
        matrix = rng.standard_normal((40, 50)).astype(kind).astype(np.float64)
        model = nn.Sequential(nn.Linear(matrix), nn.Square())
        made = quiet_compile(
            model, rng.standard_normal((30, 50)), params=toy("toy-leveled-n14-s40"), device="cpu"
        )
        data = made.to_bytes()
        again = nn.Program.from_bytes(data, "cpu", allow_insecure=True)
        assert again.fingerprint == made.fingerprint and again.to_bytes() == data
        sizes[kind] = len(data)
    assert sizes[np.float64] - sizes[np.float32] > 0.9 * 40 * 50 * 4
    document, parts = archive.unpacked(data, "program")
    text = json.dumps(document).replace('"type": "f4"', '"type": "O"')
    if '"type": "O"' in text:
        with pytest.raises(SerializationError, match="an array of type 'O'"):
            nn.Program.from_bytes(archive.packed("program", json.loads(text), parts), allow_insecure=True)
