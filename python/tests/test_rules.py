"""The checks of ./run lint (tools/check_*.py) find what they are there to find."""

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def rules(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import check_circles
    import check_layers
    import check_mirror

    yield check_layers, check_circles, check_mirror
    for name in ("check_circles", "check_layers", "check_mirror"):
        del sys.modules[name]


def write(root: Path, name: str, text: str = "") -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("name", "include", "problem"),
    [
        ("math/a.h", "core/b.h", ""),
        ("math/a.h", "rns/b.h", "math must not include rns/b.h"),
        ("ckks/a.cpp", "crenel/circuits/b.h", "ckks must not include"),
        ("ckks/a.cpp", "backends/cpu/b.h", "ckks must not include"),
        ("backends/ref/a.cpp", "backends/cpu/b.h", "backends/ref must not include"),
        ("device/torus/a.h", "device/poly/b.h", ""),
        ("device/poly/a.h", "device/torus/b.h", "poly must not include"),
        ("backends/cpu/torus/a.h", "device/fhecore/b.h", "torus must not include"),
        ("rlwe/a.cpp", "cuda_runtime.h", "CUDA header"),
        ("rlwe/a.cpp", "../core/b.h", "not by a relative path"),
    ],
)
def test_layers(rules, tmp_path, name, include, problem):
    layers, _, _ = rules
    found = layers.check_source(write(tmp_path, name, f'#include "{include}"\n'), tmp_path)
    assert [problem] * bool(problem) == [problem for line in found if problem in line]
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        ("crenel/nn/a.py", "import numpy as np, math", ""),
        ("crenel/nn/passes/a.py", "from crenel import ckks", ""),
        ("crenel/nn/a.py", "from crenel import tfhe", "must not import crenel.tfhe"),
        ("crenel/nn/a.py", "from crenel._crenel import write_file", ""),
        ("crenel/nn/a.py", "from crenel._crenel import Params", "must not import crenel._crenel.Params"),
        ("crenel/nn/a.py", "from crenel import _crenel", "must not import crenel._crenel"),
        ("crenel/nn/a.py", "from crenel.errors import _file_error", "must not import crenel.errors._file"),
        ("crenel/nn/a.py", "from crenel.ckks import _parts", "must not import crenel.ckks._parts"),
        ("crenel/nn/a.py", "def f():\n    import torch", "must not import torch"),
        ("crenel/nn/a.py", "from .b import c", "must not import .b.c"),
        ("crenel/workloads/a.py", "import sklearn", ""),
    ],
)
def test_python_imports(rules, tmp_path, name, line, problem):
    layers, _, _ = rules
    found = layers.check_python(write(tmp_path, name, line + "\n"), tmp_path)
    assert bool(found) == bool(problem)
    assert all(problem in each for each in found)


@pytest.mark.parametrize(
    ("name", "include", "allowed"),
    [
        ("bench/tfhe/a.cpp", "tfhe/own.h", True),
        ("bench/tfhe/a.cpp", "tfhe/objects.h", False),
        ("bench/boot/a.cpp", "crenel/ckks/params.h", True),
        ("python/src/a.cpp", "ckks/objects.h", False),
        ("bench/micro/a.cpp", "device/backend.h", True),
    ],
)
def test_public_headers_outside(rules, tmp_path, monkeypatch, name, include, allowed):
    layers, _, _ = rules
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    write(tmp_path, "bench/tfhe/own.h")
    assert (layers.check_outside(write(tmp_path, name, f'#include "{include}"\n')) == []) == allowed


def test_the_table_of_layers_is_an_order(rules, monkeypatch):
    layers, _, _ = rules
    assert layers.check_table() == []
    monkeypatch.setitem(layers.ALLOWED, "math", {"core", "ckks"})
    assert layers.check_table() == ["check_layers.py: math comes before ckks"]


