"""A notebook that is really run: the bar stands in its output, and an interrupt of the kernel is heard."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest
from needed import needs

needs("notebook", "ipykernel", "nbclient")

SETUP = """
import warnings
from crenel import ckks, progress_bar
progress_bar.SHOWN_AFTER_S = 0.0
context = ckks.Context(ckks.preset("leveled-n14-s40"), device="cpu")
client = context.keygen()
"""
KEYS = "keys = client.evaluation_keys(rotations=range(1, 9), progress=True); keys.count"
LONG = "while True: client.evaluation_keys(rotations=range(1, 60))"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel of this interpreter, with no file of the user's."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    manager = AsyncKernelManager()
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
    )
    return manager


def notebook(*sources: str):
    import nbformat

    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])


def run(kernel, book, after=None):
    from nbclient import NotebookClient

    client = NotebookClient(book, km=kernel, timeout=300, allow_errors=True)

    async def both():
        if after is not None:
            task = asyncio.create_task(after())
        await client.async_execute()
        if after is not None:
            await task

    asyncio.run(both())
    return [cell.outputs for cell in book.cells]


def test_the_bar_is_in_the_notebook(kernel):
    _, outputs = run(kernel, notebook(SETUP, KEYS))
    html = [o.data["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    assert len(html) == 1, outputs  # one output, which was replaced
    assert "9/9" in html[0] and "evaluation keys" in html[0] and "━" in html[0]
    assert not [o for o in outputs if o.output_type == "stream"]
    assert outputs[-1].data["text/plain"] == "9"


def test_an_interrupt_is_heard(kernel, tmp_path):
    times = {}
    begun = tmp_path / "begun"

    async def interrupt():
        while not begun.exists():
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)  # into the work
        times["sent"] = time.monotonic()
        await kernel.interrupt_kernel()

    book = notebook(
        SETUP,
        f"import time\nopen({str(begun)!r}, 'w').close()\n"
        f"try:\n    {LONG}\nfinally:\n    print(time.monotonic())",
        "1 + 1",
    )
    _, outputs, last = run(kernel, book, interrupt)
    (error,) = [o for o in outputs if o.output_type == "error"]
    assert error.ename == "KeyboardInterrupt"
    heard = float(next(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout"))
    print(f"heard after {heard - times['sent']:.3f} s")
    assert heard - times["sent"] < 5.0  # by the clock of a busy machine; test_interrupt.py measures
    assert last[-1].data["text/plain"] == "2"
