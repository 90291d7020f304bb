"""Networks in Keras' HDF5 files: sequential ones, as `model.save("net.h5")` writes them.

A file is data from outside: nothing in it is executed, links to other files are not followed, and what it
declares is checked before memory is taken for it.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crenel.errors import CrenelError, ParameterError, SerializationError, UnsupportedError
from crenel.nn.archive import read
from crenel.nn.importers.imported import Call, Imported, Ref, checked, needs
from crenel.nn.importers.keras_layers import ACTIVATIONS, LAYERS, Layer, Order, make_of
from crenel.nn.importers.names import Places, printable
from crenel.nn.importers.replacements import checked_replacements
from crenel.nn.ops import Reals, Shape

MOST_WEIGHTS = 1 << 28
MOST_LINKS = 1 << 16
MOST_LAYERS = 4096


def from_keras(
    model: str | os.PathLike[str] | bytes, *, replace: Mapping[str, str] | None = None
) -> Imported:
    """A trained sequential network of Keras as a module of crenel.nn, from its HDF5 file; Keras and
    TensorFlow are not needed.

    Parameters
    ----------
    model : a path, or the bytes of a file, of ``model.save("net.h5")`` by Keras 2 or 3
    replace : as of `from_torch`

    Samples are (channels, height, width) here, where Keras has channels last. Places, as in
    ``degree={"conv2d_1_relu": 15}``, are the names of layers, with an activation behind its layer's. Raises
    UnsupportedError for layers that cannot be imported, all of them with their places
    (``fields["operators"]``), for networks that are not sequential and without the h5py package;
    SerializationError for files that are damaged; ParameterError for weights and shapes that do not fit.
    Warns with ReplacementWarning.
    """
    try:
        import h5py
    except ImportError:
        needs("h5py", "keras")
    data = read(Path(model)) if isinstance(model, (str, os.PathLike)) else model
    if not isinstance(data, (bytes, bytearray, memoryview)):
        kind = type(model).__qualname__
        raise ParameterError(f"{kind}, expected a path or bytes", {"type": kind})
    asked = checked_replacements(replace)
    try:
        with h5py.File(io.BytesIO(bytes(data)), "r") as file:
            expect_bounded(file)
            layers = _layers(file)
            weights = {name: _weights(file, name) for name, *_ in layers}
            major = _major(file.attrs.get("keras_version", "2"))
    except CrenelError:
        raise
    except (OSError, KeyError, RuntimeError, RecursionError, TypeError, ValueError) as error:
        raise SerializationError(f"no HDF5 file of a Keras network: {printable(error)}") from None
    return _imported(layers, weights, major, asked)


def _imported(
    layers: list[tuple[str, str, dict[str, Any]]],
    weights: Mapping[str, Mapping[str, Reals]],
    major: int,
    replace: Mapping[str, str],
) -> Imported:
    shape = _shape(layers)
    order, places = Order(), Places()
    calls: list[Call] = []
    value = "input"
    for name, kind, settings in layers:
        if kind == "InputLayer":
            continue
        layer = Layer(kind, settings, weights[name], order, major)
        for call in _calls(places.of(name), layer, value):
            calls.append(call)
            value = call.result
    kinds = [kind for _, kind, _ in layers]
    if "Flatten" in kinds and "Dense" not in kinds[kinds.index("Flatten") :]:
        raise UnsupportedError(
            "flattened planes as the network's result: their order would be another than Keras'",
            {"operator": "Flatten"},
        )
    return checked(Imported(tuple(calls), "input", value, replace), shape)


def _calls(place: str, layer: Layer, value: str) -> Iterator[Call]:
    """Of a layer: itself, and its activation."""
    kind = layer.kind
    if kind == "Activation":
        yield _activation(place, layer, value)
        return
    rule, why = LAYERS.get(kind), ""
    if layer.settings.get("data_format", "channels_last") != "channels_last":
        rule, why = None, "data_format, expected channels_last"
    if kind == "MaxPooling2D" and _one(layer.settings.get("pool_size")):
        kind = "Subsample"  # the largest of one is itself: nothing to replace
    make = None if rule is None else make_of(rule, layer)
    yield Call(place, kind, make, (Ref(value),), {}, place, why)
    wanted = layer.settings.get("activation", "linear")
    if kind != "Softmax" and wanted not in (None, "linear"):
        yield _activation(f"{place}_{_named(wanted)}", layer, place)


def _activation(place: str, layer: Layer, value: str) -> Call:
    name = _named(layer.settings.get("activation", "linear"))
    operator = "Softmax" if name == "softmax" else name
    rule = LAYERS["Dropout"] if name == "linear" else ACTIVATIONS.get(name)
    make = None if rule is None else make_of(rule, layer)
    return Call(place, operator, make, (Ref(value),), {}, place)


def _named(activation: object) -> str:
    """A file may have a name, or the settings of a class."""
    if isinstance(activation, dict):
        activation = activation.get("class_name", activation.get("config", "unnamed"))
    return printable(activation, 40)


def _one(size: object) -> bool:
    return size in (1, [1, 1], (1, 1))


def _layers(file: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, class and settings of each layer. Raises UnsupportedError for what is not sequential."""
    text = file.attrs.get("model_config")
    if text is None:
        raise SerializationError(
            "weights without a network: expected the file of model.save, not of save_weights",
            {"missing": "model_config"},
        )
    found = json.loads(text)
    if found["class_name"] != "Sequential":
        kind = printable(found["class_name"], 40)
        raise UnsupportedError(
            f"a {kind} network, expected a Sequential one; export it to ONNX", {"kind": kind}
        )
    config = found["config"]
    layers = config["layers"] if isinstance(config, dict) else config
    if not isinstance(layers, list) or len(layers) > MOST_LAYERS:
        raise SerializationError(f"expected up to {MOST_LAYERS} layers")
    made = [
        (str(each["config"]["name"]), printable(each["class_name"], 40), dict(each["config"]))
        for each in layers
    ]
    names = [name for name, *_ in made]
    if len(set(names)) != len(names):
        raise SerializationError("two layers of one name", {"layers": len(names)})
    return made


