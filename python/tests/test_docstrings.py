"""Docstrings of public names say errors that exist, shapes, units and sources; the rules find what lacks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import crenel

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_docstrings  # noqa: E402
import docstrings  # noqa: E402

STUB = Path(crenel.__file__).with_name("_crenel.pyi")


@pytest.mark.skipif(not STUB.is_file(), reason="this build has no stub (sanitizers)")
def test_docstrings_are_complete():
    package = check_docstrings.Package(ROOT / "python", STUB)
    wrong = check_docstrings.check(package)
    assert not wrong, "\n".join(wrong)
    names = [found.name for found in check_docstrings.documented(package)]
    assert len(names) > 900
    for name in ("ckks.Evaluator.polynomial", "tfhe.Evaluator.argmax", "client.Session.run", "nn.compile",
                 "distributed.map", "serve.Settings", "workloads.Sorting", "bridge.Cost"):  # fmt: skip
        assert f"crenel.{name}" in names


HEAD = """
from numpy.typing import ArrayLike
from crenel.errors import ParameterError
__all__ = ["f"]
"""
FINE = """
def f(values: ArrayLike, timeout: float, memory: int) -> None:
    '''By Chebyshev series (docs/theory/precision.md).

    values : of shape (rows, 3); timeout : seconds; memory : bytes. Raises ParameterError.
    '''
    raise ParameterError("no")
"""
WRONG = [
    ("Raises ParameterError", "Raises ParameterError, NoSuchError", "there is no NoSuchError"),
    ("Raises ParameterError", "It is refused", "raises ParameterError, which its docstring does not say"),
    ("of shape (rows, 3)", "what is computed with", "of what shape is values?"),
    (": seconds", ": how long", "in what unit is the time timeout?"),
    (": bytes", ": how much", "in what unit is the size memory?"),
    (" (docs/theory/precision.md)", "", 'speaks of "Chebyshev"'),
]


def findings(folder, source):
    errors = "class ParameterError(ValueError):\n    '''One.'''\n"
    files = {"__init__.py": HEAD + source, "errors.py": errors}
    for name in check_docstrings.PUBLIC[1:]:
        files[f"{name.removeprefix('crenel.')}.py"] = "__all__ = []\n"
    for name, text in files.items():
        path = folder / "crenel" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "_crenel.pyi").write_text("")
    return check_docstrings.check(check_docstrings.Package(folder, folder / "_crenel.pyi"))


@pytest.mark.parametrize(("said", "instead", "message"), [("", "", ""), *WRONG])
def test_what_is_missing_is_found(tmp_path, said, instead, message):
    assert said in FINE
    found = findings(tmp_path, FINE.replace(said, instead) if said else FINE)
    assert len(found) == bool(message) and message in "".join(found), found


@pytest.mark.parametrize(
    "text",
    [
        "As `other`.",
        "Raises as `f`, which takes (n,) numbers in bytes, and seconds.",
        "``a @ b`` in ms of bytes.",
    ],
)
def test_who_refers_to_another_need_not_repeat_it(tmp_path, text):
    source = f"def f(values: ArrayLike) -> None:\n    '''{text}'''\n"
    assert findings(tmp_path, source) == []


def test_a_class_has_the_source_of_its_methods(tmp_path):
    source = "class f:\n    '''Of a circuit{}.'''\n    def g(self) -> int:\n        '''Its probability.'''\n"
    assert len(findings(tmp_path, source.format(""))) == 1
    assert findings(tmp_path, source.format(": docs/theory/tfhe.md")) == []
    assert findings(tmp_path, source.format(": Bossuat et al., Eurocrypt 2021")) == []


def test_cited_pages_are_links():
    text = 'By docs/theory/tfhe.md,\n"Probability of\nfailure", and docs/theory/security.md.'
    found = docstrings.to_markdown(text, {}, "../errors.md")
    assert "(../../theory/tfhe.md#probability-of-failure)" in found and "“Probability of failure”" in found
    assert "[Security of parameters](../../theory/security.md)." in found
    assert "(../theory/security.md)" in docstrings.to_markdown(text, {}, "errors.md")
