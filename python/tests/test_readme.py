"""The Python in README.md and the guide runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]
SNIPPETS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall((ROOT / page).read_text(encoding="utf-8")), 1)
]


def test_the_readme_has_a_snippet():
    assert BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("source", SNIPPETS)
def test_snippet(source, tmp_path):
    script = tmp_path / "snippet.py"
    script.write_text(source, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
