"""Sentences to BERT's tokens, by the library `tokenizers`: a client's work, before anything is encrypted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from crenel.errors import ParameterError, SerializationError, UnsupportedError
from crenel.workloads.files import opened

Tokenizer = Callable[[Sequence[str]], list[list[int]]]
AROUND = ("[CLS]", "[SEP]")  # the tokens around a sentence
UNKNOWN = "[UNK]"


def of_file(path: Path) -> Tokenizer:
    """Of a vocabulary, ``vocab.txt`` with a token a line (BERT's uncased WordPiece), or of a
    ``tokenizer.json``: sentences to numbers, with the tokens around each.

    Raises UnsupportedError without `tokenizers`, FileError, and SerializationError for what is neither, or
    lacks the tokens around a sentence. The function raises ParameterError naming a sentence without words.
    """
    try:
        import tokenizers
    except ImportError:
        raise UnsupportedError(
            "sentences in words need the package tokenizers: pip install 'crenel[text]'"
        ) from None
    with opened(path) as file:
        data = file.read()
    try:
        text = data.decode("utf-8")
        if path.suffix == ".json":
            found = tokenizers.Tokenizer.from_str(text)
            vocabulary = found.get_vocab()
        else:
            words = text.removesuffix("\n").split("\n")
            vocabulary = {word.rstrip("\r"): number for number, word in enumerate(words)}
            found = _wordpiece(vocabulary)
    except Exception as error:  # of the library, which are of Exception itself
        raise SerializationError(
            f"{path}: neither a vocabulary nor a tokenizer.json: {error}"[:200], {"path": str(path)}
        ) from None
    if missing := [word for word in AROUND if word not in vocabulary]:
        raise SerializationError(f"{path}: no token {missing[0]}", {"path": str(path), "token": missing[0]})
    found.no_truncation()
    found.no_padding()

    def tokens(sentences: Sequence[str]) -> list[list[int]]:
        made = [[int(k) for k in found.encode(sentence).ids] for sentence in sentences]
        for number, ids in enumerate(made, start=1):
            if len(ids) < 3:
                raise ParameterError(f"sentence {number} has no words", {"sentence": number})
        return made

    return tokens


def _wordpiece(vocabulary: dict[str, int]):  # type: ignore[no-untyped-def]  # an optional package's class
    """BERT's: lower case, accents off, punctuation apart, the longest pieces first."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN, max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    first, last = AROUND
    made.post_processor = processors.BertProcessing((last, vocabulary[last]), (first, vocabulary[first]))
    made.decoder = decoders.WordPiece()
    return made
