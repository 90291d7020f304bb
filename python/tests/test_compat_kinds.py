"""Of every kind of file that the sources can write, tests/compat keeps one.

The kinds are read from the sources: a kind that is added without a kept file fails here.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import crenel

ROOT = Path(__file__).resolve().parents[2]
COMPAT, PACKAGE = ROOT / "tests" / "compat", ROOT / "python" / "crenel"
PREFIX = "CRENEL"  # of a container's magic: eight bytes
ARRAY, CONTAINERS = "CRENELAR", ("CRENELNN", "CRENELWL")
COMPRESSED = "tfhe_compressed"
# Modules whose `packed` and `save` take the kind, and where among their arguments it stands.
WRITERS = {"archive": "CRENELNN", "checkpoint": "CRENELWL", "checkpoints": "CRENELWL", "files": "CRENELWL"}
PLACES = {"packed": 0, "save": 1}


def kind_of(data: bytes) -> str:
    """What a file says that it is."""
    magic = data[:8].decode("latin-1")
    if magic == ARRAY:
        return magic
    if magic in CONTAINERS:
        length = int.from_bytes(data[12:20], "little")
        return f"{magic} {json.loads(data[20 : 20 + length])['kind']}"
    length = int.from_bytes(data[:8], "little")
    said = json.loads(data[8 : 8 + length])["__metadata__"]
    return f"{said['kind']} {said['form']}" if said["kind"] == COMPRESSED else said["kind"]


@cache
def trees(folder: Path) -> dict[Path, ast.Module]:
    """Modules below a folder that have a word which is looked for here, read once."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    words = (PREFIX, *(f".{name}(" for name in PLACES))
    return {path: ast.parse(text) for path, text in texts.items() if any(word in text for word in words)}


def kinds_of_the_core() -> Iterator[str]:
    """Constants in `namespace kind`; of compressed arrays, one for each form."""
    for header in sorted((ROOT / "src" / "serialize").glob("*.h")):
        for body in re.findall(r"namespace kind \{(.*?)\n\}", header.read_text(encoding="utf-8"), re.DOTALL):
            for kind in re.findall(r'string_view k\w+ = "(\w+)"', body):
                if kind == COMPRESSED:
                    yield from (f"{kind} {form}" for form in forms())
                else:
                    yield kind


def forms() -> list[str]:
    text = (ROOT / "include" / "crenel" / "tfhe" / "compressed.h").read_text(encoding="utf-8")
    body = re.search(r"enum class StoredForm : u8 \{(.*?)\};", text, re.DOTALL)
    assert body, "StoredForm is no longer where this test looks for it"
    return re.findall(r"^  (\w+),", body[1], re.MULTILINE)


def kinds_of_python(folder: Path) -> Iterator[str]:
    """First arguments of `archive.packed` and its like, constants of their modules resolved."""
    for path, tree in trees(folder).items():
        constants = dict(named_strings(tree))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            f = call.func
            if not (isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)):
                continue
            if f.value.id not in WRITERS or f.attr not in PLACES:
                continue
            kind = call.args[PLACES[f.attr]]
            text = kind.value if isinstance(kind, ast.Constant) else constants.get(getattr(kind, "id", ""))
            assert isinstance(text, str), f"{path}:{call.lineno}: the kind of a file must be a constant"
            yield f"{WRITERS[f.value.id]} {text}"


def named_strings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names of a module that are texts, tuples of both too."""
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = (
                zip(target.elts, node.value.elts, strict=True)
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                else [(target, node.value)]
            )
            for name, value in pairs:
                if (
                    isinstance(name, ast.Name)
                    and isinstance(value, ast.Constant)
                    and type(value.value) is str
                ):
                    yield name.id, value.value


def magics(folder: Path) -> set[str]:
    """Bytes in the package that a container begins with."""
    return {
        node.value.decode()
        for tree in trees(folder).values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, bytes)
        and node.value.startswith(PREFIX.encode())
    }


def kept() -> set[str]:
    return {kind_of(file.read_bytes()) for file in COMPAT.rglob("*.safetensors")}


def test_every_kind_is_kept():
    known = {*kinds_of_the_core(), *kinds_of_python(PACKAGE), ARRAY}
    assert len(known) > 20  # found at all
    missing = sorted(known - kept())
    assert not missing, (
        f"no kept file of {missing}: a part of tests/compat/make.py, a reader in test_compat.py"
    )


def test_what_is_kept_is_known():
    """A kind that nothing writes any more is still read; one that no source ever named is a mistake here."""
    known = {*kinds_of_the_core(), *kinds_of_python(PACKAGE), ARRAY}
    assert kept() - known == {"CRENELWL compat"}  # whose kind test_compat.py names


def test_containers_are_those_that_are_looked_for():
    assert magics(PACKAGE) == {ARRAY, *CONTAINERS}


def test_a_new_kind_is_noticed(tmp_path):
    """In Python, by a constant or by its name; one that is computed is refused."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    bad.mkdir()
    lines = ("KIND, N = 'new', 1", "archive.packed(KIND, {}, {})", "files.save(path, 'other', {})")
    (good / "a.py").write_text("\n".join(lines))
    assert list(kinds_of_python(good)) == ["CRENELNN new", "CRENELWL other"]
    (bad / "a.py").write_text("checkpoint.packed(name(), {}, {}, {})")
    with pytest.raises(AssertionError, match="must be a constant"):
        list(kinds_of_python(bad))


def test_kept_files_are_not_written_again(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(COMPAT))
    import make

    out = make.Writer(tmp_path)
    out.put("x-y.safetensors", b"1", what=1)
    out.close()
    again = make.Writer(tmp_path)
    with pytest.raises(FileExistsError, match="never written again"):
        again.put("x-y.safetensors", b"2")
    assert (tmp_path / "x-y.safetensors").read_bytes() == b"1"
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    monkeypatch.setattr(make, "PARTS", {"x": None})
    folder = tmp_path / crenel.__version__
    folder.mkdir()
    for name in ("x-y.safetensors", "values.json"):
        (tmp_path / name).rename(folder / name)
    assert make.main() == 1 and "has every part" in capsys.readouterr().err
    for name in ("make", "forms"):
        sys.modules.pop(name, None)
