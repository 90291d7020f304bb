"""Of every form that the sources can write, tests/compat keeps a file, or it stands here with the reason.

A form is a word by which a file says what it holds: names of metadata and tensors, values that are chosen
from some, members of the JSON of containers, steps and operations of plans. They are read from the sources:
a new one without a kept file fails here. Kinds of files are those of test_compat_kinds.py.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from test_compat_kinds import ARRAY, COMPAT, CONTAINERS, PACKAGE, PLACES, ROOT, WRITERS

from crenel.nn import form
from crenel.nn.ops import OPS

SOURCES = ROOT / "src" / "serialize"
WORD = re.compile(r"/?[a-z][a-z0-9_]*(?:[/:][a-z0-9_]*)*")
LITERAL = re.compile(r'(\{\s*)?"((?:[^"\\]|\\.)*)"(\s*,)?')
HEADER = b'{"__metadata__"'
MEMBERS = ("nn/form.py", "ckks/arrays/archive.py")  # what makes JSON for modules that write it
MAKER = re.compile(r"_form$|document$|packed$|^to_bytes$|^write$|^put$")  # names of functions that make it

# Words of the sources that are no form, or one of which no file can be kept.
NO_FORM = {
    **dict.fromkeys(("dtype", "data_offsets"), "members of a tensor's entry: every file has them"),
    **dict.fromkeys(("expected", "needed"), "a field of an error"),
    **dict.fromkeys(
        ("file", "header", "integers", "loading", "nothing", "serialisation"), "a word of a message"
    ),
    "c": "begins c0, c1 and c2",
}
FORM_OF_NO_SET = {
    "key_switch/b U64": "no set has a key switch modulo more than 2^32",
    "packing/b U64": "no set has a key switch modulo more than 2^32",
}
OPS_OF_NO_PLAN = {
    **dict.fromkeys(("input", "add", "activation", "polynomial"), "becomes a step, or a series"),
}


class Said(NamedTuple):
    """What the kept safetensors files say: of each its metadata, and its tensors with types and shapes."""

    metadata: dict[str, str]
    tensors: dict[str, tuple[str, list[int]]]


def headers(data: bytes) -> Iterator[Said]:
    """Of every safetensors file in the bytes: itself, or those that a container holds."""
    at = data.find(HEADER)
    while at >= 0:
        length = int.from_bytes(data[at - 8 : at], "little")
        head = json.loads(data[at : at + length])
        metadata = head.pop("__metadata__")
        yield Said(metadata, {name: (t["dtype"], t["shape"]) for name, t in head.items()})
        at = data.find(HEADER, at + length)


@cache
def said() -> tuple[Said, ...]:
    return tuple(s for file in sorted(COMPAT.rglob("*.safetensors")) for s in headers(file.read_bytes()))


def documents(data: bytes) -> Iterator[object]:
    """JSON at the head of a container."""
    magic = data[:8].decode("latin-1")
    if magic == ARRAY:
        yield json.loads(data[16 : 16 + int.from_bytes(data[12:16], "little")])
    elif magic in CONTAINERS:
        yield json.loads(data[20 : 20 + int.from_bytes(data[12:20], "little")])


def members(value: object) -> Iterator[tuple[str, object]]:
    """Names and values of all objects in it, those that are texts of JSON too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner)
    elif isinstance(value, str) and value.startswith("{"):
        yield from members(json.loads(value))


@cache
def kept_members() -> tuple[tuple[str, object], ...]:
    files = sorted(COMPAT.rglob("*.safetensors"))
    return tuple(m for file in files for d in documents(file.read_bytes()) for m in members(d))


def words(text: str) -> set[str]:
    """Literals of a C++ source that may be a part of a name or a value; fields of errors are none."""
    text = re.sub(r"//.*|#include.*", "", text)
    return {
        part
        for opening, literal, comma in LITERAL.findall(text)
        if WORD.fullmatch(literal) and not (opening and comma)
        for part in re.split("[/:]", literal)
        if part
    }


