"""Functional coverage: named bins with counts, one file a bench, checked against the bins declared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


class Coverage:
    """Bins of one bench. Every bin is declared with its meaning; a hit of an undeclared one is an error."""

    def __init__(self, name: str, bins: dict[str, str]) -> None:
        self.name = name
        self.meaning = bins
        self.counts = dict.fromkeys(bins, 0)

    def hit(self, name: str, when: bool = True) -> None:
        """Count `name` once if `when`. KeyError for a bin that nobody declared."""
        self.counts[name] += bool(when)

    def holes(self, allowed: Iterable[str] = ()) -> list[str]:
        return [name for name, count in self.counts.items() if not count and name not in set(allowed)]

    def table(self) -> str:
        wide = max(map(len, self.counts))
        rows = [f"{n:<{wide}}  {c:>10}  {self.meaning[n]}" for n, c in self.counts.items()]
        hit = len(self.counts) - len(self.holes())
        return "\n".join([f"coverage of {self.name}: {hit}/{len(self.counts)} bins", *rows])

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps({"name": self.name, "bins": self.counts, "meaning": self.meaning}, indent=1)
        )


def load(path: Path) -> Coverage:
    """A saved table."""
    data = json.loads(path.read_text())
    coverage = Coverage(data["name"], data["meaning"])
    coverage.counts = data["bins"]
    return coverage
