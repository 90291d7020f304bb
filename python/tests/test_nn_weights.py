"""`nn.weights.load`: what it reads, and what it refuses to read or to execute.

Files of PyTorch are written by `torch_file`, which assembles the pickle that torch.save writes;
test_nn_torch.py compares with PyTorch itself where that is installed.
"""

import contextlib
import pickle
import struct
import zipfile

import numpy as np
import pytest
from needed import needs
from nn_world import rng  # noqa: F401

from crenel import nn
from crenel.errors import CrenelError, MissingFileError, ParameterError, SerializationError

STORAGES = {"f8": "Double", "f4": "Float", "f2": "Half", "i8": "Long", "i4": "Int", "?": "Bool"}


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def named(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def tuple_of(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


def tensor(key, storage, count, size, stride, offset=0) -> bytes:
    """Instructions for one, as torch.save writes them."""
    place = tuple_of(text("storage"), named("torch", storage), text(key), text("cpu"), number(count)) + b"Q"
    shape = tuple_of(*map(number, size)), tuple_of(*map(number, stride))
    hooks = named("collections", "OrderedDict") + b")R"
    arguments = tuple_of(place, number(offset), *shape, b"\x89", hooks)
    return named("torch._utils", "_rebuild_tensor_v2") + arguments + b"R"


def torch_file(path, program: bytes, storages, root="archive", compression=zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(f"{root}/data.pkl", b"\x80\x02" + program + b".")
        archive.writestr(f"{root}/version", "3\n")
        for key, data in storages.items():
            archive.writestr(f"{root}/data/{key}", data)


def dictionary(**entries: bytes) -> bytes:
    items = b"".join(text(key) + value for key, value in entries.items())
    return named("collections", "OrderedDict") + b")R" + b"(" + items + b"u"


def contiguous(key, array) -> bytes:
    stride = [int(np.prod(array.shape[k + 1 :])) for k in range(array.ndim)]
    kind = np.dtype(array.dtype).str[1:].replace("b1", "?")
    return tensor(key, f"{STORAGES[kind]}Storage", array.size, array.shape, stride)


@pytest.fixture
def given(rng):  # noqa: F811
    return {
        "conv.weight": rng.standard_normal((3, 2, 3, 1)),
        "conv.bias": rng.standard_normal(3).astype(np.float32),
        "half": rng.standard_normal((2, 2)).astype(np.float16),
        "steps": np.array(7),
        "mask": rng.integers(0, 2, 5).astype(bool),
    }


def assert_equal(found, given):
    assert found.keys() == given.keys()
    for name, value in given.items():
        assert found[name].dtype == np.float64
        assert not found[name].flags.writeable
        np.testing.assert_array_equal(found[name], np.asarray(value, dtype=np.float64))


def test_npz(given, tmp_path):
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "w.npz", **given)
        assert_equal(nn.weights.load(tmp_path / "w.npz"), given)


def test_safetensors(given, tmp_path, rng):  # noqa: F811
    numpy = needs("test", "safetensors.numpy")
    numpy.save_file({k: np.ascontiguousarray(v) for k, v in given.items()}, tmp_path / "w.safetensors")
    assert_equal(nn.weights.load(tmp_path / "w.safetensors"), given)
    bits = rng.integers(0, 1 << 15, 6).astype("<u2")
    header = b'{"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}'
    (tmp_path / "b").write_bytes(len(header).to_bytes(8, "little") + header + bits.tobytes())
    expected = np.frombuffer(b"".join(b"\0\0" + bits[k : k + 1].tobytes() for k in range(6)), "<f4")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            nn.weights.load(tmp_path / "b")["w"], expected.reshape(2, 3).astype(float)
        )
    data = bytearray((tmp_path / "w.safetensors").read_bytes())
    for cut in (9, 20, len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:cut])
        with pytest.raises(SerializationError, match="cut"):
            nn.weights.load(tmp_path / "cut")


