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
    """The folder with ./run and fhecore/: `root`, else the variable CRENEL_ROOT, else the current folder or
    one above it. One that was found and not named must belong to this user or to root, and nobody else may
    write to it, since its programs are run. (The user's own group may: a umask of 002 makes clones so.)

    Raises
    ------
    UnsupportedError : no such folder
    """
    named = root or (Path(os.environ["CRENEL_ROOT"]) if "CRENEL_ROOT" in os.environ else None)
    places = [named] if named else [Path.cwd(), *Path.cwd().parents]
    for place in places:
        if (place / MARK).is_file() and (place / "run").is_file() and (named or _trusted(place)):
            return place.resolve()
    where = named or f"{Path.cwd()} or a folder above it"
    raise UnsupportedError(
        f"crenel fhecore works in a clone of the repository, and {where} is none (expected: run and {MARK}, "
        "not writable by others); name one by --root or CRENEL_ROOT",
        {"root": str(named or Path.cwd())},
    )


def _trusted(place: Path) -> bool:
    def closed(state: os.stat_result) -> bool:
        others = 0o002 if state.st_gid == os.getgid() else 0o022
        return state.st_uid in (0, os.getuid()) and not state.st_mode & others

    return closed(place.stat()) and closed((place / "run").stat())


def _run(root: Path | None, command: str, arguments: list[str]) -> None:
    tree = source_tree(root)
    print(f"crenel fhecore: {tree / 'run'} {command}", flush=True)
    raise typer.Exit(subprocess.run([str(tree / "run"), command, *arguments], cwd=tree).returncode)


@app.command()
def test(
    root: Root = None,
    full: Annotated[bool, typer.Option("--full", help="The long ones too, as ./run fhecore-full.")] = False,
) -> None:
    """Simulate, prove and compare: RTL, model and mapping. Exit status 1 when a test fails.

    Builds what it needs first, in the source tree; minutes the first time.
    """
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
