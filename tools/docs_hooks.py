"""What MkDocs calls (mkdocs.yml, hooks): navigation with every page, and the pages of the API reference."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from check_types import Missing, find_stub

import api_pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]
# Pages in the order in which one reads them; those of a folder that stand here nowhere follow by name.
SECTIONS: dict[str, tuple[str, list[str]]] = {
    "Guide": (
        "guide",
        [
            "getting-started",
            "arrays",
            "tfhe",
            "bootstrapping",
            "bootstrap_precision",
            "train",
            "nn",
            "networks",
            "sharing-results",
            "keys-on-a-server",
            "serve",
            "threads-and-forks",
            "long-work",
            "sort",
            "memory",
            "cpp",
            "fhecore",
            "traffic_account",
        ],
    ),
    "API": ("reference/api", ["crenel", "ckks", "tfhe", "fhecore", "nn", "cpp"]),
    "Reference": (
        "reference",
        [
            "parameters",
            "tfhe-parameters",
            "errors",
            "command-line",
            "files",
            "file-format",
            "service",
            "benchmarks",
            "workloads",
            "nn-operators",
        ],
    ),
    "Theory": ("theory", []),
    "Decisions": ("design", []),
}
FRONT = ["index.md", "notation.md", "architecture.md"]
NAMES = {f"{api_pages.FOLDER}/{page}.md": title for page, title in api_pages.TITLES.items()}


def navigation(docs: Path) -> list[object]:
    """Every page but the notes, by section."""
    there = {str(p.relative_to(docs)) for p in docs.rglob("*.md")} | set(api_pages.ADDRESSES)
    nav: list[object] = [page for page in FRONT if page in there]
    for title, (folder, first) in SECTIONS.items():
        inside = sorted(p for p in there if str(Path(p).parent) == folder)
        known = [f"{folder}/{name}.md" for name in first if f"{folder}/{name}.md" in there]
        pages = known + [page for page in inside if page not in known]
        nav.append({title: [{NAMES[p]: p} if p in NAMES else p for p in pages]})
    return nav


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Before anything is read."""
    config.nav = navigation(Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The generated pages join those of docs/."""
    from mkdocs.exceptions import PluginError
    from mkdocs.structure.files import File

    try:
        for path, text in api_pages.pages(find_stub(os.environ.get("CRENEL_STUB"))):
            files.append(File.generated(config, path, content=text))
    except Missing as missing:
        raise PluginError(f"the API reference: {missing}") from None
    return files
