"""Tables and values that users bring: what is read, how it is split and scaled, what is refused by name."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pytest
from needed import needs

from crenel.errors import CrenelError, FileError, ParameterError, SerializationError, UnsupportedError
from crenel.workloads import data, idx


@pytest.fixture
def rng(record_property):
    seed = int(np.random.default_rng().integers(2**32))
    print(f"seed {seed}")
    record_property("seed", seed)
    return np.random.default_rng(seed)


def idx_bytes(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def mnist(folder, rng, packed=False, sizes=(60, 24)):
    """Random images under MNIST's names; (images, labels) of both sets."""
    made = []
    for stem, count in zip(("train", "t10k"), sizes, strict=True):
        images = rng.integers(0, 256, (count, 28, 28), np.uint8)
        labels = np.resize(np.array([3, 8, 5], np.uint8), count)
        for name, array in ((idx.IMAGES, images), (idx.LABELS, labels)):
            content = idx_bytes(array)
            path = folder / f"{stem}-{name}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content) if packed else content)
        made.append((images, labels))
    return made


def refused(kind: type[CrenelError], call, *texts: str, **fields) -> CrenelError:
    with pytest.raises(kind) as caught:
        call()
    for text in texts:
        assert text in str(caught.value)
    for name, value in fields.items():
        assert caught.value.fields[name] == value, caught.value.fields
    return caught.value


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_of_a_folder(tmp_path, rng, packed):
    (train, tags), (test, test_tags) = mnist(tmp_path, rng, packed)
    table = data.load_table(tmp_path)
    assert table.X_train.shape == (40, 196) and table.X_test.shape == (16, 196) and table.features == 196
    assert table.classes == ("3", "8") and set(table.y_train) == {-1.0, 1.0}
    kept = np.isin(tags, (3, 8))
    sums = train[kept].astype(int)
    expected = sums[:, 0::2, 0::2] + sums[:, 0::2, 1::2] + sums[:, 1::2, 0::2] + sums[:, 1::2, 1::2]
    np.testing.assert_allclose(table.X_train, expected.reshape(40, 196) / 1020, rtol=1e-15)
    np.testing.assert_array_equal(table.y_train, np.where(tags[kept] == 8, 1.0, -1.0))
    np.testing.assert_array_equal(table.y_test, np.where(test_tags[np.isin(test_tags, (3, 8))] == 8, 1, -1))
    swapped = data.load_table(tmp_path, digits=(8, 5), block=4)
    assert swapped.features == 49 and swapped.classes == ("8", "5")
    np.testing.assert_array_equal(swapped.y_train, np.where(tags[tags != 3] == 5, 1.0, -1.0))


def test_mnist_of_two_files_is_split(tmp_path, rng):
    mnist(tmp_path, rng)
    images = tmp_path / f"train-{idx.IMAGES}"
    table = data.load_table(images, seed=7)
    assert len(table.X_train) == 30 and len(table.X_test) == 10
    other = (tmp_path / f"train-{idx.LABELS}").rename(tmp_path / "tags-ubyte")
    again = data.load_table(images, labels=other, seed=7)
    np.testing.assert_array_equal(table.X_test, again.X_test)
    refused(FileError, lambda: data.load_table(images), idx.LABELS)
    assert not np.array_equal(data.load_table(images, labels=other, seed=8).X_test, table.X_test)


