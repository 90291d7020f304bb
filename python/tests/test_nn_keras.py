"""Keras' HDF5 files: networks as NumPy computes them, channels last, and files that are not what they say."""

import io
import json

import numpy as np
import pytest
from needed import needs
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401
from test_nn_program import ran

from crenel import nn
from crenel.errors import ParameterError, SerializationError, UnsupportedError

h5py = needs("test", "h5py")


def written(layers, version="2.9.0", kind="Sequential", **attributes):
    """The bytes of a file of layers: (class, settings, weights by name)."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        config = [{"class_name": of, "config": settings} for of, settings, _ in layers]
        file.attrs["model_config"] = json.dumps({"class_name": kind, "config": {"layers": config}})
        file.attrs["keras_version"] = version
        for name, value in attributes.items():
            file.attrs[name] = value
        for _, settings, arrays in layers:
            name = settings["name"]
            for key, value in arrays.items():
                file.create_dataset(f"model_weights/{name}/{name}/{key}:0", data=np.float32(value))
    return content.getvalue()


def convolved(x, kernel, bias, step=1):
    """Channels last, padding 'valid'."""
    seen = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], axis=(1, 2))[:, ::step, ::step]
    return np.einsum("nhwcab,abco->nhwo", seen, kernel) + bias


def pooled(x, reduce):
    count, rows, columns, channels = x.shape
    cut = x[:, : rows // 2 * 2, : columns // 2 * 2]
    return reduce(cut.reshape(count, rows // 2, 2, columns // 2, 2, channels), axis=(2, 4))


def image_network(rng):  # noqa: F811
    """Layers of a file and, with channels last and for a way to pool, what they compute."""
    f = {
        "k": weights(rng, 3, 3, 2, 4), "b": weights(rng, 4), "gamma": rng.uniform(0.5, 2, 4),
        "beta": weights(rng, 4), "moving_mean": weights(rng, 4), "moving_variance": rng.uniform(0.5, 2, 4),
        "dk": weights(rng, 2, 2, 4, 2), "db": weights(rng, 8), "w": weights(rng, 32, 5),
        "wb": weights(rng, 5),
    }  # fmt: skip
    f = {name: np.float32(value).astype(np.float64) for name, value in f.items()}
    layers = [
        ("InputLayer", {"name": "in", "batch_input_shape": [None, 9, 9, 2]}, {}),
        ("Conv2D", {"name": "conv", "activation": "relu", "strides": [1, 1]},
         {"kernel": f["k"], "bias": f["b"]}),
        ("BatchNormalization", {"name": "norm", "axis": [3], "epsilon": 1e-3},
         {name: f[name] for name in ("gamma", "beta", "moving_mean", "moving_variance")}),
        ("MaxPooling2D", {"name": "pool", "pool_size": [2, 2], "strides": [2, 2], "padding": "valid"}, {}),
        ("DepthwiseConv2D", {"name": "deep", "activation": "linear", "depth_multiplier": 2},
         {"depthwise_kernel": f["dk"][:, :, :, :2], "bias": f["db"]}),
        ("MaxPooling2D", {"name": "one", "pool_size": [1, 1], "strides": [1, 1]}, {}),
        ("Flatten", {"name": "flat"}, {}),
        ("Dropout", {"name": "drop", "rate": 0.2}, {}),
        ("Dense", {"name": "dense", "activation": "linear"}, {"kernel": f["w"], "bias": f["wb"]}),
    ]  # fmt: skip

    def computed(images, reduce):
        x = np.maximum(convolved(images.transpose(0, 2, 3, 1), f["k"], f["b"]), 0)
        x = (x - f["moving_mean"]) / np.sqrt(f["moving_variance"] + 1e-3) * f["gamma"] + f["beta"]
        x = pooled(x, reduce)
        parts = [convolved(x[..., c : c + 1], f["dk"][:, :, c : c + 1], 0.0) for c in range(4)]
        x = np.concatenate(parts, axis=-1) + f["db"]
        return x.reshape(len(x), -1) @ f["w"] + f["wb"]

    return layers, computed


def test_a_network_of_every_order_of_axes(rng):  # noqa: F811
    """Kernels, flattened planes, and pools replaced by means or, exactly, by ReLU."""
    layers, computed = image_network(rng)
    data, x = written(layers), rng.standard_normal((5, 2, 9, 9))
    with pytest.raises(UnsupportedError, match=r"pool \(MaxPooling2D: .*'avg'} or .*'relu'}") as error:
        nn.from_keras(data)
    assert "one" not in error.value.fields["operators"]
    with pytest.warns(nn.ReplacementWarning, match=r"replaced: pool \(MaxPooling2D\)"):
        means = nn.from_keras(data, replace={"MaxPool": "avg"})
    np.testing.assert_allclose(means(x), computed(x, np.mean), atol=1e-9)
    largest = nn.from_keras(data, replace={"MaxPool": "relu"})  # no warning: pytest would make it an error
    np.testing.assert_allclose(largest(x), computed(x, np.max), atol=1e-9)
    with pytest.raises(ParameterError, match="conv: channels of a convolution: 3 in the tensor"):
        largest(rng.standard_normal((2, 3, 9, 9)))


def test_a_file_of_keras_under_encryption(rng, tmp_path):  # noqa: F811
    """Vectors; activations by name are places of their own."""
    w, b, v = np.float32(weights(rng, 6, 5)), np.float32(weights(rng, 5)), np.float32(weights(rng, 5, 2))
    layers = [
        ("Dense", {"name": "first", "activation": "tanh", "batch_input_shape": [None, 6]},
         {"kernel": w, "bias": b}),
        ("Activation", {"name": "again", "activation": "sigmoid"}, {}),
        ("Dense", {"name": "last", "use_bias": False}, {"kernel": v}),
    ]  # fmt: skip
    path = tmp_path / "net.h5"
    path.write_bytes(written(layers, version="3.1.0"))
    model, x = nn.from_keras(path), rng.standard_normal((40, 6))
    wanted = 1 / (1 + np.exp(-np.tanh(x @ w + b))) @ v
    np.testing.assert_allclose(model(x), wanted, atol=1e-9)
    program = quiet_compile(
        model, x, params=toy(), degree={"first_tanh": 15, "again": 7}, device="cpu", batch=2
    )
    found, ratio = ran(program, x[:2], "cpu")
    # The judged samples are among the first: what is the root mean square of 64 numbers is 8 times at most.
    assert ratio < 4.0 and np.abs(found - wanted[:2]).max() < 10.0 * program.expected.approximation


@pytest.mark.parametrize("size", [(2, 2), (3, 2), (4, 5), (1, 3)])
def test_maxima_by_relu_are_maxima(rng, size):  # noqa: F811
    """Windows of any size and stride."""
    stride = tuple(int(n) for n in rng.integers(1, 4, 2))
    pool = {
        "name": "pool",
        "pool_size": list(size),
        "strides": list(stride),
        "batch_input_shape": [None, 7, 8, 2],
    }
    model = nn.from_keras(written([("MaxPooling2D", pool, {})]), replace={"MaxPool": "relu"})
    x = rng.standard_normal((3, 2, 7, 8))
    seen = np.lib.stride_tricks.sliding_window_view(x, size, axis=(2, 3))[:, :, :: stride[0], :: stride[1]]
    np.testing.assert_allclose(model(x), seen.max(axis=(4, 5)), atol=1e-12)


def dense(**more):
    return (
        "Dense",
        {"name": "d", "batch_input_shape": [None, 3], **more},
        {"kernel": np.eye(3), "bias": np.zeros(3)},
    )


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ([dense(), ("LSTM", {"name": "l"}, {}), ("Lambda", {"name": "m"}, {})], r"l \(LSTM\), m \(Lambda\)"),
        ([dense(activation="selu")], r"d_selu \(selu\)"),
        ([dense(activation="hard_sigmoid")], "of Keras 2"),
        ([dense(data_format="channels_first")], "data_format"),
        ([dense(), ("Softmax", {"name": "s"}, {})], "identity"),
        ([dense(activation="softmax")], "identity"),
        ([("Flatten", {"name": "f", "batch_input_shape": [None, 2, 2, 3]}, {})], "order would be another"),
        ([("Dense", {"name": "d", "batch_input_shape": [None, 2, 2, 3]}, {})], "of planes"),
        ([("MaxPooling2D", {"name": "p", "pool_size": 2, "padding": "same",
                            "batch_input_shape": [None, 3, 3, 1]}, {})], "avg"),
    ],
)  # fmt: skip
def test_layers_that_have_no_place_here_are_named(layers, said):
    with pytest.raises(UnsupportedError, match=said):
        nn.from_keras(written(layers))


def forged(change):
    content = io.BytesIO(written([dense()]))
    with h5py.File(content, "r+") as file:
        change(file)
    return content.getvalue()


def _external(file):
    del file["model_weights/d/d/kernel:0"]
    file["model_weights/d/d/kernel:0"] = h5py.ExternalLink("/etc/passwd", "/x")


def _soft(file):
    del file["model_weights/d/d/kernel:0"]
    file["model_weights/d/d/kernel:0"] = h5py.SoftLink("/model_weights/d/d/bias:0")


def _outside(file):
    del file["model_weights/d/d/kernel:0"]
    file["model_weights/d/d"].create_dataset("kernel:0", (3, 3), "f4", external=[("/etc/passwd", 0, 36)])


def _text(file):
    del file["model_weights/d/d/kernel:0"]
    file["model_weights/d/d/kernel:0"] = np.bytes_("weights")


def _nested(file):
    file.attrs["model_config"] = "[" * 20000 + "]" * 20000


def _many_places(file):
    """Seven groups of thirty links to the next: 30^7 paths."""
    group = file["model_weights"].create_group("wide")
    for _ in range(7):
        inner = group.create_group("0")
        for link in range(1, 30):
            group[str(link)] = inner
        group = inner


def _declared(file):
    for number in range(3):  # 2^27 weights each, of which no byte is there
        file["model_weights"].create_dataset(f"more{number}", shape=(1 << 27,), dtype="f4", chunks=(1 << 20,))


@pytest.mark.parametrize("change", [_external, _soft, _outside, _text, _nested, _many_places, _declared])
def test_files_that_lead_elsewhere_are_refused(change):
    with pytest.raises(SerializationError):
        nn.from_keras(forged(change))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", SerializationError),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), SerializationError),
        (written([dense()])[:-700], SerializationError),
        (forged(lambda file: file.attrs.__delitem__("model_config")), SerializationError),
        (forged(lambda file: file.attrs.__setitem__("model_config", "{}")), SerializationError),
        (written([dense(), dense()][:1] + [("Dropout", {"name": "d"}, {})]), SerializationError),
        (written([dense()], kind="Functional"), UnsupportedError),
        (forged(lambda file: file.__delitem__("model_weights/d/d/kernel:0")), ParameterError),
        (3, ParameterError),
    ],
)
def test_what_is_no_network_of_keras_is_refused(data, error):
    with pytest.raises(error):
        nn.from_keras(data)
    with pytest.raises(ParameterError, match="'MaxPool': 'avg', 'MaxPool': 'relu'"):
        nn.from_keras(written([dense()]), replace={"MaxPool": "min"})
