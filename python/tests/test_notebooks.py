"""The notebooks of examples/ run from their first cell to their last, and are kept without outputs."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from needed import needs

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and not any(cell["outputs"] or cell["execution_count"] for cell in code)


NEEDED = {"a_service": ("fastapi", "uvicorn", "sqlalchemy", "fsspec", "prometheus_client", "httpx")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    needs("notebook", "ipykernel", "nbclient")
    needs("demo", "sklearn", "matplotlib")
    if modules := NEEDED.get(path.stem):
        needs("demo", *modules)
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    manager = AsyncKernelManager()
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
    )
    book = nbformat.read(path, as_version=4)
    start = time.perf_counter()
    NotebookClient(book, km=manager, timeout=300).execute()  # an error of a cell is raised
    print(f"{path.name}: {time.perf_counter() - start:.1f} s")
    if out := os.environ.get("CRENEL_NOTEBOOKS"):  # to look at them with their outputs
        nbformat.write(book, Path(out) / path.name)
