"""paraphrase-MiniLM-L3-v2: sentences to vectors whose cosine says how alike they are.

Three layers of twelve heads, 384 features, 1536 inside, and the mean of the tokens. Its weights are those of
an ONNX file, which the user names; reading it needs the package `onnx`. Embeddings are looked up by the
client, which knows its tokens: what is encrypted are their vectors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crenel import nn
from crenel.errors import FileError, ParameterError, SerializationError, UnsupportedError
from crenel.nn.ops import Reals

LAYERS, HEADS, FEATURES = 3, 12, 384
EPSILON = 1e-12
OPTIONS = {"degree": {"0.2.branch.1": 127, "1.2.branch.1": 63, "2.2.branch.1": 63}, "margin": 1.5}
"""Of `nn.compile`: inputs of the first GELU reach 22, and a lower degree there is most of the error."""
PREFIX = "model.0.auto_model."


@dataclass(frozen=True, eq=False)
class MiniLM:
    """Weights by their names behind `PREFIX`; linear layers as (outputs, inputs)."""

    weights: Mapping[str, Reals]

    def embedded(self, tokens: Sequence[int], length: int = 32) -> Reals:
        """(length, 384): what the client encrypts, the sum of a token's, its place's and its kind's vectors,
        normalised. Behind the tokens stands padding, token 0.

        Raises ParameterError for tokens out of range and for more of them than `length`.
        """
        words = self.weights["embeddings.word_embeddings.weight"]
        ids = np.asarray(tokens, dtype=np.int64)
        if ids.ndim != 1 or not 1 <= len(ids) <= length or ids.min() < 0 or ids.max() >= len(words):
            raise ParameterError(
                f"{ids.size} tokens, expected 1 to {length} numbers from 0 to {len(words) - 1}",
                {"tokens": int(ids.size), "length": length},
            )
        padded = np.pad(ids, (0, length - len(ids)))
        places = self.weights["embeddings.position_embeddings.weight"][:length]
        kinds = self.weights["embeddings.token_type_embeddings.weight"][0]
        norm = nn.LayerNorm(
            self.weights["embeddings.LayerNorm.weight"], self.weights["embeddings.LayerNorm.bias"], EPSILON
        )
        found: Reals = norm((words[padded] + places + kinds)[None])[0]
        return found

    def network(self, count: int, length: int = 32) -> nn.Sequential:
        """Of embedded sentences of `count` tokens, padded to `length`: (length, 384) to (384,)."""
        mask: ArrayLike = np.arange(length) < count
        mask = np.asarray(mask, dtype=np.float64)
        head = (nn.TokenMean(mask),)
        return nn.bert(self.weights, LAYERS, HEADS, mask=mask, epsilon=EPSILON, head=head)


def read(path: str | os.PathLike[str]) -> MiniLM:
    """From an ONNX file. Raises UnsupportedError without `onnx`, FileError for a file that is not there, and
    SerializationError for one that is not this network's."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError:
        raise UnsupportedError("reading an ONNX file needs the package onnx: pip install onnx") from None
    if not os.path.isfile(path):
        raise FileError(f"no file {os.fspath(path)}", {"path": os.fspath(path)})
    try:
        graph = onnx.load(os.fspath(path)).graph
        arrays = {a.name: np.asarray(numpy_helper.to_array(a), dtype=np.float64) for a in graph.initializer}
    except Exception as error:  # of protobuf, of several kinds
        raise SerializationError(f"no ONNX file: {type(error).__name__}") from None
    weights = {name.removeprefix(PREFIX): array for name, array in arrays.items()}
    made = {node.output[0]: node for node in graph.node}
    for node in graph.node:  # a linear layer is a product with a matrix, then a sum with its named bias
        names = [name for name in node.input if name in arrays and name.endswith(".bias")]
        if node.op_type != "Add" or not names:
            continue
        for operand in node.input:
            before = made.get(operand)
            if before is not None and before.op_type == "MatMul" and before.input[1] in arrays:
                weights[names[0].removeprefix(PREFIX).replace(".bias", ".weight")] = arrays[before.input[1]].T
    found = MiniLM(weights)
    try:
        found.network(1)
        found.embedded([0], 1)
    except (KeyError, ParameterError) as error:
        raise SerializationError(f"not the weights of paraphrase-MiniLM-L3-v2: {error}") from None
    return found
