"""Networks in ONNX files.

A file is data from outside: what it declares is checked before memory is taken for it, and weights beside it
are read only from its own folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError, SerializationError, UnsupportedError
from crenel.nn.archive import read
from crenel.nn.importers.imported import (
    Call,
    Imported,
    Ref,
    checked,
    checked_shape,
    needs,
)
from crenel.nn.importers.names import Places, printable
from crenel.nn.importers.onnx_operators import OPERATORS
from crenel.nn.importers.onnx_shapes import REAL_TYPES, numbers
from crenel.nn.importers.replacements import checked_replacements
from crenel.nn.ops import Shape
from crenel.workloads.files import opened

if TYPE_CHECKING:
    import onnx

MOST_WEIGHTS = 1 << 30


def from_onnx(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    shape: Shape | None = None,
    *,
    replace: Mapping[str, str] | None = None,
) -> Imported:
    """A trained network in ONNX as a module of crenel.nn.

    Parameters
    ----------
    model : a path, the bytes of a file, or an `onnx.ModelProto`; weights in files of their own are read where
        a path is given, and only from its folder
    shape : of one sample, (channels, height, width), needed where the file does not say it; the first axis of
        the file's input is that of the samples
    replace : as of `from_torch`

    Places, as in ``degree={"Relu_4": 15}``, are the names of the file's nodes. Raises UnsupportedError for
    operators that cannot be imported, all of them with their places (``fields["operators"]``), for networks
    of several inputs or outputs, and without the onnx package; SerializationError for files that are damaged;
    ParameterError for weights and shapes that do not fit.
    """
    try:
        import onnx
    except ImportError:
        needs("onnx", "onnx")
    folder = None
    if isinstance(model, (str, os.PathLike)):
        folder = Path(model).parent
        model = read(Path(model))
    if isinstance(model, (bytes, bytearray, memoryview)):
        proto = onnx.ModelProto()
        try:
            proto.ParseFromString(bytes(model))
        except Exception as error:  # DecodeError, whose class is protobuf's
            raise SerializationError(f"no ONNX model: {printable(error)}") from None
    elif isinstance(model, onnx.ModelProto):
        proto = model
    else:
        kind = type(model).__qualname__
        raise ParameterError(f"{kind}, expected a path, bytes or an onnx.ModelProto", {"type": kind})
    return imported(proto, folder, shape, checked_replacements(replace))


def imported(proto: Any, folder: Path | None, shape: Shape | None, replace: Mapping[str, str]) -> Imported:
    """The module of a model; folder: where weights beside it are."""
    graph = proto.graph
    if not proto.opset_import:  # every model has one; in a file that is cut it may be what is gone
        raise SerializationError("a model of no opset, expected opset_import", {"opset_import": 0})
    declared = sum(abs(math.prod(tensor.dims)) for tensor in graph.initializer)
    if declared > MOST_WEIGHTS:  # some may be one part of a file beside the model
        raise SerializationError(
            f"{declared} weights, expected at most {MOST_WEIGHTS}", {"weights": declared}
        )
    constants = {tensor.name: _weights(tensor, folder) for tensor in graph.initializer}
    if graph.sparse_initializer:
        raise UnsupportedError("sparse weights", {"count": len(graph.sparse_initializer)})
    inputs = [value for value in graph.input if value.name not in constants]
    outputs = [value.name for value in graph.output]
    if len(inputs) != 1 or len(outputs) != 1:
        names = "; ".join(
            ", ".join(map(printable, each)) for each in ([value.name for value in inputs], outputs)
        )
        raise UnsupportedError(
            f"a network of {len(inputs)} inputs and {len(outputs)} outputs ({names}), expected one of each",
            {"inputs": len(inputs), "outputs": len(outputs)},
        )
    calls = tuple(_calls(graph, constants, inputs[0].name, folder))
    if outputs[0] not in {call.result for call in calls} | {inputs[0].name}:
        raise SerializationError(
            f"nothing makes the output {printable(outputs[0])}", {"output": printable(outputs[0])}
        )
    first = next(iter(inputs[0].type.tensor_type.shape.dim), None)
    samples = first.dim_value if first is not None and first.dim_value > 0 else None
    found = Imported(calls, inputs[0].name, outputs[0], replace, samples)
    return checked(found, _shape(inputs[0], shape))


def _calls(
    graph: Any, constants: Mapping[str, NDArray[Any]], source: str, folder: Path | None
) -> Iterator[Call]:
    """Nodes as calls. Raises SerializationError where one reads what nothing before it makes, and where one
    makes what is there."""
    places = Places()
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    made: dict[str, object] = dict(constants)
    made[source] = Ref(source)
    for number, node in enumerate(graph.node):
        place = places.of(node.name or next(iter(node.output), "") or f"{node.op_type}_{number}")
        for name in node.input:
            if name and name not in made:
                raise SerializationError(
                    f"{place} reads {printable(name)}, which nothing before it makes", {"node": place}
                )
        results = [name for name in node.output if name]
        for name in results:
            if name in made:
                raise SerializationError(
                    f"{place} makes {printable(name)}, which is there already", {"node": place}
                )
        operands = tuple(made[name] if name else None for name in node.input)
        options = {attribute.name: _attribute(attribute, folder) for attribute in node.attribute}
        operator = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        make, reason = OPERATORS.get(operator), ""
        if operator == "BatchNormalization" and len(results) > 1:  # how versions below 14 say it
            make, reason = None, "training_mode"
        for name in results[1:]:  # a mask or statistics, which mostly nobody reads
            made[name] = Ref(name)
            if name in read:
                yield Call(name, f"a further output of {operator}", None, (), {}, places.of(name))
        if results:
            made[results[0]] = Ref(results[0])
            yield Call(results[0], operator, make, operands, options, place, reason)


def _attribute(attribute: Any, folder: Path | None) -> object:
    """Numbers, text, lists of them, and arrays."""
    import onnx

    if attribute.type == onnx.AttributeProto.TENSOR:
        return _weights(attribute.t, folder)
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _weights(tensor: Any, folder: Path | None) -> NDArray[Any]:
    """A tensor's numbers. Raises SerializationError where there are not as many as it declares."""
    import onnx

    name = printable(tensor.name) or "a constant"
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _beside(tensor, name, folder)
    try:
        found = np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception as error:  # TypeError, ValueError and, of numbers that are missing, others
        raise SerializationError(f"weights {name}: {printable(error)}", {"weights": name}) from None
    if found.shape != tuple(tensor.dims):
        raise SerializationError(
            f"weights {name} of shape {list(tensor.dims)} with {found.size} numbers", {"weights": name}
        )
    return numbers(found)


