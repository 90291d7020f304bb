"""The guide's table of modules is made from the modules, the page of operators from the importers."""

import os
from pathlib import Path

import pytest

from crenel import nn
from crenel.nn.functions import FAMILIES, FUNCTIONS
from crenel.nn.importers import keras_layers, onnx_operators, torch_functions

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "guide" / "nn.md"
OPERATORS = DOCS / "reference" / "nn-operators.md"
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


@pytest.mark.generated
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
    assert set(FAMILIES) == {getattr(getattr(nn, name), "family", None) for name in nn.__all__} - {None}


def operators() -> str:
    """The page of what can be imported: a row an operator, what it becomes is its docstring."""

    def is_(make: object) -> str:
        return " ".join((make.__doc__ or "").split("\n\n")[0].split())

    classes = [(f"`{name}`", is_(make)) for name, (make, _) in torch_functions.MODULES.items()]
    functions = [(f"`{name}`", is_(make)) for name, make in torch_functions.FUNCTIONS.items()]
    onnx = [(f"`{name}`", is_(make)) for name, make in onnx_operators.OPERATORS.items()]
    keras = [(f"`{name}`", is_(make)) for name, make in keras_layers.LAYERS.items()]
    by_name = [(f"`{name}`", is_(make)) for name, make in keras_layers.ACTIVATIONS.items()]
    assert all(text for _, text in (*classes, *functions, *onnx, *keras, *by_name))

    def order(row: tuple[str, str]) -> str:
        return row[0].lower()

    parts = [
        "# Operators of PyTorch, ONNX and Keras\n",
        "What `nn.from_torch`, `nn.from_onnx` and `nn.from_keras` import, and what becomes of it.",
        "All else is refused, with one error that names all of it. Made of the importers by",
        "`test_nn_guide.py`; do not edit.",
    ]
    for title, head, rows in (
        ("PyTorch: classes of torch.nn", "Class", classes),
        ("PyTorch: functions, methods and operators", "Function", functions),
        ("ONNX: operators of its own domain", "Operator", onnx),
        ("Keras: layers", "Layer", keras),
        ("Keras: activations by name", "Activation", by_name),
    ):
        parts += [f"\n## {title}\n", f"| {head} | Becomes |", "|---|---|"]
        parts += [f"| {name} | {text} |" for name, text in sorted(rows, key=order)]
    return "\n".join(parts) + "\n"


@pytest.mark.generated
def test_the_tables_of_operators_are_up_to_date():
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        OPERATORS.write_text(operators(), encoding="utf-8")
        return
    assert OPERATORS.read_text(encoding="utf-8") == operators(), "run with CRENEL_UPDATE_DOCS=1"
