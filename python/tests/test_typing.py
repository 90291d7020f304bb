"""The checkers of types and signatures find what they are there to find; what they find in the package fails
./run test and ./run lint (tools/runner/typed.py)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_signatures  # noqa: E402
import check_types  # noqa: E402
import snippets  # noqa: E402

CLEAN = '"""Module."""\n__all__ = ["f"]\ndef f(a: int, *, b: str = "") -> None:\n    """Does."""\n'
STUB = (
    '"""Stub."""\nclass Thing:\n    """A thing."""\n    def go(self, n: int) -> int:\n        """Goes."""\n'
)


def package(folder: Path, source: str, stub: str = STUB) -> tuple[Path, Path]:
    (folder / "crenel").mkdir()
    (folder / "crenel/__init__.py").write_text(source)
    (folder / "_crenel.pyi").write_text(stub)
    return folder / "_crenel.pyi", folder


def signatures(folder: Path, source: str, stub: str = STUB) -> list[str]:
    return check_signatures.check(*package(folder, source, stub), ("crenel",))


def test_clean_signatures(tmp_path):
    assert signatures(tmp_path, CLEAN) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("a: int", "a"), "parameter a has no type"),
        (("a: int", "a: Any"), "parameter a is Any"),
        (("a: int", "a: object"), "parameter a is object"),
        (("a: int", "a: 'list[Any]'"), "parameter a is Any"),
        (("a: int", "a: Callable[[object], int]"), "parameter a is object"),
        (("a: int", "a: Callable[..., Any]"), "parameter a is Any"),
        (("a: int", "a: bool | Callable[[int], object]"), ""),
        (("-> None", "-> Callable[[int], object]"), "result is object"),
        (("a: int, *", "*a: typing.Any"), "parameter a is Any"),
        (("a: int", "a: dict"), "a dict of unknown elements"),
        (("a: int", "a: np.ndarray"), "a ndarray of unknown elements"),
        (("-> None", ""), "no return type"),
        (("-> None", "-> tuple"), "result is a tuple of unknown elements"),
        (('"""Does."""', "pass"), "f has no docstring"),
        (
            ('"""Does."""', '"""Does.\n\n    Parameters\n    ----------\n    c : what\n    """'),
            "a parameter c",
        ),
        (('"""Module."""', ""), "crenel has no docstring"),
        (('__all__ = ["f"]', "Alias = int | Any\n__all__ = ['f']"), ""),
        (("def f(a: int", "Alias = int | Any\ndef f(a: Alias"), "parameter a (Alias) is Any"),
    ],
)
def test_signatures_that_say_too_little(tmp_path, change, problem):
    found = signatures(tmp_path, CLEAN.replace(*change))
    assert bool(found) == bool(problem)
    assert not problem or any(problem in line and "__init__.py:" in line for line in found), found


def test_members_of_the_stub_and_inherited_ones(tmp_path):
    source = '"""M."""\nfrom crenel._crenel import Thing as T\n__all__ = ["T", "U"]\n'
    source += 'class _Base:\n    """B."""\n    def low(self, x): ...\nclass U(_Base):\n    """U."""\n'
    found = signatures(tmp_path, source, STUB.replace("n: int) -> int", "n) -> int"))
    assert [line.partition(": ")[2].split(" (")[0] for line in found] == [
        "crenel.T.go: parameter n has no type",
        "crenel.U.low: parameter x has no type",
        "crenel.U.low: no return type",
        "crenel.U.low has no docstring",
    ]


def test_comparisons_take_anything(tmp_path):
    for name in ("__eq__", "__lt__", "__contains__"):
        (folder := tmp_path / name).mkdir()
        stub = STUB.replace("def go(self, n: int) -> int", f"def {name}(self, other: object) -> NoReturn")
        source = '"""M."""\nfrom crenel._crenel import Thing\n__all__ = ["Thing"]\n'
        assert signatures(folder, source, stub) == []
        (folder / "result").mkdir()
        (line,) = signatures(folder / "result", source, stub.replace("NoReturn", "object"))
        assert f"Thing.{name}: result is object" in line


def test_one_overload_needs_the_docstring(tmp_path):
    stub = '"""S."""\nclass Thing:\n    """A."""\n    @overload\n'
    stub += '    def go(self, n: int) -> int:\n        """Goes."""\n'
    stub += "    @overload\n    def go(self, n: str) -> str: ...\n"
    source = '"""M."""\nfrom crenel._crenel import Thing\n__all__ = ["Thing"]\n'
    assert signatures(tmp_path, source, stub) == []
    (tmp_path / "again").mkdir()
    (line,) = signatures(tmp_path / "again", source, stub.replace('"""Goes."""', "..."))
    assert "Thing.go has no docstring" in line


def test_lines_of_a_page(tmp_path):
    (tmp_path / "docs/notes").mkdir(parents=True)
    (tmp_path / "docs/notes/old.md").write_text("```python\nold\n```\n")
    (tmp_path / "README.md").write_text(
        "# A\n\n```python\na = 1\nb = 2\n```\ntext\n```py\nc = 3\n```\n```sh\nx\n```\n"
    )
    first, second = snippets.snippets(tmp_path)
    assert (first.line, first.runs, second.line, second.runs) == (4, True, 9, False)
    assert first.placed.splitlines()[3] == "a = 1" and second.placed.splitlines()[8] == "c = 3"
    assert first.module.isidentifier()


def test_findings_name_the_page():
    origin = {"programs/README_1.py": "README.md"}
    assert check_types.named("programs/README_1.py:7: error: x", origin) == "README.md:7: error: x"
    assert check_types.named("elsewhere.py:7: error: x", origin) == "elsewhere.py:7: error: x"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_wrong_types_are_found(tmp_path):
    """mypy and pyright, on a package, an example and a page with one fault each."""
    (tmp_path / "python").mkdir()
    stub, _ = package(tmp_path / "python", "x: int = 'text'\n")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/01_a.py").write_text("import crenel\n\ncrenel.nothing\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# A\n\n```python\na: int = 'b'\n```\n")
    found = check_types.check(stub, tmp_path, tmp_path / "staged")
    for checker in ("mypy", "pyright"):
        for place in ("python/crenel/__init__.py:1:", "examples/01_a.py:3:", "README.md:4:"):
            assert any(line.startswith(f"{checker}: {place}") for line in found), (checker, place, found)