@pytest.mark.parametrize(
    "text",
    [
        "import p.b",
        "from p import b",
        "from .b import x",
        "def f():\n    from p.b import x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import x",
    ],
)
def test_circles_of_imports(rules, tmp_path, text):
    _, circles, _ = rules
    for name in ("__init__", "b", "c"):
        write(tmp_path, f"p/{name}.py")
    write(tmp_path, "p/a.py", text)
    assert circles.circles(circles.python_graph(tmp_path, ("p",))) == []
    write(tmp_path, "p/b.py", "from p import c")
    write(tmp_path, "p/c.py", "import p.a")
    assert circles.circles(circles.python_graph(tmp_path, ("p",))) == [["p.a", "p.b", "p.c"]]


def test_circles_of_includes(rules, tmp_path, monkeypatch):
    _, circles, _ = rules
    monkeypatch.setattr(circles, "ROOT", tmp_path)
    write(tmp_path, "src/core/a.h", '#include "core/b.h"\n')
    write(tmp_path, "src/core/b.h")
    assert circles.circles(circles.include_graph()) == []
    write(tmp_path, "src/core/b.h", '#include "a.h"\n')
    assert circles.circles(circles.include_graph()) == [["src/core/a.h", "src/core/b.h"]]


def test_unit_tests_lie_where_they_belong(rules, tmp_path, monkeypatch):
    _, _, mirror = rules
    for name, value in {
        "ROOT": tmp_path,
        "TESTS": tmp_path / "tests",
        "UNIT": tmp_path / "tests/unit",
    }.items():
        monkeypatch.setattr(mirror, name, value)
    write(tmp_path, "src/rns/a.cpp")
    write(tmp_path, "tests/support/s.h", '#include "crenel/ckks/params.h"\n')
    assert mirror.untested() == ["rns/a.cpp"]
    file = write(tmp_path, "tests/unit/rns/b_test.cpp", '#include "rns/a.h"\n')
    assert mirror.check_place(file) == [] and mirror.untested() == []
    file.write_text('#include "support/s.h"\n')
    assert "must not include crenel/ckks/params.h" in mirror.check_place(file)[0]
    for name in ("a_test.cpp", "rns/deep/a_test.cpp", "nowhere/a_test.cpp"):
        assert "no such folder" in mirror.check_place(write(tmp_path, f"tests/unit/{name}"))[0]


LONG = "\n".join(f"  act({i});" for i in range(62))
LENGTHS = {
    "a.py": ("def f():\n" + "    x = 1\n" * 59, ""),
    "b.py": ("class A:\n    async def f(self):\n" + "        x = 1\n" * 60, "b.py:2: f has 61 lines"),
    "src/a.cpp": (f"namespace a {{\nint f(int i = {{}}) {{\n{LONG}\n}}\n}}", "src/a.cpp:2: f has 64 lines"),
    "src/b.cu": (f"template <class T>\n__global__ void __launch_bounds__(32) k(T t) {{\n{LONG}\n}}", ""),
    "src/c.h": (
        f"class A {{\n  A(int n) : n_(n), m_{{n}} {{\n{LONG}\n  }}\n}};",
        "src/c.h:2: A has 64 lines",
    ),
    "src/d.cpp": (f"const int kTable[] = {{\n{LONG.replace(';', ',')}\n}};\nint f() {{ return '{{'; }}", ""),
    "src/e.cpp": (
        f'int f() {{\n  // }} and "{{"\n  auto g = [&](int i) {{\n{LONG}\n  }};\n}}',
        "src/e.cpp:1: f has",
    ),
    "python/src/a.cpp": (f"void bind_a(nb::module_& m) {{\n{LONG}\n}}", ""),
    "tests/a_test.cpp": (f"TEST(A, B) {{\n{LONG}\n}}", ""),
    "tests/b_test.cpp": (f"void helper() {{\n{LONG}\n}}", "tests/b_test.cpp:1: helper has 64 lines"),
}


def test_lengths_of_functions(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(TOOLS))
    import check_functions

    for name, (text, _) in LENGTHS.items():
        write(tmp_path, name, text)
    found = check_functions.errors(tmp_path)
    expected = sorted(problem for _, problem in LENGTHS.values() if problem)
    assert len(found) == len(expected)
    for line, problem in zip(sorted(found), expected, strict=True):
        assert line.startswith(problem), (line, problem)