def kept_words() -> set[str]:
    """Parts of names, and values."""
    found: set[str] = set()
    for metadata, tensors in said():
        found |= set(metadata.values())
        for name in (*metadata, *tensors):
            found |= set(re.split("[/:]", name))
    return found


def missing(written: set[str], kept: set[str], reasons: dict[str, str]) -> list[str]:
    assert not reasons.keys() & kept, "has a file now: its reason goes"
    return sorted(written - kept - reasons.keys())


def sources() -> dict[str, str]:
    return {
        f.name: f.read_text(encoding="utf-8") for f in sorted(SOURCES.iterdir()) if f.suffix in (".h", ".cpp")
    }


def test_every_word_of_the_core_is_kept():
    written = set().union(*(words(text) for text in sources().values()))
    assert len(written) > 80  # found at all
    assert not missing(written, kept_words(), {w: r for w, r in NO_FORM.items() if w in written})


def test_a_new_word_is_noticed():
    """A name or a value, whole or in parts; not in comments, messages and fields of errors."""
    lines = (
        'file.text("brand_new", x);  // "commented"',
        'cat("fresh/", i, "/half")',
        'reject(where, "a found text", "expected here", at);',
        'throw E("no", {{"field", x}, {"other", y}});',
    )
    assert words("\n".join(lines)) == {"brand_new", "fresh", "half", "no"}
    assert missing({"a", "b", "c"}, {"a"}, {"b": "why"}) == ["c"]
    with pytest.raises(AssertionError, match="has a file now"):
        missing({"a"}, {"a"}, {"a": "why"})
    assert flags('file.flag("new", x); file.flag("read");') == {"new"}
    tree = ast.parse("def boot_form(b):\n    return {'slots': 1}\ndef other():\n    raise E({'no': 2})")
    assert list(described(tree)) == ["slots"]


def flags(text: str) -> set[str]:
    """Names of flags that a source writes."""
    return set(re.findall(r'file\.flag\("(\w+)", ', text))


def test_flags_are_kept_with_both_values():
    text = "\n".join(sources().values())
    names = flags(text) | {"packing"}
    assert 'constexpr const char* kPacking = "packing"' in text and "file.flag(kPacking, " in text
    assert len(names) > 5
    always = {f"{name}=true" for name in names if f'file.flag("{name}", true)' in text}
    written = {f"{name}={value}" for name in names for value in ("true", "false")}
    written -= {form.replace("true", "false") for form in always}
    kept = {f"{name}={value}" for metadata, _ in said() for name, value in metadata.items() if name in names}
    # An array of TFHE that says `seeded` by a digit a block has its own test.
    kept = {form for form in kept if form.endswith(("true", "false"))}
    assert not missing(written, kept, {})


def test_types_that_a_set_chooses_are_kept():
    text = sources()["tfhe_keys_io.cpp"]
    assert set(re.findall(r"(\w+)_type = word_type\(", text)) == {"switch", "pack"}
    written = {f"{key}/b {dtype}" for key in ("key_switch", "packing") for dtype in ("U32", "U64")}
    kept = {f"{name} {dtype}" for _, tensors in said() for name, (dtype, _) in tensors.items()} & written
    assert not missing(written, kept, FORM_OF_NO_SET)


def test_levels_of_keys_are_kept():
    """Keys of all levels, of some, and of what rlwe/key_levels.h has besides; each where it may stand."""
    header = (ROOT / "src" / "rlwe" / "key_levels.h").read_text(encoding="utf-8")
    assert set(re.findall(r"constexpr bool is_(\w+)\(u32 level\)", header)) == {"short", "aligned"}
    found = set()
    for metadata, tensors in said():
        for name in tensors if metadata["kind"] == "evaluation_keys" else ():
            key = name.removesuffix("/b")
            if key != name:
                level = metadata.get(f"max_level:{key}")
                limit = "all" if level is None else "short" if int(level) >= 1 << 16 else "some"
                found.add((re.sub(r"\d+", "#", key), limit))
    turned, encapsulated = "encapsulation/turned/#", "encapsulation/dense_to_sparse"
    assert found == {
        ("relinearisation", "all"), ("relinearisation", "some"),
        ("galois/#", "all"), ("galois/#", "some"), ("galois/#", "short"),
        ("aligned/relinearisation", "some"), ("aligned/galois/#", "some"),
        (encapsulated, "all"), ("encapsulation/sparse_to_dense", "all"), (turned, "all"),
    }  # fmt: skip


