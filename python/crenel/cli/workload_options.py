"""The options that every command of ``crenel workload`` has, stated once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, cast, get_type_hints

import typer

if TYPE_CHECKING:
    from crenel.workloads.session import RunOptions

P = ParamSpec("P")


@dataclass(frozen=True)
class Common:
    """What a command was given of them."""

    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref.")] = "auto"
    params: Annotated[
        str | None,
        typer.Option(help="A set of crenel params list; default: a toy set on CPUs, a full one on GPUs."),
    ] = None
    data: Annotated[
        Path | None, typer.Option(help="A file or folder of your own; default: data that are there.")
    ] = None
    plot: Annotated[Path | None, typer.Option(help="Draw it: .png, .pdf or .svg.")] = None
    seed: Annotated[int, typer.Option(help="Of the split, the order of blocks, or the values.")] = 1
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A folder for key, data and state: the same command goes on from it."),
    ] = None
    variant: Annotated[str, typer.Option(help="crenel, or paper: the published circuit.")] = "crenel"
    energy: Annotated[bool, typer.Option("--energy", help="Sample the GPU's power by nvidia-smi.")] = False
    warm: Annotated[bool, typer.Option("--warm", help="Run a part once before, untimed.")] = False
    stages: Annotated[bool, typer.Option(help="Time the stages; on a GPU this slows the run.")] = True
    graph: Annotated[bool, typer.Option("--graph", help="Record parts once, and replay them.")] = False

    def of_the_run(self) -> RunOptions:
        """Those that a driver takes."""
        from crenel.workloads.session import RunOptions

        return RunOptions(self.seed, cast(Any, self.variant), self.checkpoint, self.warm, self.graph)


def with_common(command: Callable[Concatenate[Common, P], None]) -> Callable[..., None]:
    """The command with the fields of `Common` as options of its own, before the others.

    typer reads the options off the signature: the one that is set here.
    """
    hints = get_type_hints(Common, include_extras=True) | get_type_hints(command, include_extras=True)
    shared = [f.name for f in fields(Common)]
    given = list(inspect.signature(Common).parameters.values())
    own = list(inspect.signature(command).parameters.values())[1:]

    @functools.wraps(command)
    def call(**options: Any) -> None:
        common = Common(**{name: options.pop(name) for name in shared})
        cast("Callable[..., None]", command)(common, **options)

    parameters = [p.replace(annotation=hints[p.name]) for p in (*given, *own)]
    call.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call
