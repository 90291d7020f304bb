"""The rules of tools/check_citations.py: what they find, and what they leave alone."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "tools" / "check_citations.py"
sys.path.insert(0, str(PATH.parent))  # it imports its neighbour
spec = importlib.util.spec_from_file_location("check_citations", PATH)
citations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(citations)

WRONG = {
    "no file of the repository": "// as no_such_page.md has it\n",
    "more than one": "// (tfhe.md, a guide and a theory)\n",
    "no such section": '// docs/theory/tfhe.md, "Gates\n// and more"\n',
    "docs/design/0099, which": "// docs/design/0099 decides\n",
    "bibliography.bib does not": "// the method of ABCD25\n",
    "numbers of issues": "// issue 12 asks for it\n",
    "work sessions": "// measured in session 4\n",
    "names src/no/such.h": "// made by src/no/such.h\n",
    "columns": f"// {'x' * 100}\n",
    "ruler": "// ---- heading\n// ---------------\n",
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_citations_are_found(message):
    (found,) = citations.check("src/core/some.h", WRONG[message])
    assert message in found


def test_right_citations_pass():
    text = (
        '/// docs/theory/tfhe.md, "Noise of a\n/// bootstrap" (BMTH21), docs/design/0007, FP16,\n'
        "// src/device/torus/plan.h, tests/gpu_receipt.json\n"
    )
    assert citations.check("src/core/some.h", text) == []


def test_pages_name_what_exists():
    page = "`src/ckks/params` and `docs/bibliography.bib` and [one](tfhe.md), Harvey14\n"
    assert citations.check("docs/theory/some.md", page) == []
    (found,) = citations.check("docs/theory/some.md", "`src/ckks/nothing`\n")
    assert "src/ckks/nothing" in found


def test_notation_names_what_the_code_says():
    row = "| concept | `{}` | note |\n"
    assert citations.check("docs/notation.md", row.format("rescale_ratio")) == []
    (found,) = citations.check("docs/notation.md", row.format("rescaling_quotient"))
    assert "rescaling_quotient" in found


def test_an_archive_without_git_has_the_same_files(tmp_path):
    """As from a tarball: nothing of git is there, and nothing that a build made belongs to it."""
    kept = [".ci/run", ".clang-tidy", "README.md", "src/.clang-tidy", "src/a.cpp", "tests/fuzz/corpus/empty"]
    made = [".venv/bin/x.py", "build/main/a.o", "site/a.html", "src/__pycache__/a.pyc", ".carry/a"]
    for name in kept + made:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert citations.files(tmp_path) == kept
    outer = subprocess.run(["git", "init", "-q", str(tmp_path)], capture_output=True)
    if outer.returncode == 0:
        (tmp_path / ".gitignore").write_text("a.cpp\n")
        inner = tmp_path / "unpacked"
        (inner / "src").mkdir(parents=True)
        (inner / "src" / "a.cpp").write_text("")
        assert "src/a.cpp" not in citations.files(tmp_path)
        assert citations.files(inner) == ["src/a.cpp"]
