"""Python test files in shares of about the same time, for lanes that run beside each other.

seconds.json has what each file took, of a processor; `python -m runner.shares REPORT...` (with tools/ as
PYTHONPATH) writes it anew from pytest's reports, build/pytest-*.xml. What it does not know counts as the
median: a list that has grown old costs balance, nothing else.
"""

from __future__ import annotations

import json
import statistics
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from runner.shell import ROOT, say

SECONDS = Path(__file__).with_name("seconds.json")
STARTING = 5.0  # seconds of a process, before its first test


def known() -> dict[str, float]:
    """Seconds by the file's path in the repository."""
    found: dict[str, float] = json.loads(SECONDS.read_text(encoding="utf-8"))
    return found


def shares(files: Iterable[str], count: int, seconds: dict[str, float]) -> list[list[str]]:
    """Every file in one of at most `count` shares: the longest first, each to the share that has least.

    The longest share comes first, and the order within each is that of the names.
    """
    usual = statistics.median(seconds.values()) if seconds else 1.0
    times = {file: seconds.get(file, usual) for file in files}
    made: list[tuple[float, list[str]]] = [(STARTING, []) for _ in range(count)]
    for file in sorted(times, key=lambda f: (-times[f], f)):
        least = min(range(count), key=lambda i: made[i][0])
        whole, own = made[least]
        made[least] = whole + times[file], [*own, file]
    return [sorted(own) for _, own in sorted(made, key=lambda m: -m[0]) if own]


def of_folder(folder: str, count: int, root: Path = ROOT, skipped: Iterable[str] = ()) -> list[list[str]]:
    """The test files below a folder of the repository. `skipped`: beginnings of paths of such as are skipped
    here, which takes no time."""
    files = [f.relative_to(root).as_posix() for f in (root / folder).rglob("test_*.py")]
    here = {file: 0.0 if file.startswith(tuple(skipped)) else took for file, took in known().items()}
    return shares(files, count, here)


def measured(reports: Iterable[Path], root: Path = ROOT) -> dict[str, float]:
    """Seconds of every file in pytest's reports, whose class names are paths with dots."""
    found: dict[str, float] = defaultdict(float)
    for report in reports:
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            parts = case.get("classname", "").split(".")
            for end in range(len(parts), 0, -1):  # classes of tests follow the file
                name = "/".join(parts[:end]) + ".py"
                if (root / name).is_file():
                    found[name] += float(case.get("time", 0))
                    break
    return {name: round(found[name], 1) for name in sorted(found)}


if __name__ == "__main__":
    SECONDS.write_text(json.dumps(measured(map(Path, sys.argv[1:])), indent=1) + "\n", encoding="utf-8")
    say(f"wrote {SECONDS.relative_to(ROOT)}")
