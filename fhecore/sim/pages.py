"""The committed pages that hold figures of the model, as the data render them.

usage: docs [--check]

Writes doc/report-h200.md, doc/report-a100.md and what stands between markers in other pages. Nobody types a
figure: a page has `<!-- fhecore.sim: NAME -->` and `<!-- end -->`, and between them what NAME renders to.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from . import frontier, params, reference, report

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "fhecore" / "doc"
REPORTS = {DOC / f"report-{target}.md": target for target in ("h200", "a100")}
PAGES = (DOC / "model.md", ROOT / "docs" / "guide" / "fhecore.md")
MARKED = re.compile(r"(<!-- fhecore\.sim: ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class PageError(ValueError):
    """A marker whose name nothing renders; the message says which and what is known."""


def _errors(data: Path) -> str:
    predictions, validation, _ = report.load("h200", data)
    return report.errors_section(predictions, validation)


def _record(name: str, data: Path) -> dict | None:
    """A record of the model that is now; None: there is none."""
    validation = report.load("h200", data)[1]
    path = data / name
    if validation is None or not path.exists():
        return None
    found = json.loads(path.read_text())
    return found if found["fingerprint"] == validation["fingerprint"] else None


def _workloads(target: str) -> Callable[[Path], str]:
    return lambda data: report.workloads_table(_record(f"workloads-{target}.json", data))


def _reference(data: Path) -> str:
    found = _record(reference.FILE.name, data)
    if found is None:
        return f"{report.NOT}\n"
    return reference.counts_table(found) + "\n" + reference.table(found)


def _traced(data: Path) -> str:
    """Of which commit and day the kernels are that the model has traces of."""
    path = data / "session.json"
    if not path.exists():
        return f"{report.NOT}\n"
    found = json.loads(path.read_text())
    facts = found["facts"]
    own, what = (facts, "are of") if "commit" in facts else (found.get("archived"), "came with")
    if own is None:
        return "The collection names no commit.\n"
    gpu = facts["gpu"].split(",")[0]
    return f"Traces, counts and times {what} commit `{own['commit'][:10]}` of {own['date'][:10]} ({gpu}).\n"


BLOCKS: dict[str, Callable[[Path], str]] = {
    "beside": report.beside_table, "errors": _errors, "workloads": _workloads("h200"),
    "workloads-a100": _workloads("a100"), "reference": _reference, "frontier": frontier.table,
    "activity": frontier.activity, "traced": _traced,
}  # fmt: skip


def filled(text: str, data: Path = params.DATA) -> str:
    """A page's text with every block rendered. PageError for a name that is not known."""

    def block(found: re.Match) -> str:
        if found[2] not in BLOCKS:
            raise PageError(f"block {found[2]!r}: expected one of {sorted(BLOCKS)}")
        return found[1] + BLOCKS[found[2]](data) + found[3]

    return MARKED.sub(block, text)


def wanted(data: Path = params.DATA) -> dict[Path, str]:
    """Text of every page."""
    out = {}
    for path, target in REPORTS.items():
        predictions, validation, reason = report.load(target, data)
        out[path] = report.markdown(target, predictions, validation, reason, data)
    return out | {path: filled(path.read_text(), data) for path in PAGES}


def stale() -> list[Path]:
    """Pages that are not what the data render."""
    return [p for p, text in wanted().items() if not p.exists() or p.read_text() != text]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.sim docs", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 where a page is stale"
    )
    args = parser.parse_args(arguments)
    texts = wanted()
    found = stale()
    for path in found:
        if not args.check:
            path.write_text(texts[path])
        print(f"{path.relative_to(ROOT)}: {'stale' if args.check else 'written'}")
    return 1 if found and args.check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
