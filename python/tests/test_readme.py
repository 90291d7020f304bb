"""The programs in README.md run as they stand there; those of docs/: test_guides.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import snippets  # noqa: E402

RUNNABLE = [s for s in snippets.of_page("README.md") if s.runs]


def test_the_page_has_programs():
    assert RUNNABLE


@pytest.mark.parametrize("snippet", RUNNABLE, ids=lambda s: f"{s.page}:{s.line}")
def test_snippet(snippet, tmp_path):
    done = snippets.run(snippet, tmp_path)
    assert done.returncode == 0, f"{snippet.page}\n{done.stdout}{done.stderr}"
