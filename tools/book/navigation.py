"""Which page stands where: one room for each kind of reader, then what everybody looks up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# Room -> its pages in the order in which one reads them. A page that is not there yet is left out; one that
# stands in no list goes to the room that takes its folder (TAKES).
ROOMS: dict[str, list[str]] = {
    "Start": ["index", "guide/getting-started", "reference/comparison", "reference/pictures"],
    "Data scientist": [
        "readers/data-scientist",
        "guide/arrays",
        "guide/nn",
        "guide/networks",
        "guide/train",
        "guide/sort",
        "guide/integers",
        "tutorials/ten_minutes",
        "tutorials/choosing_activations",
        "tutorials/what_went_wrong",
        "theory/attention",
        "theory/training",
        "theory/sign",
        "reference/nn-operators",
        "reference/workloads",
    ],
    "Application engineer": [
        "readers/application-engineer",
        "guide/serve",
        "guide/browser",
        "tutorials/a_service",
        "guide/keys-on-a-server",
        "guide/sharing-results",
        "guide/threads-and-forks",
        "guide/gpus",
        "guide/long-work",
        "guide/memory",
        "guide/programs",
        "guide/cpp",
        "reference/service",
        "reference/file-format",
    ],
    "Cryptographer": [
        "readers/cryptographer",
        "guide/bootstrapping",
        "guide/bootstrap_precision",
        "guide/tfhe",
        "guide/bridge",
        "tutorials/parameters_and_noise",
        "notation",
        "theory/ckks-primes",
        "theory/bootstrapping",
        "theory/precision",
        "theory/tfhe",
        "theory/security",
        "theory/placement",
        "reference/parameters",
        "reference/tfhe-parameters",
    ],
    "GPU and hardware": [
        "readers/hardware-engineer",
        "architecture",
        "theory/gpu",
        "guide/traffic_account",
        "guide/tuning",
        "guide/ablation",
        "guide/fhecore",
        "reference/benchmarks",
        "reference/gpus-beyond-a-host",
        "guide/reproducing",
    ],
    "API": [
        f"reference/api/{page}"
        for page in (
            "crenel",
            "ckks",
            "tfhe",
            "bridge",
            "nn",
            "workloads",
            "client",
            "serve",
            "distributed",
            "fhecore",
            "cpp",
            "cpp-ckks",
            "cpp-circuits",
            "cpp-tfhe",
            "cpp-bridge",
            "cpp-device",
            "cpp-core",
            "cpp-fhecore",
        )
    ],
    "Reference": [
        "reference/command-line",
        "reference/errors",
        "reference/files",
        "reference/releases",
        "reference/reproduction",
    ],
    "Decisions": [],
}
# Folder -> the room of those of its pages that stand in no list above.
TAKES = {
    "": "Reference",
    "guide": "Application engineer",
    "readers": "Start",
    "tutorials": "Data scientist",
    "theory": "Cryptographer",
    "reference": "Reference",
    "reference/api": "API",
    "design": "Decisions",
}


def navigation(pages: Iterable[str], names: dict[str, str]) -> list[object]:
    """`pages`: addresses below docs/; `names`: titles of pages that do not say it themselves."""
    there = {page.removesuffix(".md") for page in pages}
    known = {page for room in ROOMS.values() for page in room}
    rooms = {room: [page for page in listed if page in there] for room, listed in ROOMS.items()}
    for page in sorted(there - known):
        folder = str(Path(page).parent) if "/" in page else ""
        if folder not in TAKES:
            raise ValueError(f"{page}.md: tools/book/navigation.py names no room for the folder {folder}")
        rooms[TAKES[folder]].append(page)
    return [
        {room: [_entry(f"{page}.md", names) for page in inside]} for room, inside in rooms.items() if inside
    ]


def _entry(page: str, names: dict[str, str]) -> object:
    return {names[page]: page} if page in names else page
