"""The guide's table of modules is made from the modules."""

import os
from pathlib import Path

from crenel import nn
from crenel.nn.functions import FUNCTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "nn.md"
BEGIN, END = "<!-- modules -->\n", "<!-- /modules -->"


def table() -> str:
    """A row a class of crenel.nn that can stand in a network: its name and what its docstring begins with."""
    kinds = [getattr(nn, name) for name in nn.__all__]
    rows = []
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, nn.Module) and kind is not nn.Module:
            text = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
            rows.append(f"| `{kind.__name__}` | {text.replace('|', chr(92) + '|')} |")
    return "\n".join(["| Module | Is |", "|---|---|", *sorted(rows)]) + "\n"


def test_the_table_of_modules_is_up_to_date():
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        PAGE.write_text(text[:start] + table() + text[end:], encoding="utf-8")
        return
    assert text[start:end] == table(), "run with CRENEL_UPDATE_DOCS=1"


def test_every_function_has_a_module():
    found = {getattr(getattr(nn, name), "function", None) for name in nn.__all__}
    assert set(FUNCTIONS) <= found
