"""From records to files: outcomes of items, pages, pictures, and whether pages are what the records say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from crenel.reproduce import builders, draw, page
from crenel.reproduce.charts import digest
from crenel.reproduce.growth import curves
from crenel.reproduce.outcome import BUILDERS, Outcome, Work
from crenel.reproduce.registry import Item
from crenel.reproduce.registry import items as all_items
from crenel.reproduce.results import Results

MODEL = Path("fhecore") / "sim" / "data"
REGISTERED = builders.__all__  # and imported: all builders are known


def with_model(folders: Sequence[Path]) -> list[Path]:
    """And, where a folder is bench/results of a clone, that clone's records of the model of a GPU."""
    out = list(folders)
    for folder in folders:
        beside = folder.resolve().parent.parent / MODEL
        if folder.resolve().parts[-2:] == ("bench", "results") and beside.is_dir():
            out.append(beside)
    return list(dict.fromkeys(out))


def outcome(item: Item, results: Results) -> Outcome:
    """What the records hold of an item."""
    work = Work(item, results)
    if not item.not_applicable:
        BUILDERS[item.key](work)
    return work.done()


def outcomes(results: Results, chosen: Iterable[Item] | None = None) -> list[Outcome]:
    """Of all items, or of those."""
    return [outcome(item, results) for item in (all_items() if chosen is None else chosen)]


def pages(found: Sequence[Outcome], results: Results, figures_at: str) -> tuple[str, dict[str, str], str]:
    """(Markdown, SVG by file, HTML); of all items with the growth curves."""
    grown = curves(results) if len(found) == sum(1 for _ in all_items()) else []
    pictures = {name: draw.svg(chart) for name, chart in page.figures(found, grown).items()}
    return page.markdown_page(found, grown, figures_at), pictures, page.html_page(found, grown, pictures)


def write(found: Sequence[Outcome], results: Results, folder: Path) -> list[Path]:
    """reproduction.md with figures/*.svg, and index.html, which needs neither. Returns the files.

    Raises
    ------
    UnsupportedError : matplotlib is not installed
    """
    markdown, pictures, html = pages(found, results, "figures")
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    files = {folder / "reproduction.md": markdown, folder / "index.html": html}
    files |= {folder / "figures" / name: svg for name, svg in pictures.items()}
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


def write_page(results: Results, target: Path, figures: Path) -> list[Path]:
    """The Markdown page of all items and its pictures where they belong; pictures that none needs go."""
    markdown, pictures, _ = pages(outcomes(results), results, _link(target, figures))
    figures.mkdir(parents=True, exist_ok=True)
    for old in figures.glob("*.svg"):
        if old.name not in pictures:
            old.unlink()
    files = {target: markdown} | {figures / name: svg for name, svg in pictures.items()}
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


def stale(results: Results, target: Path, figures: Path) -> list[Path]:
    """What of the page and its pictures is not what the records say. Pictures are compared by the digests of
    their data, so that another matplotlib makes none stale."""
    found = outcomes(results)
    grown = curves(results)
    markdown = page.markdown_page(found, grown, _link(target, figures))
    out = [] if target.is_file() and target.read_text(encoding="utf-8") == markdown else [target]
    charts = page.figures(found, grown)
    for name, chart in charts.items():
        path = figures / name
        if not path.is_file() or draw.drawn_from(path.read_text(encoding="utf-8")) != digest(chart):
            out.append(path)
    return out + sorted(p for p in figures.glob("*.svg") if p.name not in charts)


def _link(target: Path, figures: Path) -> str:
    return Path(os.path.relpath(figures.resolve(), target.resolve().parent)).as_posix()