def _beside(tensor: Any, name: str, folder: Path | None) -> NDArray[Any]:
    """Weights in a file beside the model's."""
    import onnx

    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ParameterError(
            f"weights {name} are in {printable(location)!r}: give the model's path", {"weights": name}
        )
    path, home = (folder / location).resolve(), folder.resolve()
    if not location or Path(location).is_absolute() or home not in path.parents:
        raise SerializationError(
            f"weights {name} in {printable(location)!r}, expected a file below the model's folder",
            {"weights": name, "location": printable(location)},
        )
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    expected = kind.itemsize * math.prod(tensor.dims)
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            start, length = int(entries.get("offset", 0)), int(entries.get("length", expected))
        except ValueError:
            start, length = -1, -1
        if min((0, *tensor.dims)) < 0 or start < 0 or length != expected or start + length > size:
            raise SerializationError(
                f"weights {name}: {expected} bytes, said to be {length} from {start} on in a file of {size}",
                {"weights": name, "bytes": size},
            )
        file.seek(start)
        data = file.read(length)
    return numbers(np.frombuffer(data, kind)).reshape(tuple(tensor.dims))


def _shape(value: Any, given: Sequence[int] | None) -> Shape:
    """Of one sample: as the file says, or as it was given where the file leaves it open."""
    name = printable(value.name)
    kind = value.type.tensor_type
    if value.type.WhichOneof("value") != "tensor_type" or kind.elem_type not in REAL_TYPES:
        raise UnsupportedError(f"input {name}, expected a tensor of real numbers", {"input": name})
    shape = None if given is None else checked_shape(given)
    if not kind.HasField("shape"):
        declared: list[int | None] | None = None
    else:
        declared = [d.dim_value if d.WhichOneof("value") == "dim_value" else None for d in kind.shape.dim][1:]
    if shape is None and declared and None not in declared:
        return checked_shape(tuple(declared))
    text = "nothing" if declared is None else ", ".join("?" if n is None else str(n) for n in declared)
    if shape is None:
        raise ParameterError(
            f"input {name}: the file says {text or 'nothing'} of a sample's shape, give shape=",
            {"input": name},
        )
    fits = declared is None or len(declared) == len(shape)
    if not fits or any(n not in (None, m) for n, m in zip(declared or (), shape, strict=False)):
        raise ParameterError(
            f"samples of shape {shape}, the file's input {name} says ({text})",
            {"input": name, "shape": list(shape)},
        )
    return shape