def test_lists_of_pytorch(given, tmp_path):
    program = dictionary(**{name: contiguous(name, value) for name, value in given.items()})
    metadata = named("collections", "OrderedDict") + b")R"
    program += b"}" + text("_metadata") + metadata + b"sb"  # what state_dict() puts on it
    torch_file(tmp_path / "w.pt", program, {name: value.tobytes() for name, value in given.items()})
    assert_equal(nn.weights.load(tmp_path / "w.pt"), given)


def test_views_and_prefixes(tmp_path, rng):  # noqa: F811
    numbers = rng.standard_normal(20).astype("<f4")
    bits = (numbers.view("<u4") >> 16).astype("<u2")
    inner = dictionary(
        **{
            "module.t": tensor("0", "FloatStorage", 20, (3, 4), (1, 5), 2),
            "module.s": tensor("0", "FloatStorage", 20, (), (), 19),
            "module.b": tensor("1", "BFloat16Storage", 20, (20,), (1,)),
        }
    )
    program = b"}(" + text("epoch") + number(3) + text("state_dict") + inner + b"u"
    torch_file(tmp_path / "w.pt", program, {"0": numbers.tobytes(), "1": bits.tobytes()}, root="model")
    found = nn.weights.load(tmp_path / "w.pt", prefix="state_dict.module.")
    np.testing.assert_array_equal(found["t"], np.lib.stride_tricks.as_strided(numbers[2:], (3, 4), (4, 20)))
    assert found["s"].shape == () and found["s"] == numbers[19]
    np.testing.assert_array_equal(found["b"], (bits.astype("<u4") << 16).view("<f4"))
    with pytest.raises(ParameterError, match=r"begin with 'model\.'; there are state_dict\.module\.t"):
        nn.weights.load(tmp_path / "w.pt", prefix="model.")


class Evil:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_nothing_is_executed(tmp_path, capsys, protocol):
    program = pickle.dumps({"w": Evil()}, protocol)
    with zipfile.ZipFile(tmp_path / "w.pt", "w") as archive:
        archive.writestr("archive/data.pkl", program)
    with pytest.raises(SerializationError, match=r"print|which no list of tensors has"):
        nn.weights.load(tmp_path / "w.pt")
    assert "executed" not in capsys.readouterr().out


def test_wrong_tensors_are_refused(tmp_path):
    zeros = bytes(4 * 12)
    for made, match in [
        (tensor("0", "FloatStorage", 12, (3, 5), (5, 1)), "in 12 numbers"),
        (tensor("0", "FloatStorage", 12, (3, 4), (4, 1), 1), "in 12 numbers"),
        (tensor("0", "FloatStorage", 12, (10**9,), (0,)), "in 12 numbers"),
        (tensor("0", "FloatStorage", 12, (3, 4), (-4, 1)), "shape is none"),
        (tensor("0", "FloatStorage", 12, (3, 4), (4,)), "shape is none"),
        (tensor("0", "FloatStorage", 13, (3, 4), (4, 1)), "of 13 numbers in 48 bytes"),
        (tensor("1", "FloatStorage", 12, (3, 4), (4, 1)), "damaged"),
        (tensor("0", "QInt8Storage", 12, (3, 4), (4, 1)), "a storage of torch.QInt8Storage"),
        (named("os", "system") + tuple_of(text("true")) + b"R", "calls os.system"),
        (text("w") + tuple_of(text("true")) + b"R", "calls str"),
        (b"}" + tuple_of(number(1)) + number(1) + b"s", "tuple where a str is expected"),
        (b"}" + number(1) + number(1) + b"s", "no tensors"),
        (b"h\x05", "damaged"),
        (b"N0", "instruction POP"),
        (b"", "damaged"),
    ]:
        torch_file(tmp_path / "w.pt", made, {"0": zeros})
        with pytest.raises(SerializationError, match=match):
            nn.weights.load(tmp_path / "w.pt")