def _shape(layers: list[tuple[str, str, dict[str, Any]]]) -> Shape | None:
    """Of one sample, (channels, height, width) for planes; None: the file does not say it."""
    settings = layers[0][2] if layers else {}
    given = settings.get("batch_input_shape") or settings.get("batch_shape")
    if not isinstance(given, list) or len(given) < 2 or not all(type(n) is int for n in given[1:]):
        return None
    return (given[-1], *given[1:-1])


def _weights(file: Any, layer: str) -> dict[str, Reals]:
    """Arrays of a layer by their names, as 'kernel'. Raises SerializationError."""
    group = file.get("model_weights", file)
    if not layer or layer.startswith(".") or "/" in layer or layer not in group:
        return {}
    found: dict[str, Reals] = {}
    for name, dataset in _datasets(group, layer, 0):
        key = name.split(":")[0]
        if key in found:
            raise SerializationError(f"{printable(layer)}: two weights {printable(key)}")
        found[key] = dataset
    return found


def expect_bounded(file: Any) -> None:
    """Walks over all links before any data is read: SerializationError for more links or weights in all than
    a network has, and for a group that stands in two places."""
    import h5py

    links, weights, ahead = 0, 0, [file]
    seen: set[Any] = set()
    while ahead:
        group = ahead.pop()
        if group in seen:  # equal where it is the same object of the file
            raise SerializationError("a group that stands in two places")
        seen.add(group)
        for name in map(str, group):
            links += 1
            if links > MOST_LINKS:
                raise SerializationError(f"more than {MOST_LINKS} entries", {"links": MOST_LINKS})
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue  # refused where a layer asks for it
            entry = group[name]
            if isinstance(entry, h5py.Group):
                ahead.append(entry)
            elif isinstance(entry, h5py.Dataset) and entry.size is not None:
                weights += entry.size
            if weights > MOST_WEIGHTS:
                raise SerializationError(f"more than {MOST_WEIGHTS} weights in all", {"weights": weights})


def _datasets(group: Any, name: str, depth: int) -> Iterator[tuple[str, Reals]]:
    """All arrays below a name. Links that lead out of the file, and data in files beside it, are refused."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink) or depth > 8:
        raise SerializationError(
            f"a link of {printable(name)} that is followed nowhere", {"name": printable(name)}
        )
    entry = group[name]
    if isinstance(entry, h5py.Group):
        for inner in entry:
            yield from _datasets(entry, str(inner), depth + 1)
        return
    if not isinstance(entry, h5py.Dataset) or entry.external or entry.is_virtual or entry.dtype.kind != "f":
        raise SerializationError(
            f"{printable(name)}: expected an array of floating-point numbers of the file"
        )
    if entry.size is None or entry.size > MOST_WEIGHTS:
        raise SerializationError(f"{printable(name)}: {entry.size} weights, expected at most {MOST_WEIGHTS}")
    yield name, np.asarray(entry[()], dtype=np.float64)


def _major(version: object) -> int:
    text = version.decode() if isinstance(version, bytes) else str(version)
    first = text.split(".")[0]
    return int(first) if first.isdigit() else 2
