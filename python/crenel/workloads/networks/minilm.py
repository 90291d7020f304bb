"""paraphrase-MiniLM-L3-v2: sentences to vectors whose cosine says how alike they are.

Three layers of twelve heads, 384 features, 1536 inside, and the mean of the tokens. Its weights are those of
an ONNX file, which the user names; reading it needs the package `onnx`. Embeddings are looked up by the
client, which knows its tokens: what is encrypted are their vectors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from crenel import nn
from crenel.errors import ParameterError, SerializationError, UnsupportedError
from crenel.nn.ops import Reals
from crenel.workloads.checked import positive, seed_of
from crenel.workloads.files import opened
from crenel.workloads.networks import tokenize
from crenel.workloads.networks.task import Task

LAYERS, HEADS, FEATURES = 3, 12, 384
EPSILON = 1e-12
CALIBRATION = 32  # sentences of random words
MOST = 128  # parts of a text
# Inputs of the first GELU reach 22, and a lower degree there is most of the error.
DEGREES = {"0.2.branch.1": 127, "1.2.branch.1": 63, "2.2.branch.1": 63}
MARGIN = 1.5
PREFIX = "model.0.auto_model."
FIRST, LAST = 101, 102  # the tokens around a sentence, of BERT's vocabulary


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


def task(
    weights: Path | None,
    data: Path | None,
    samples: int,
    *,
    tokens: int = 16,
    length: int = 32,
    seed: int = 0,
    tokenizer: Path | None = None,
    calibration: Path | None = None,
) -> Task:
    """paraphrase-MiniLM-L3-v2 on sentences of equally many tokens.

    Parameters
    ----------
    weights : its ONNX file
    data : sentences as `sentences` reads them; None: `samples` of `tokens` random words
    tokens, length : of a random sentence with the two around it, and of a sequence with its padding
    tokenizer : by which sentences in words become tokens, as `tokenize.of_file` reads it
    calibration : a text of sentences like those of `data`, a line each, of which `parts` makes some of
        equally many tokens; None: random words, whose attention is less sharp than that of sentences

    Raises ParameterError where no weights are named or a sentence does not fit, for a tokenizer without
    sentences, for a seed below 0 and for samples or a length below 1, and what the readers raise.
    """
    if tokenizer is not None and data is None:
        raise ParameterError("--tokenizer without --data: no sentences in words", {"missing": "--data"})
    seed, samples, length = seed_of(seed), positive("samples", samples), positive("length", length)
    if weights is None:
        raise ParameterError(
            "minilm needs --weights. None come with Crenel: the ONNX file of paraphrase-MiniLM-L3-v2",
            {"missing": "--weights"},
        )
    model, rng = read(weights), np.random.default_rng([seed, 1])
    given = random_sentences(rng, samples, tokens) if data is None else sentences(data, samples, tokenizer)
    count = len(given[0])
    seen = random_sentences(np.random.default_rng(seed), CALIBRATION, count)
    if calibration is not None:
        seen = [*parts(calibration, count, tokenizer), *seen]
    return Task(
        "minilm", model.network(count, length), weights.name,
        f"{count} random words" if data is None else data.name,
        np.stack([model.embedded(words, length) for words in seen]),
        np.stack([model.embedded(words, length) for words in given]), degree=DEGREES, margin=MARGIN,
    )  # fmt: skip


def random_sentences(rng: np.random.Generator, samples: int, tokens: int) -> list[list[int]]:
    """Words of BERT's vocabulary, between the tokens that begin and end a sentence."""
    if tokens < 3:
        raise ParameterError(f"{tokens} tokens, expected 3 or more", {"tokens": tokens})
    words = rng.integers(1000, 30000, (samples, tokens - 2))  # below are names of letters and of specials
    return [[FIRST, *map(int, sentence), LAST] for sentence in words]