def test_lists_that_hold_each_other_are_bounded(tmp_path):
    """Each of 40 lists holds the one before twice."""
    program = b"}q\x00"
    for k in range(40):
        program += b"}" + text("a") + b"h" + bytes([k]) + b"s" + text("b") + b"h" + bytes([k]) + b"s"
        program += b"q" + bytes([k + 1])
    torch_file(tmp_path / "w.pt", program, {})
    with pytest.raises(SerializationError, match="more than 262144 entries"):
        nn.weights.load(tmp_path / "w.pt")
    program = b"(" + b"N" * 2 + b"tq\x00" + b"".join(b"h\x00h\x00\x86q\x00" for _ in range(60)) + b"Q"
    torch_file(tmp_path / "w.pt", program, {})  # a tuple with 2^60 leaves, where a storage is expected
    with pytest.raises(SerializationError):
        nn.weights.load(tmp_path / "w.pt")


def test_arrays_that_are_larger_than_their_bytes(tmp_path):
    np.savez(tmp_path / "ok.npz", w=np.zeros(4))
    with zipfile.ZipFile(tmp_path / "ok.npz") as archive:
        data = archive.read("w.npy")
    forged = data.replace(b"(4,), }         ", b"(999999999999,)}")
    assert forged != data
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.writestr("w.npy", forged)
    with pytest.raises(SerializationError, match="999999999999"):
        nn.weights.load(tmp_path / "w.npz")
    np.savez(tmp_path / "o.npz", w=np.array([Evil()], dtype=object))
    with pytest.raises(SerializationError, match="real numbers"):
        nn.weights.load(tmp_path / "o.npz")


@pytest.mark.parametrize("text", ["(((", "'''", "(" * 9000, "-" * 9000 + "1", "{" * 150, "-" * 900 + "1"])
def test_headers_that_python_cannot_read(tmp_path, text):
    """NumPy gives them to Python's parser and tokenizer, which have errors of their own for them."""
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(8)
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.writestr("w.npy", data)
    with pytest.raises(SerializationError, match="w.npy"):
        nn.weights.load(tmp_path / "w.npz")


def test_a_small_file_cannot_ask_for_large_memory(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", w=np.zeros(9 << 20))
    assert (tmp_path / "bomb.npz").stat().st_size < 1 << 17
    with pytest.raises(SerializationError, match="say they unpack to 75497"):
        nn.weights.load(tmp_path / "bomb.npz")
    np.savez_compressed(tmp_path / "zeros.npz", w=np.zeros(1 << 16))  # small, whatever its ratio
    assert not nn.weights.load(tmp_path / "zeros.npz")["w"].any()


def test_other_files(tmp_path):
    with pytest.raises(MissingFileError):
        nn.weights.load(tmp_path / "none.npz")
    for data, match in [(b"", "no file of weights"), (b"\x80\x02}.", "before 1.6"), (b"PK\x03\x04", "w: ")]:
        (tmp_path / "w").write_bytes(data)
        with pytest.raises(SerializationError, match=match):
            nn.weights.load(tmp_path / "w")


def test_changed_files_raise_typed_errors(given, tmp_path, rng):  # noqa: F811
    program = dictionary(**{name: contiguous(name, value) for name, value in given.items()})
    torch_file(tmp_path / "a", program, {name: value.tobytes() for name, value in given.items()})
    np.savez_compressed(tmp_path / "b.npz", **given)
    for path in (tmp_path / "a", tmp_path / "b.npz"):
        data = path.read_bytes()
        for _ in range(150):
            changed = bytearray(data)
            for at in rng.integers(0, len(data), 4):
                changed[at] = int(rng.integers(0, 256))
            path.write_bytes(bytes(changed[: int(rng.integers(len(data) // 2, len(data) + 1))]))
            with contextlib.suppress(CrenelError):  # anything else is a failure
                nn.weights.load(path)
    for _ in range(150):
        changed = bytearray(program)
        for at in rng.integers(0, len(program), 3):
            changed[at] = int(rng.integers(0, 256))
        torch_file(tmp_path / "c", bytes(changed), {name: value.tobytes() for name, value in given.items()})
        with contextlib.suppress(CrenelError):
            nn.weights.load(tmp_path / "c")
