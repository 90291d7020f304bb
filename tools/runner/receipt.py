"""tests/gpu_receipt.json: proof that the suite passed on a GPU, for exactly these sources.

It holds one hash for each room of the repository that the suite on a GPU compiles or reads, so that what has
changed since can be named, and the reasons of the tests that were skipped in that run. Prose is left out
(README.md and docs/, whose snippets python/tests runs), and so are benchmarks that no test runs and the
hardware unit's own files but its model: they have tests without a GPU.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

from runner import changes, cuda, package
from runner.counts import Counts
from runner.shell import ROOT, files_below, tree_hash

FORMAT = 2
NAME = "tests/gpu_receipt.json"
# What the package is made of, which includes benchmarks that its tests run, and the tests.
ROOMS = (*package.SOURCES, "python/tests", "examples", "tests")
SPLIT = ("src", "src/backends", "tests")  # each folder in these is a room; what lies beside them is one more


def rooms(root: Path = ROOT) -> dict[str, str]:
    """Name -> SHA-256 of the names and contents of the files in it. "src/*": the files beside the folders."""
    hashes = {}
    for name in _room_names(root):
        folder = name.removesuffix("/*")
        inside = files_below(root / folder) if name == folder else _files(root / folder)
        kept = [f.relative_to(root).as_posix() for f in inside]
        hashes[name] = tree_hash([f for f in kept if f != NAME], root=root)
    return hashes


def _files(folder: Path) -> list[Path]:
    return [f for f in folder.iterdir() if f.is_file()]


def _room_names(root: Path) -> list[str]:
    todo, names = [room for room in ROOMS if (root / room).exists()], []
    while todo:
        room = todo.pop(0)
        if room not in SPLIT:
            names.append(room)
            continue
        inside = sorted((root / room).iterdir())
        todo += [f"{room}/{f.name}" for f in inside if f.is_dir() and f.name != "__pycache__"]
        names.append(f"{room}/*")
    return sorted(names)


def staleness(root: Path = ROOT) -> list[str]:
    """Lines that say why the receipt does not cover the sources and tests here; empty when it does."""
    try:
        record = json.loads((root / NAME).read_text())
    except FileNotFoundError:
        return [f"{NAME} is missing: the CUDA tests have not been recorded as passed."]
    except ValueError as error:
        return [f"{NAME} cannot be read ({error}): the CUDA tests have not been recorded as passed."]
    recorded = record.get("rooms") if isinstance(record, dict) else None
    if not isinstance(recorded, dict) or record.get("format") != FORMAT:
        return [f"{NAME} is stale: it is of another form than {FORMAT}, and does not say what it covered."]
    now = rooms(root)
    changed = sorted(name for name in now.keys() | recorded.keys() if now.get(name) != recorded.get(name))
    lines = []
    if changed:
        commit = str(record.get("commit", "unknown"))
        lines += [
            f"{NAME} is stale: {len(changed)} of {len(now.keys() | recorded.keys())} rooms changed since",
            f"the suite passed on a GPU ({record.get('gpu')}, {record.get('date')}, commit {commit[:12]}):",
            *(f"    {name}{_since(root, name, commit, now, recorded)}" for name in changed),
        ]
    if missing := record.get("missing"):  # entered by hand from the log of a run that did not finish
        lines.append(f"{NAME} covers a part of the suite. Not run on a GPU: {missing}.")
    return lines


def _since(root: Path, room: str, commit: str, now: dict[str, str], recorded: dict[str, str]) -> str:
    """What became of the room, and in which commit first, as far as git knows it here."""
    fate = "" if room in now and room in recorded else " (is gone)" if room in recorded else " (is new)"
    path = f":(glob){room}" if room.endswith("/*") else room
    commits = changes.git("log", "--reverse", "--format=%h %s", f"{commit}..HEAD", "--", path, root=root)
    if commits is None:  # no git, or a clone too shallow to hold the commit
        return fate
    return f"{fate}, since {commits.splitlines()[0][:60]}" if commits else f"{fate}, not committed"


def write(total: Counts, root: Path = ROOT) -> str:
    gpu = cuda.gpus()[0]
    record = {
        "format": FORMAT,
        "tests_passed": total.passed,
        "tests_skipped": total.skipped,
        "skipped": [
            {"reason": reason, "count": len(names), "tests": names}
            for reason, names in total.by_reason().items()
        ],
        "gpu": gpu["name"],
        "driver": gpu["driver"],
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": os.environ.get("CRENEL_COMMIT") or changes.git("rev-parse", "HEAD", root=root) or "unknown",
        "rooms": rooms(root),
    }
    (root / NAME).write_text(json.dumps(record, indent=2) + "\n")
    return NAME