def test_damaged_idx_files(tmp_path, rng):
    mnist(tmp_path, rng)
    images, labels = tmp_path / f"train-{idx.IMAGES}", tmp_path / f"train-{idx.LABELS}"
    whole = images.read_bytes()
    for cut in (0, 3, 11, 17, len(whole) - 1):
        images.write_bytes(whole[:cut])
        refused(SerializationError, lambda: data.load_table(tmp_path), str(images), path=str(images))
    images.write_bytes(whole + b"x")
    refused(SerializationError, lambda: data.load_table(tmp_path), "more than")
    images.write_bytes(b"\0\0\x0d\x03" + whole[4:])
    refused(SerializationError, lambda: data.load_table(tmp_path), magic="00000d03", expected="00000803")
    images.write_bytes(labels.read_bytes())
    refused(SerializationError, lambda: data.load_table(tmp_path), magic="00000801")
    images.write_bytes(b"\0\0\x08\x03" + b"\xff" * 12 + whole[16:])  # 2^96 bytes, it says
    refused(SerializationError, lambda: data.load_table(tmp_path), "4294967295 x 4294967295")
    packed = gzip.compress(whole)
    for damaged in (packed[: len(packed) // 2], packed[:-6] + b"\0\0" + packed[-4:]):
        images.write_bytes(damaged)
        refused(SerializationError, lambda: data.load_table(tmp_path), "gzip", path=str(images))
    images.write_bytes(idx_bytes(np.zeros((59, 28, 28), np.uint8)))
    refused(SerializationError, lambda: data.load_table(tmp_path), images=59, labels=60)


def test_options_of_mnist(tmp_path, rng):
    mnist(tmp_path, rng)
    refused(
        ParameterError, lambda: data.load_table(tmp_path, digits=(3, 7)), "no image is labelled 7", digit=7
    )
    refused(ParameterError, lambda: data.load_table(tmp_path, digits=(3, 3)), digits=[3, 3])
    refused(ParameterError, lambda: data.load_table(tmp_path, block=3), block=3, shape=[28, 28])
    (tmp_path / f"t10k-{idx.LABELS}").unlink()
    refused(FileError, lambda: data.load_table(tmp_path), f"t10k-{idx.LABELS}")
    (tmp_path / "empty").mkdir()
    refused(ParameterError, lambda: data.load_table(tmp_path / "empty"), "without MNIST's files")


def test_csv_with_and_without_header(tmp_path, rng):
    x = rng.normal(3.0, 5.0, (40, 3))
    y = ["M" if i % 3 else "B" for i in range(40)]
    path = tmp_path / "t.csv"
    rows = [f"{a!r},{t},{b!r},{c!r}" for (a, b, c), t in zip(x.tolist(), y, strict=True)]
    path.write_text("a,kind,b,c\n" + "\n".join(rows) + "\n\n")
    table = data.load_table(path, label="kind", scale="none", seed=4)
    assert table.feature_names == ("a", "b", "c") and table.classes == ("B", "M") and table.scaling is None
    assert len(table.X_test) == 10 and len(table.X_train) == 30
    seen = np.concatenate([table.X_train, table.X_test])
    np.testing.assert_array_equal(seen[np.lexsort(seen.T)], x[np.lexsort(x.T)])
    signs = dict(zip(map(tuple, x.tolist()), y, strict=True))
    for row, sign in zip(seen.tolist(), np.concatenate([table.y_train, table.y_test]), strict=True):
        assert (sign > 0) == (signs[tuple(row)] == "M")
    path.write_text("\n".join(rows).replace(",", ";"))
    bare = data.load_table(path, label=1, scale="none", seed=4)
    np.testing.assert_array_equal(bare.X_train, table.X_train)
    assert bare.feature_names == ("0", "2", "3")


def test_numeric_labels_are_sorted_as_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{i},{v}\n" for i, v in enumerate(["10", "9", "10.0", "9"] * 3)))
    table = data.load_table(path)
    assert table.classes == ("9.0", "10.0")
    assert table.X_train.max() <= 1 and table.X_train.min() >= -1


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a,b,y\n1,2,0\n1,2\n", {"row": 3, "columns": 2}),
        ("a,b,y\n1,2,0\n1,x,1\n", {"row": 3, "column": "b", "value": "x"}),
        ("a,b,y\n1,2,0\nnan,2,1\n", {"row": 3, "column": "a", "value": "nan"}),
        ("a,b,y\n1,2,0\n1,inf,1\n", {"row": 3, "column": "b"}),
        ("1,2,0\n1,,1\n", {"row": 2, "column": "1", "value": ""}),
        ("a,b,y\n1,2,0\n1,2,\n", {"row": 3, "column": "y"}),
        ('a,b,y\n1,"2,0\n', {"row": 2}),
        ("", {}),
        ("a,b,y\n", {"rows": 0}),
        ("1\n2\n", {"columns": 1}),
    ],
)
def test_malformed_csv_is_named(tmp_path, text, fields):
    path = tmp_path / "t.csv"
    path.write_text(text)
    refused(SerializationError, lambda: data.load_table(path), str(path), path=str(path), **fields)


