"""``crenel fhecore``: the hardware unit's own tools. They live in the source tree, not in an installation."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from crenel.errors import UnsupportedError

app = typer.Typer(help="The hardware unit FHECore: verification, synthesis, model.", no_args_is_help=True)

MARK = Path("fhecore") / "configs.toml"
Root = Annotated[Path | None, typer.Option(help="The source tree; without it, that of the current folder.")]
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def source_tree(root: Path | None) -> Path:
    """The folder with ./run and fhecore/: `root`, the variable CRENEL_ROOT, the current folder or one
    above it, or where this package lies.

    Raises
    ------
    UnsupportedError : no such folder
    """
    if root is None and "CRENEL_ROOT" in os.environ:
        root = Path(os.environ["CRENEL_ROOT"])
    places = [root] if root else [Path.cwd(), *Path.cwd().parents, *Path(__file__).resolve().parents]
    for place in places:
        if (place / MARK).is_file() and (place / "run").is_file():
            return place.resolve()
    raise UnsupportedError(
        f"crenel fhecore works in a clone of the repository, and {root or Path.cwd()} is none "
        f"(expected: {MARK}); name one by --root",
        {"root": str(root or Path.cwd())},
    )


def _run(root: Path | None, command: str, arguments: list[str]) -> None:
    tree = source_tree(root)
    raise typer.Exit(subprocess.run([str(tree / "run"), command, *arguments], cwd=tree).returncode)


@app.command()
def test(
    root: Root = None,
    full: Annotated[bool, typer.Option("--full", help="The long ones too, as ./run fhecore-full.")] = False,
) -> None:
    """Simulate, prove and compare: RTL, model and mapping. Exit status 1 when a test fails."""
    _run(root, "fhecore-full" if full else "fhecore-test", [])


@app.command(context_settings=PASSED_ON)
def syn(context: typer.Context, root: Root = None) -> None:
    """Synthesis for ASAP7: area, frequency, critical path. Exit status 77: library or tool missing."""
    _run(root, "fhecore-syn", context.args)


@app.command(context_settings=PASSED_ON)
def sim(context: typer.Context, root: Root = None) -> None:
    """The model of a GPU with the unit: calibration, validation, predictions."""
    _run(root, "fhecore-sim", context.args)


@app.command(context_settings=PASSED_ON)
def report(context: typer.Context, root: Root = None) -> None:
    """Tables and plots of the model."""
    _run(root, "fhecore-report", context.args)