def of_kind(*kinds: str) -> list[Said]:
    return [s for s in said() if s.metadata["kind"] in kinds]


def test_what_numbers_of_a_file_may_say_is_kept():
    """Forms that are no words: by the number of something, or its absence."""
    ckks = of_kind("ciphertext")
    assert {s.metadata["components"] for s in ckks} == {"2", "3"}
    assert any(int(s.metadata["batch"]) > 1 for s in ckks) and any(s.metadata["batch"] == "1" for s in ckks)
    assert {"bound" in s.metadata for s in ckks} == {True, False}
    assert {s.metadata["hamming_weight"] == "0" for s in of_kind("params")} == {True, False}
    keys = of_kind("evaluation_keys")
    assert {bool(s.tensors) for s in keys} == {True, False}
    assert {s.metadata["secret_key_id"] == "none" for s in of_kind("tfhe_ciphertext")} == {True, False}
    seeded = "".join(s.metadata["seeded"] for s in of_kind("tfhe_integers"))
    assert set(seeded) == {"0", "1"}
    assert {s.metadata["bits"] == "0" for s in of_kind("tfhe_compressed")} == {True, False}
    versions = {s.metadata["params_version"] for s in of_kind("tfhe_params")}
    assert versions == {"2", "3"} and {s.metadata["slots"] == "1" for s in of_kind("tfhe_params")} == {
        True,
        False,
    }


def keys_of(node: ast.AST) -> Iterator[str]:
    """Texts that are names in a dictionary, or assigned to one; those of errors are none."""
    if isinstance(node, ast.Raise):
        return
    if isinstance(node, ast.Dict):
        yield from (k.value for k in node.keys if isinstance(k, ast.Constant) and type(k.value) is str)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            place = target.slice if isinstance(target, ast.Subscript) else None
            if isinstance(place, ast.Constant) and type(place.value) is str:
                yield place.value
    for inner in ast.iter_child_nodes(node):
        yield from keys_of(inner)


def writes(node: ast.AST) -> bool:
    """A call that makes a container?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in WRITERS
        and node.func.attr in PLACES
    )


def described(tree: ast.Module) -> Iterator[str]:
    """Members in the arguments of such calls, and in functions that make what is written."""
    for node in ast.walk(tree):
        if writes(node) or (isinstance(node, ast.FunctionDef) and MAKER.search(node.name)):
            yield from keys_of(node)


def written_members(folder: Path) -> dict[str, str]:
    """Names of members by the module that writes them."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(folder).as_posix()
        if name in MEMBERS or any(writes(node) for node in ast.walk(tree)):
            found |= dict.fromkeys(described(tree), name)
    return found


def test_every_member_of_a_container_is_kept():
    written = written_members(PACKAGE)
    assert len(written) > 40
    assert not missing(set(written), {name for name, _ in kept_members()}, {})


def test_every_step_and_operation_of_plans_is_kept():
    values = {(name, value) for name, value in kept_members() if isinstance(value, str)}
    steps = {value for name, value in values if name == "step"}
    operations = {value for name, value in values if name == "op"}
    assert not missing(set(form.STEPS), steps, {})
    assert not missing(set(OPS), operations, OPS_OF_NO_PLAN)
    # Of numbers of four bytes, else of eight; of integers that a function takes any that TFHE has.
    assert {value for name, value in values if name == "type"} == {"f4", "uint8"}
