"""The options that commands of ``crenel workload`` share, stated once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, cast, get_type_hints

import typer

if TYPE_CHECKING:
    from crenel.workloads.networks import RunOptions as NetworkOptions
    from crenel.workloads.session import RunOptions

P = ParamSpec("P")
S = TypeVar("S", bound="Shared")


@dataclass(frozen=True)
class Shared:
    """What a command was given of those that all have."""

    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref.")] = "auto"
    params: Annotated[
        str | None,
        typer.Option(help="A set of crenel params list; default: a toy set on CPUs, a full one on GPUs."),
    ] = None
    data: Annotated[
        Path | None, typer.Option(help="A file or folder of your own; default: data that are there.")
    ] = None
    plot: Annotated[Path | None, typer.Option(help="Draw it, to a new file: .png, .pdf or .svg.")] = None
    energy: Annotated[bool, typer.Option("--energy", help="Sample the GPU's power by nvidia-smi.")] = False
    warm: Annotated[bool, typer.Option("--warm", help="Run a part once before, untimed.")] = False
    stages: Annotated[bool, typer.Option(help="Time the stages; on a GPU this slows the run.")] = True


@dataclass(frozen=True)
class Common(Shared):
    """And of those of programs with rounds or iterations, of Crenel's own data."""

    seed: Annotated[int, typer.Option(help="Of the split, the order of blocks, or the values.", min=0)] = 1
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A folder for key, data and state: the same command goes on from it."),
    ] = None
    variant: Annotated[str, typer.Option(help="crenel, or paper: the published circuit.")] = "crenel"
    graph: Annotated[bool, typer.Option("--graph", help="Record parts once, and replay them.")] = False

    def of_the_run(self) -> RunOptions:
        """Those that a driver takes."""
        from crenel.workloads.session import RunOptions

        return RunOptions(self.seed, cast(Any, self.variant), self.checkpoint, self.warm, self.graph)


@dataclass(frozen=True)
class OfNetworks(Shared):
    """And of those of networks."""

    params: Annotated[
        str | None,
        typer.Option(help="A set of crenel params list; default: the network's own, full on CPUs too."),
    ] = None
    samples: Annotated[
        int,
        typer.Option(
            "--images", "--samples", help="To compute under encryption; of --inputs all.", max=1 << 20
        ),
    ] = 10
    batch: Annotated[int, typer.Option(help="Samples of a run; 0: the program's, or 1.", max=1 << 16)] = 0
    activation: Annotated[str, typer.Option(help="fit, chebyshev or minimax.")] = "fit"
    degree: Annotated[
        int, typer.Option(help="Of the polynomials; 0: the least that agrees, or the network's own.")
    ] = 0
    composite: Annotated[
        str, typer.Option(help="Degrees of the sign that minimax composes, as 15,15,27.")
    ] = "15,15,15"
    margin: Annotated[
        float, typer.Option(help="Ranges, of what the calibration shows; 0: the network's own, 2 or less.")
    ] = 0.0
    costs: Annotated[
        str | None,
        typer.Option(
            help="By whose times layouts and bootstraps are chosen, as 'NVIDIA H100'; default: the device's, "
            "or operations are counted."
        ),
    ] = None
    program: Annotated[
        Path | None, typer.Option(help="A compiled program's file, in place of compiling.")
    ] = None
    save: Annotated[Path | None, typer.Option(help="Write the program to a file.")] = None
    simulate_only: Annotated[
        bool, typer.Option("--simulate-only", help="In the clear, with errors; no key, no device.")
    ] = False
    errors: Annotated[
        bool, typer.Option("--errors", help="Decrypt every layer of one more run: a report of errors.")
    ] = False
    clear: Annotated[
        Path | None,
        typer.Option(help="A file .npz of the results in the clear: made, or read where it is there."),
    ] = None
    inputs: Annotated[
        Path | None,
        typer.Option(help="A file of --clear: its samples and results, in place of weights and data."),
    ] = None
    graph: Annotated[
        bool, typer.Option("--graph", help="Replay each run as one recording, which the first one makes.")
    ] = False
    lean: Annotated[
        bool,
        typer.Option(
            "--lean",
            help="Less memory, more time: one kind of bootstrap, weights encoded by layer in every run.",
        ),
    ] = False

    def of_the_run(self) -> NetworkOptions:
        """Those that the driver takes."""
        from crenel.workloads.networks import RunOptions as NetworkOptions

        return NetworkOptions(
            self.batch or None, self.program, self.save, cast(Any, self.activation), self.degree or None,
            self.margin or None, self.warm, self.stages, self.errors, self.energy, self.graph,
            self.inputs or self.clear, self.costs, self.composite, self.lean,
        )  # fmt: skip


def with_options(
    kind: type[S],
) -> Callable[[Callable[Concatenate[S, P], None]], Callable[..., None]]:
    """The command with the fields of `kind`, its first argument, as options before its own."""
    return lambda command: _with(kind, command)


def _with(kind: type[S], command: Callable[Concatenate[S, P], None]) -> Callable[..., None]:
    """typer reads the options off the signature: the one that is set here."""
    hints = get_type_hints(kind, include_extras=True) | get_type_hints(command, include_extras=True)
    shared = [f.name for f in fields(kind)]
    given = list(inspect.signature(kind).parameters.values())
    own = list(inspect.signature(command).parameters.values())[1:]

    @functools.wraps(command)
    def call(**options: Any) -> None:
        common = kind(**{name: options.pop(name) for name in shared})
        cast("Callable[..., None]", command)(common, **options)

    parameters = [p.replace(annotation=hints[p.name]) for p in (*given, *own)]
    call.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call
