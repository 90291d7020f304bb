"""The Python of README.md and docs/, block by block, with the lines where it stands.

A block fenced as ``python`` is a program: it runs as it stands (python/tests/test_readme.py,
test_guides.py). One fenced as
``py`` is one that is only shown, because it needs a GPU or minutes. Types are checked in both
(tools/check_types.py).
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(python|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    page: str  # path from the root of the repository
    number: int  # of the page's blocks, from 1
    line: int  # of the page, where the first line of code stands
    source: str
    runs: bool

    @property
    def placed(self) -> str:
        """The code below as many empty lines as the page has before it: every line has the page's number."""
        return "\n" * (self.line - 1) + self.source

    @property
    def module(self) -> str:
        """A name that a Python module can have."""
        return re.sub(r"\W", "_", f"{self.page.removesuffix('.md')}_{self.number}")


def pages(root: Path = ROOT) -> list[str]:
    """README.md and every page of docs/ but the notes, which are dated and stay as they were."""
    found = [p.relative_to(root) for p in sorted((root / "docs").rglob("*.md"))]
    return ["README.md", *(str(p) for p in found if p.parts[1] != "notes")]


def of_page(page: str, root: Path = ROOT) -> list[Snippet]:
    text = (root / page).read_text(encoding="utf-8")
    return [
        Snippet(page, number, text.count("\n", 0, match.start(2)) + 1, match[2], match[1] == "python")
        for number, match in enumerate(FENCE.finditer(text), 1)
    ]


def snippets(root: Path = ROOT) -> list[Snippet]:
    """All blocks of all pages."""
    return [snippet for page in pages(root) for snippet in of_page(page, root)]


def run(snippet: Snippet, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program, run in this folder; line numbers of a traceback are those of the page."""
    script = folder / "snippet.py"
    script.write_text(snippet.placed, encoding="utf-8")
    return subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True)
