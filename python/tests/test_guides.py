"""The programs in the pages of docs/ run as they stand there; those of README.md: test_readme.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import snippets  # noqa: E402

CPP = "docs/guide/cpp.md"
RUNNABLE = [s for s in snippets.snippets(ROOT) if s.runs and s.page != "README.md"]
CPP_PROGRAMS = re.findall(r"^```cpp\n(.*?)^```$", (ROOT / CPP).read_text(encoding="utf-8"), re.M | re.S)


def test_the_pages_have_programs():
    pages = {s.page for s in RUNNABLE}
    for name in ("getting-started", "bootstrapping", "tfhe", "keys-on-a-server", "threads-and-forks"):
        assert f"docs/guide/{name}.md" in pages


@pytest.mark.parametrize("snippet", RUNNABLE, ids=lambda s: f"{s.page}:{s.line}")
def test_snippet(snippet, tmp_path):
    done = snippets.run(snippet, tmp_path)
    assert done.returncode == 0, f"{snippet.page}\n{done.stdout}{done.stderr}"


def test_the_cpp_guide_has_the_tested_program():
    program = (ROOT / "tests/integration/find_package/main.cpp").read_text(encoding="utf-8")
    assert CPP_PROGRAMS[0] == program


@pytest.mark.parametrize("number", range(1, len(CPP_PROGRAMS)))
def test_cpp_program_compiles(number, tmp_path):
    """The further ones, as far as the compiler's front end: their calls exist."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "program.cpp"
    source.write_text(CPP_PROGRAMS[number], encoding="utf-8")
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
