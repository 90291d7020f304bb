"""``crenel demo``: real work under encryption, from nothing to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

app = typer.Typer(help="Classify tumours under encryption (CKKS).", invoke_without_command=True)


@app.callback()
def patients(
    context: typer.Context,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref: where the server computes.")
    ] = "auto",
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw predicted against clear probabilities, to a new file: .png, .pdf or .svg."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split into training and test patients.", min=0)] = 1,
    patients: Annotated[int, typer.Option(help="Patients to classify under encryption.")] = 256,
) -> None:
    """Classify patients' tumours under encryption and compare with the clear model."""
    if context.invoked_subcommand is not None:
        return
    from crenel.cli.output import expect_figure

    expect_figure(plot)
    from crenel.workloads.prediction import run

    raise typer.Exit(run(device=device, plot=plot, seed=seed, patients=patients))


@app.command()
def nn(
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref: where the server computes.")
    ] = "auto",
    images: Annotated[int, typer.Option(help="Digits to classify under encryption.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the training and of the choice of images.", min=0)] = 1,
) -> None:
    """Train a small network, and classify handwritten digits that the server cannot see."""
    from crenel.workloads.networks.demo import run

    raise typer.Exit(run(device=device, images=images, seed=seed))


@app.command()
def serve(
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda:<index> or ref: where the service's worker computes.")
    ] = "cpu",
    images: Annotated[int, typer.Option(help="Digits to classify under encryption.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the training and of the choice of images.", min=0)] = 1,
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.")] = 8400,
    page: Annotated[Optional[Path], typer.Option(help="Folder of a page for browsers.")] = None,  # noqa: UP045
    stay: Annotated[bool, typer.Option(help="Serve on until Ctrl-C once the digits are classified.")] = False,
) -> None:
    """Start a service, and classify handwritten digits by it: what is sent, and what the service saw."""
    from crenel.workloads.networks.demo_serve import run

    raise typer.Exit(run(device=device, images=images, seed=seed, port=port, page=page, stay=stay))


@app.command()
def tfhe(
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref: where the server computes.")
    ] = "auto",
    cipher: Annotated[
        str, typer.Option(help="aes, present, or auto: aes where it ends within two minutes.")
    ] = "auto",
    blocks: Annotated[int, typer.Option(help="Blocks side by side.", max=1 << 16)] = 1,
    rounds: Annotated[int, typer.Option(help="Fewer rounds than the cipher has; 0: all.")] = 0,
) -> None:
    """Run AES-128 or PRESENT-80 on encrypted bits and compare with the standard's test vector."""
    from crenel.workloads.ciphers.run import run

    raise typer.Exit(run(device=device, cipher=cipher, blocks=blocks, rounds=rounds or None))