def sentences(path: Path, count: int, tokenizer: Path | None = None) -> list[list[int]]:
    """The first of a file: a sentence a line, in words, or, without a tokenizer, its tokens as numbers with
    spaces between.

    Raises FileError, SerializationError naming a line that is none, and ParameterError for fewer lines and
    for sentences of different length: the mask of padding is part of the network. What `tokenize.of_file`
    raises.
    """
    lines = _lines(path)
    if not 1 <= count <= len(lines):
        raise ParameterError(
            f"{count} sentences, expected 1 to {len(lines)}: so many are there", {"count": count}
        )
    found = _tokens(path, lines, tokenizer)[:count]
    lengths = sorted({len(sentence) for sentence in found})
    if len(lengths) > 1:
        first = {n: next(k for k, s in enumerate(found, start=1) if len(s) == n) for n in lengths}
        raise ParameterError(
            f"{path}: sentences of {lengths[0]} tokens, as sentence {first[lengths[0]]}, to {lengths[-1]}, "
            f"as sentence {first[lengths[-1]]}; expected equally many in a run: the mask of padding is part "
            "of the network",
            {"path": str(path), "lengths": lengths},
        )
    return found


def parts(path: Path, tokens: int, tokenizer: Path | None) -> list[list[int]]:
    """A text, read as `sentences` reads it, as sentences of `tokens` tokens, the two around them included:
    up to `MOST`, spread evenly. Sentences that are shorter are joined, and those that are longer lose what is
    before their last token, a full stop, to which much attention goes. Raises ParameterError for a shorter
    text, and as `sentences`."""
    size = max(tokens - 2, 1)
    made: list[list[int]] = []
    words: list[int] = []
    for sentence in _tokens(path, _lines(path), tokenizer):
        inner = sentence[1:-1]
        words += inner
        if len(words) >= size:
            made.append([FIRST, *words[: size - 1], *inner[-1:], LAST])
            words = []
    if not made:
        raise ParameterError(
            f"{path}: {len(words)} tokens between those around sentences, expected {size} or more",
            {"path": str(path), "tokens": len(words)},
        )
    return [made[k] for k in np.linspace(0, len(made) - 1, min(len(made), MOST)).round().astype(int)]


def _lines(path: Path) -> list[str]:
    with opened(path) as stream:
        text = stream.read().decode("utf-8", errors="replace")
    return [line for line in text.split("\n") if line.strip()]


def _tokens(path: Path, lines: list[str], tokenizer: Path | None) -> list[list[int]]:
    if tokenizer is not None:
        return tokenize.of_file(tokenizer)(lines)
    return [_numbers(path, number, line) for number, line in enumerate(lines, start=1)]


def _numbers(path: Path, number: int, line: str) -> list[int]:
    words = line.split()
    if not all(word.isdecimal() and word.isascii() and len(word) < 8 for word in words):
        raise SerializationError(
            f"{path}: sentence {number} has what is no token's number; sentences in words need --tokenizer",
            {"path": str(path), "line": number},
        )
    return [int(word) for word in words]


def read(path: str | os.PathLike[str]) -> MiniLM:
    """From an ONNX file. Raises UnsupportedError without `onnx`, FileError for a file that is not there, and
    SerializationError for one that is not this network's."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError:
        raise UnsupportedError("reading an ONNX file needs the package onnx: pip install onnx") from None
    with opened(Path(path)):
        pass
    try:
        graph = onnx.load(os.fspath(path)).graph
        arrays = {a.name: np.asarray(numpy_helper.to_array(a), dtype=np.float64) for a in graph.initializer}
    except Exception as error:  # of protobuf, of several kinds
        name = os.fspath(path)
        raise SerializationError(f"{name}: no ONNX file: {type(error).__name__}", {"path": name}) from None
    weights = {name.removeprefix(PREFIX): array for name, array in arrays.items()}
    made = {name: node for node in graph.node for name in node.output}
    for node in graph.node:  # a linear layer is a product with a matrix, then a sum with its named bias
        names = [name for name in node.input if name in arrays and name.endswith(".bias")]
        if node.op_type != "Add" or not names:
            continue
        for operand in node.input:
            before = made.get(operand)
            if before is not None and before.op_type == "MatMul" and len(before.input) == 2:
                matrix = arrays.get(before.input[1])
                if matrix is not None:
                    weights[names[0].removeprefix(PREFIX).replace(".bias", ".weight")] = matrix.T
    found = MiniLM(weights)
    try:
        found.network(1)
        found.embedded([0], 1)
    except (KeyError, ParameterError) as error:
        raise SerializationError(f"not the weights of paraphrase-MiniLM-L3-v2: {error}") from None
    return found
