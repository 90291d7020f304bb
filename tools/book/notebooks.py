"""The notebooks of examples/notebooks as pages.

What their cells print is on the page where CRENEL_NOTEBOOKS names a folder with executed copies, as
python/tests/test_notebooks.py leaves them there (`./run docs --notebooks`); the repository keeps none.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ADDRESSES = [f"tutorials/{file.stem}.md" for file in NOTEBOOKS]


def title(file: Path) -> str:
    """Its first heading, told apart from the guides'."""
    first = "".join(json.loads(file.read_text(encoding="utf-8"))["cells"][0]["source"])
    return f"Notebook: {first.splitlines()[0].removeprefix('# ')}"


def page(file: Path, executed: Path | None = None) -> str:
    """Markdown of a notebook; with what `executed`, its run copy, has printed and drawn."""
    cells = json.loads((executed or file).read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"]).strip()
        if text and cell["cell_type"] == "code":
            parts.append(f"```python\n{text}\n```")
            parts += [shown for output in cell["outputs"] if (shown := outcome(output))]
        elif text:
            parts.append(text)
    run = "!!! note\n"
    run += f"    This page is the notebook `examples/notebooks/{file.name}`.\n"
    run += "    The tests run it from its first cell to its last. To run it yourself:\n"
    run += "    `pip install jupyterlab 'crenel[demo,plot]'`, and open it."
    return "\n\n".join([*parts[:1], run, *parts[1:]]) + "\n"


def outcome(output: dict[str, Any]) -> str:
    """Of a cell: its picture, else its text."""
    kinds = output.get("data", {})
    if "image/svg+xml" in kinds:
        picture = "".join(kinds["image/svg+xml"])
        return f'<div class="outcome">{" ".join(picture[picture.index("<svg") :].split())}</div>'
    if "image/png" in kinds:
        data = "".join(kinds["image/png"]).replace("\n", "")
        return (
            f'<div class="outcome"><img alt="what the cell draws" src="data:image/png;base64,{data}"></div>'
        )
    text = "".join(output.get("text") or kinds.get("text/plain") or "").rstrip()
    return f'<pre class="outcome">{html.escape(text)}</pre>'.replace("\n", "&#10;") if text else ""


def pages() -> Iterator[tuple[str, str]]:
    """Address below docs/ and Markdown of each."""
    folder = os.environ.get("CRENEL_NOTEBOOKS")
    for address, file in zip(ADDRESSES, NOTEBOOKS, strict=True):
        copy = Path(folder, file.name) if folder else None
        yield address, page(file, copy if copy and copy.is_file() else None)
