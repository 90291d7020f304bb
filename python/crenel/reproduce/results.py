"""Records of measurements: read from folders, told apart by their kind, chosen by what they say.

Nothing here knows a figure. A record that cannot be read is an error that names its file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crenel.errors import ParameterError, SerializationError

TOY = "toy-"
TOY_NOTE = "toy ring: INSECURE, not comparable"


@dataclass(frozen=True)
class Found:
    """One row of a record, with where it is from."""

    file: str
    provenance: Mapping[str, Any]
    row: Mapping[str, Any]

    @property
    def device(self) -> str:
        """As NVIDIA H200; of a toy ring, it says so."""
        name = short_device(self.provenance)
        return f"{name} ({TOY_NOTE})" if self.row.get("toy") else name

    @property
    def date(self) -> str:
        """Of the measurement; empty where the record has none."""
        return str(self.provenance.get("date", ""))


def short_device(provenance: Mapping[str, Any]) -> str:
    """The device's name without its capability and memory."""
    text = str(provenance.get("device_description") or provenance.get("device") or "unknown device")
    return text.partition(", compute capability")[0]


def newest(found: Iterable[Found]) -> Found | None:
    """The last measured."""
    return max(found, key=lambda each: each.date, default=None)


def by_device(found: Iterable[Found]) -> dict[str, list[Found]]:
    """Groups in order of appearance."""
    groups: dict[str, list[Found]] = {}
    for each in found:
        groups.setdefault(each.device, []).append(each)
    return groups


class Results:
    """The records of some folders. Of files with the same name, the first folder's counts.

    toy : rows of toy rings stand for their sets, and are labelled; without it they are left out
    """

    def __init__(self, folders: Sequence[Path], toy: bool = False) -> None:
        self.folders = tuple(folders)
        self.toy = toy
        self.documents: dict[str, dict[str, Any]] = {}
        self.lines: dict[str, list[dict[str, Any]]] = {}
        for folder in folders:
            if not folder.is_dir():
                raise ParameterError(f"{folder}: expected a folder of results", {"folder": str(folder)})
            for path in sorted(folder.glob("*.json")):
                document = _parsed(path, path.read_text(encoding="utf-8"))
                if isinstance(document, dict) and isinstance(document.get("kind"), str):
                    self.documents.setdefault(path.name, document)
            for path in sorted(folder.glob("*.jsonl")):
                text = path.read_text(encoding="utf-8")
                self.lines.setdefault(
                    path.name, [_parsed(path, line) for line in text.splitlines() if line.strip()]
                )

    def of_kind(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """Documents with their files' names."""
        return [(name, data) for name, data in self.documents.items() if data["kind"] == kind]

    def suite(self, suite: str) -> list[tuple[str, dict[str, Any]]]:
        """Records of a benchmark's suite."""
        return [(n, d) for n, d in self.of_kind("crenel-bench") if d.get("suite") == suite]

    def rows(self, suite: str, **same: object) -> list[Found]:
        """Rows of a suite that say all of `same`; wrong results are no results."""
        found = []
        for name, data in self.suite(suite):
            for row in data["results"]:
                own = self._of_toy(row)
                if own is None or not own.get("correct", True):
                    continue
                if all(own.get(key) == value for key, value in same.items()):
                    found.append(Found(name, data["provenance"], own))
        return found

    def _of_toy(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        name = str(row.get("params", ""))
        if not name.startswith(TOY):
            return row
        return {**row, "params": name.removeprefix(TOY), "toy": True} if self.toy else None

    def kernels(self, **same: object) -> list[tuple[str, dict[str, Any]]]:
        """Rows of the kernels' benchmark."""
        return [
            (name, row)
            for name, rows in self.lines.items()
            if name.startswith("kernels-")
            for row in rows
            if all(row.get(key) == value for key, value in same.items())
        ]


def _parsed(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SerializationError(f"{path}: expected JSON, found {error}", {"file": str(path)}) from None