def test_classes_and_columns_that_do_not_fit(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,1\n3,2\n4,0\n")
    refused(ParameterError, lambda: data.load_table(path), "3 classes (0, 1, 2)", classes=3)
    refused(ParameterError, lambda: data.load_table(path, label="z"), "a, y", label="z")
    refused(ParameterError, lambda: data.load_table(path, label=2), label=2, columns=2)
    path.write_text("a,y\n1,0\n2,0\n3,0\n4,0\n")
    refused(ParameterError, lambda: data.load_table(path), classes=1)
    path.write_text("a,y\n1,0\n")
    refused(ParameterError, lambda: data.load_table(path), classes=1)
    path.write_bytes(b"a,y\n\xff,1\n")
    refused(SerializationError, lambda: data.load_table(path), byte=4)
    refused(FileError, lambda: data.load_table(tmp_path / "none.csv"), "none.csv")
    with pytest.raises(FileNotFoundError):
        data.load_table(tmp_path / "none.csv")
    refused(ParameterError, lambda: data.load_table(scale="twice"), scale="twice")


def test_npz(tmp_path, rng):
    path = tmp_path / "t.npz"
    x, y = rng.integers(0, 500, (30, 4)), np.arange(30) % 2
    np.savez(path, X_train=x, y_train=y, X_test=x[:6], y_test=y[:6])
    table = data.load_table(path)
    np.testing.assert_array_equal(table.X_train, x / x.max())
    np.testing.assert_array_equal(table.X_test, table.X_train[:6])
    np.testing.assert_array_equal(table.y_test, 2.0 * y[:6] - 1)
    np.savez(path, X=x.astype(float), y=np.array(["no", "yes"])[y])
    split = data.load_table(path)
    assert split.classes == ("no", "yes") and len(split.X_test) == 8
    np.testing.assert_allclose(split.X_train.mean(axis=0), 0, atol=0.2)


def test_malformed_npz(tmp_path, rng):
    path = tmp_path / "t.npz"
    x, y = rng.normal(size=(30, 4)), np.arange(30) % 2
    cases = [
        ({"X": x}, SerializationError, {"array": "y"}),
        ({"X_train": x, "y_train": y, "X_test": x}, SerializationError, {"array": "y_test"}),
        ({"X": x, "y": y[:-1]}, SerializationError, {"rows": 30}),
        ({"X": x[0], "y": y}, SerializationError, {"array": "X", "shape": [4]}),
        ({"X": np.array([[object()]]), "y": y}, SerializationError, {}),
        ({"X": x, "y": np.arange(30)}, ParameterError, {"classes": 30}),
        (
            {"X_train": x, "y_train": y, "X_test": x[:, :3], "y_test": y},
            SerializationError,
            {"columns": 3, "expected": 4},
        ),
    ]
    for arrays, kind, fields in cases:
        np.savez(path, **arrays)
        refused(kind, lambda: data.load_table(path), str(path), path=str(path), **fields)
    bad = x.copy()
    bad[17, 2] = np.nan
    np.savez(path, X=bad, y=y)
    refused(SerializationError, lambda: data.load_table(path), "not finite", row=17, column=2, array="X")
    np.savez(path, X=x, y=y)
    whole = path.read_bytes()
    for content in (b"", b"PK\3\4", whole[: len(whole) // 2], b"\x93NUMPY" + b"\xff" * 40):
        path.write_bytes(content)
        refused(SerializationError, lambda: data.load_table(path), path=str(path))


def test_scaling_is_the_training_rows(tmp_path, rng):
    x = np.c_[rng.normal(100, 3, 80), np.full(80, 4.0), rng.exponential(1, 80)]
    path = tmp_path / "t.npz"
    np.savez(path, X_train=x[:60], y_train=np.arange(60) % 2, X_test=x[60:], y_test=np.arange(20) % 2)
    table = data.load_table(path)
    expected = np.clip((x[60:] - x[:60].mean(axis=0))[:, [0, 2]] / (2 * x[:60].std(axis=0)[[0, 2]]), -1, 1)
    np.testing.assert_allclose(table.X_test[:, [0, 2]], expected, rtol=1e-12)
    assert not table.X_test[:, 1].any()
    np.testing.assert_array_equal(table.scaling(x[60:]), table.X_test)
    largest = data.load_table(path, scale="largest")
    np.testing.assert_allclose(largest.X_train, x[:60] / np.abs(x[:60]).max(), rtol=1e-15)


def test_breast_cancer_is_the_default(monkeypatch):
    needs("demo", "sklearn")
    table = data.load_table(seed=3)
    assert table.features == 30 and len(table.X_train) + len(table.X_test) == 569
    assert (np.concatenate([table.y_train, table.y_test]) == 1).sum() == 212  # malignant
    assert table.classes == ("benign", "malignant") and np.abs(table.X_train).max() == 1
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    refused(UnsupportedError, data.load_table, "scikit-learn")


def test_values(tmp_path, rng):
    np.testing.assert_array_equal(data.load_values(count=10, seed=5), data.load_values(count=10, seed=5))
    assert len(data.load_values()) == 64
    assert not np.array_equal(data.load_values(seed=5), data.load_values(seed=6))
    values = rng.normal(size=20)
    np.save(tmp_path / "v.npy", values)
    np.savez(tmp_path / "v.npz", values)
    np.savez(tmp_path / "w.npz", other=values[:2], values=values)
    (tmp_path / "v.csv").write_text("\n".join(map(repr, values.tolist())))
    (tmp_path / "w.csv").write_text("a,b\n" + "\n".join(f"0,{v!r}" for v in values.tolist()))
    for name, column in [("v.npy", None), ("v.npz", None), ("w.npz", None), ("v.csv", None), ("w.csv", "b")]:
        np.testing.assert_array_equal(data.load_values(tmp_path / name, column=column), values)
    np.testing.assert_array_equal(data.load_values(tmp_path / "v.npy", 7), values[:7])
    refused(ParameterError, lambda: data.load_values(tmp_path / "v.npy", 21), values=20, count=21)
    refused(ParameterError, lambda: data.load_values(count=0), count=0)
    refused(ParameterError, lambda: data.load_values(tmp_path / "w.csv"), columns=2)
    np.savez(tmp_path / "x.npz", a=values, b=values)
    refused(ParameterError, lambda: data.load_values(tmp_path / "x.npz"), "a, b")
    values[3] = np.inf
    np.save(tmp_path / "v.npy", values)
    refused(SerializationError, lambda: data.load_values(tmp_path / "v.npy"), row=3)
    (tmp_path / "v.csv").write_text("1\ntwo\n")
    refused(SerializationError, lambda: data.load_values(tmp_path / "v.csv"), row=2, value="two")
    np.save(tmp_path / "v.npy", values.reshape(4, 5))
    refused(SerializationError, lambda: data.load_values(tmp_path / "v.npy"), shape=[4, 5])


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e8 + 0.1, 1e300])
def test_a_constant_column_becomes_nothing(tmp_path, value):
    rows = np.random.default_rng(0).random((97, 2))
    rows[:, 1] = value  # of which the mean is rounded
    np.savez(tmp_path / "t.npz", X=rows, y=np.arange(97) % 2)
    table = data.load_table(tmp_path / "t.npz")
    assert not table.X_train[:, 1].any() and not table.X_test[:, 1].any()


def test_columns_too_large_to_be_standardised_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,big,label\n" + "".join(f"{i},{(-1) ** i}e308,{i % 2}\n" for i in range(20)))
    refused(ParameterError, lambda: data.load_table(path), "too large", column="big")


def test_a_label_that_two_columns_have_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label,label\n" + "".join(f"{i},{i % 2},{i % 2}\n" for i in range(20)))
    refused(ParameterError, lambda: data.load_table(path, "label"), "2 columns", columns=2)
    assert data.load_table(path, 2).features == 2


@pytest.mark.parametrize("label", ["²", "--1", "1" * 5000])
def test_labels_that_are_nearly_numbers(tmp_path, label):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n" + "".join(f"{i},{i % 2}\n" for i in range(20)))
    refused(ParameterError, lambda: data.load_table(path, label), "no column is named")
    refused(ParameterError, lambda: data.load_values(path, column=label), "no column is named")


def test_cells_that_only_python_reads_as_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n1,0\n1_0,1\n")
    refused(SerializationError, lambda: data.load_table(path), "'1_0' is no number", row=3)
    path.write_text("a,label\n1,0\n2,NAN\n")
    refused(SerializationError, lambda: data.load_table(path), "no label", row=3)


@pytest.mark.parametrize("name", ["a\0b.csv", "a" * 5000 + ".csv", "a\0b.npz"])
def test_names_that_no_file_has(name):
    with pytest.raises(CrenelError):
        data.load_table(name)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_members_of_every_compression(tmp_path, method):
    path, content = tmp_path / "v.npz", io.BytesIO()
    np.save(content, np.random.default_rng(1).random(200))
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("values.npy", content.getvalue())
    whole = path.read_bytes()
    np.testing.assert_array_equal(data.load_values(path), np.random.default_rng(1).random(200))
    for place in range(50, len(whole) - 100, 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        refused(SerializationError, lambda: data.load_values(path))


def test_members_that_are_no_arrays_or_locked(tmp_path):
    path = tmp_path / "v.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("values", b"hello")
    refused(SerializationError, lambda: data.load_values(path), "values is no array", array="values")
    np.savez(path, values=np.arange(3.0))
    locked = bytearray(path.read_bytes())
    locked[6] |= 1
    locked[locked.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(locked)
    refused(SerializationError, lambda: data.load_values(path))


def test_seeds_and_counts_out_of_range(tmp_path):
    refused(ParameterError, lambda: data.load_values(None, 3, -1), "seed", seed=-1)
    refused(ParameterError, lambda: data.load_values(None, 10**14), "count", count=10**14)
