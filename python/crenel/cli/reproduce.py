"""``crenel reproduce``: tables and figures of four papers beside this library's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crenel.cli.fhecore import source_tree
from crenel.cli.output import table
from crenel.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from crenel.reproduce import Item, Outcome, Results

RESULTS = Path("bench") / "results"
RECORDS = "results"  # folder of new records, below --out


class Which(str, Enum):
    """A paper, or all."""

    theodosian = "theodosian"
    cheddar = "cheddar"
    bolt_fhe = "bolt-fhe"
    fhecore = "fhecore"
    all = "all"


def reproduce(
    paper: Annotated[Which, typer.Argument(help="Which paper, or all.")],
    number_of_table: Annotated[int | None, typer.Option("--table", help="One table, by its number.")] = None,
    number_of_figure: Annotated[
        int | None, typer.Option("--figure", help="One figure, by its number.")
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option("--from", help="A folder of records, more than once: the first that has a file counts."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for index.html, reproduction.md and figures, which are not written without it, and "
            "for the records of --device, which are then in ./reproduction."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Measure first: cuda, cuda:<index>, cuda:dry, cpu or ref.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="To measure: HELR's table of rows.")] = None,
    weights: Annotated[Path | None, typer.Option(help="To measure: ResNet-20's weights.")] = None,
    images: Annotated[Path | None, typer.Option(help="To measure: CIFAR-10's images, a folder.")] = None,
    toy: Annotated[
        bool, typer.Option("--toy", help="To measure: toy rings and small batches, INSECURE and labelled so.")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Write all as a page of documentation.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Of --page: the folder of its pictures.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Of --page: write nothing, exit with 1 where it is stale.")
    ] = False,
) -> None:
    """Render tables and figures of four papers beside this library's, from records of measurements.

    Without --device nothing is measured. One item is printed; of a paper or all, a list of what there is.
    """
    from crenel import reproduce as library

    chosen = _chosen(paper, number_of_table, number_of_figure)
    if (check or figures) and page is None:
        raise ParameterError("--check and --figures are of --page FILE")
    if page is not None and (figures is None or paper is not Which.all or len(chosen) == 1):
        raise ParameterError("--page is of all papers, and needs --figures FOLDER")
    folders = _folders(results, needed=device is None)
    failed = False
    if device is not None:
        records = (out or Path("reproduction")) / RECORDS
        failed = _measured(chosen, device, records, {"data": data, "weights": weights, "images": images}, toy)
        folders = [records, *folders]
    elif data or weights or images:
        raise ParameterError("--data, --weights and --images are of --device: without it nothing is measured")
    found = library.Results(folders, toy=toy)
    if page is not None and figures is not None:
        raise typer.Exit(_page(found, page, figures, check))
    outcomes = library.outcomes(found, chosen)
    _tell(outcomes)
    if out is not None:
        files = library.write(outcomes, found, out)
        print(f"\n{len(files)} files; look at {out / 'index.html'}")
    raise typer.Exit(1 if failed else 0)


def _chosen(paper: Which, table_: int | None, figure: int | None) -> list[Item]:
    from crenel import reproduce as library

    if table_ is not None and figure is not None:
        raise ParameterError("--table and --figure: one of them")
    if paper is Which.all:
        if table_ is not None or figure is not None:
            raise ParameterError("--table and --figure are of one paper, not of all")
        return list(library.items())
    if table_ is not None:
        return [library.find(paper.value, "table", table_)]
    if figure is not None:
        return [library.find(paper.value, "figure", figure)]
    return list(library.paper(paper.value).items)


def _folders(named: list[Path] | None, needed: bool) -> list[Path]:
    """Those that were named; else of the clone that this is called in."""
    from crenel.reproduce.render import with_model

    if named:
        return with_model(named)
    try:
        return with_model([source_tree(None) / RESULTS])
    except UnsupportedError:
        if needed:
            raise UnsupportedError(
                "crenel reproduce needs records of measurements: --from FOLDER (a clone of the repository "
                "has bench/results), or --device to measure"
            ) from None
        return []


def _measured(
    chosen: Sequence[Item], device: str, records: Path, files: Mapping[str, Path | None], toy: bool
) -> bool:
    """Runs what can run; did something fail?"""
    from crenel.reproduce import running

    try:
        root: Path | None = source_tree(None)
    except UnsupportedError:
        root = None
    found = {name: path.resolve() for name, path in files.items() if path}
    asked = running.Asked(device, records.resolve(), toy=toy, root=root, **found)
    planned = running.plans(chosen, asked)
    return bool(running.run(planned, asked, lambda line: print(line, flush=True)))


def _page(found: Results, page: Path, figures: Path, check: bool) -> int:
    from crenel import reproduce as library

    if not check:
        files = library.write_page(found, page, figures)
        print(f"{len(files)} files; {page}")
        return 0
    old = library.stale(found, page, figures)
    for path in old:
        print(f"{path} is out of date: crenel reproduce all --page {page} --figures {figures}")
    return 1 if old else 0


def _tell(outcomes: Sequence[Outcome]) -> None:
    """One item with all that is known; of several a line each."""
    from crenel.reproduce.page import notes, summary
    from crenel.reproduce.text import rows

    if len(outcomes) > 1:
        lines = [(o.item.paper, o.item.label, o.status, o.item.title) for o in outcomes]
        table(("paper", "item", "status", "what"), lines)
        print("\n" + "\n".join(summary(outcomes)))
        return
    (o,) = outcomes
    print(f"{o.item.paper}, {o.item.label} ({o.item.place}): {o.item.title}\n{o.status}: {o.item.shows}")
    for each in o.tables:
        if each.rows:
            print()
            table([str(c) for c in each.columns], rows(each), each.title)
    for heading, lines_ in notes(o):
        print(f"\n{heading}:")
        for line in lines_:
            print(f"  {line}")
