"""What MkDocs calls (mkdocs.yml, hooks): navigation, generated pages, drawings and tables, mathematics."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from check_types import Missing, find_stub

import api_pages
from book import blocks, formulas, notebooks, tables
from book.navigation import navigation as arranged

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
NAMES = {f"{api_pages.FOLDER}/{page}.md": title for page, title in api_pages.TITLES.items()}
NAMES |= {a: notebooks.title(f) for a, f in zip(notebooks.ADDRESSES, notebooks.NOTEBOOKS, strict=True)}


def navigation(docs: Path) -> list[object]:
    """Every page but the notes, by room."""
    there = {str(p.relative_to(docs)) for p in docs.rglob("*.md")}
    there = {page for page in there if not page.startswith("notes/")}
    return arranged(there | set(api_pages.ADDRESSES) | set(notebooks.ADDRESSES), NAMES)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Before anything is read."""
    config.nav = navigation(Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The generated pages join those of docs/."""
    from mkdocs.exceptions import PluginError
    from mkdocs.structure.files import File

    try:
        reference = list(api_pages.pages(find_stub(os.environ.get("CRENEL_STUB"))))
    except Missing as missing:
        raise PluginError(f"the API reference: {missing}") from None
    for path, text in (*reference, *notebooks.pages()):
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Marks become tables and drawings."""
    return blocks.filled(markdown, page.file.src_path)


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Mathematics becomes MathML, and what is too wide scrolls."""
    for entry in page.toc or ():
        entry.title = formulas.plain(entry.title)
    return tables.scrolling(tables.without_escapes(formulas.rendered(html, page.file.src_path)))
