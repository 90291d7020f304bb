"""crenel workload keras: a network of a Keras file on CIFAR-10's images, end to end."""

import numpy as np
from needed import needs

needs("test", "h5py")

from nn_world import rng, weights  # noqa: E402, F401, F811
from test_nn_keras import written  # noqa: E402

from crenel.workloads import records  # noqa: E402
from crenel.workloads.networks import cifar  # noqa: E402


def network(rng, outputs=10):  # noqa: F811
    """Two planes of 8 x 8, their maxima, and a dense layer."""
    kernel, w = weights(rng, 4, 4, 3, 2) / 8, weights(rng, 32, outputs)
    return written([
        ("Conv2D", {"name": "conv", "strides": [4, 4], "batch_input_shape": [None, 32, 32, 3]},
         {"kernel": kernel, "bias": weights(rng, 2)}),
        ("MaxPooling2D", {"name": "pool", "pool_size": [2, 2], "strides": [2, 2]}, {}),
        ("Flatten", {"name": "flat"}, {}),
        ("Dense", {"name": "dense", "activation": "relu"}, {"kernel": w, "bias": weights(rng, outputs)}),
    ])  # fmt: skip


def images(rng, path, count):  # noqa: F811
    """A file of CIFAR-10's binary version."""
    rows = rng.integers(0, 256, (count, cifar.RECORD), dtype=np.uint8)
    rows[:, 0] %= cifar.CLASSES
    path.write_bytes(rows.tobytes())


def test_a_file_of_keras_end_to_end(invoke, rng, tmp_path):  # noqa: F811
    """Whole, and with less memory from the program that was compiled: both agree with the clear."""
    (tmp_path / "net.h5").write_bytes(network(rng))
    images(rng, tmp_path / cifar.TEST, 3)
    images(rng, tmp_path / cifar.TRAINING, 40)
    common = [
        "keras", "--file", str(tmp_path / "net.h5"), "--data", str(tmp_path), "--replace", "MaxPool=relu",
        "--divide", "255", "--params", "toy-boot35", "--device", "cpu", "--images", "2", "--degree", "7",
    ]  # fmt: skip
    saved, files = tmp_path / "net.crn", [tmp_path / name for name in ("whole.json", "lean.json")]
    code, out, err = invoke(*common, "--save", str(saved), "--json", str(files[0]))
    assert code == 0, out + err
    code, out, err = invoke(*common, "--lean", "--program", str(saved), "--json", str(files[1]))
    assert code == 0 and "MiB at once, staged" in out, out + err
    (whole,), (lean,) = (records.read(file)[0] for file in files)
    assert whole.network == "keras" and whole.weights == "net.h5" and whole.steps == 2
    assert (whole.program, whole.expected) == (lean.program, lean.expected)
    assert whole.correct and lean.correct and whole.activation == "relu 7 x 3"
    assert whole.memory.library_peak > lean.memory.library_peak


def test_what_a_file_of_keras_needs(invoke, rng, tmp_path):  # noqa: F811
    code, _, err = invoke("keras", "--device", "cpu")
    assert code == 2 and all(f in err for f in ("--file", "--data", "--calibration", "test_batch.bin"))
    images(rng, tmp_path / cifar.TEST, 1)
    images(rng, tmp_path / cifar.TRAINING, 10)
    file = tmp_path / "net.h5"
    common = ["keras", "--file", str(file), "--data", str(tmp_path), "--device", "cpu", "--images", "1"]
    for outputs, more, says in [
        (10, [], "pool (MaxPooling2D"),
        (10, ["--replace", "MaxPool"], "expected as in MaxPool=relu"),
        (10, ["--replace", "MaxPool=min"], "'MaxPool': 'relu'"),
        (10, ["--replace", "MaxPool=relu", "--divide", "0"], "--divide 0"),
        (10, ["--replace", "MaxPool=relu", "--divide", "nan"], "--divide nan"),
        (7, ["--replace", "MaxPool=relu"], "makes [7] of an image, expected 10"),
    ]:
        file.write_bytes(network(rng, outputs))
        code, _, err = invoke(*common, *more)
        assert code == 2 and says in err, err
