"""What a run of `./run wheel --json FILE` found, as Markdown.

PYTHONPATH=tools python -m release.report FILE > PAGE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HEAD = """# Release, 2026-11-25: wheels built, examined and tried

Rendered by `tools/release/report.py` from `bench/results/wheels-x86_64.json`, which `./run wheel --json`
wrote; do not edit. What is looked for: [releases](../reference/releases.md). A wheel that lacked a licence or
a bill of materials, wanted an executable stack, or had code for one processor would have stopped the run.
"""


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(list(header))}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def rendered(found: dict[str, Any]) -> str:
    """The page."""
    origin = found["provenance"]
    changes = " with changes" if origin["dirty"] else ""
    text = f"{HEAD}\nCommit {origin['commit'][:10]}{changes}; {origin['compiler']}; {origin['system']}.\n"
    text += "\n## Files\n\n"
    rows = [[f"`{found['sdist']['name']}`", f"{found['sdist']['bytes']:,}", ""]]
    for wheel in found["wheels"]:
        sizes = ", ".join(f"`{name}` {size:,}" for name, size in wheel["libraries"].items())
        rows.append([f"`{wheel['name']}`", f"{wheel['bytes']:,}", sizes])
    text += table(["file", "bytes", "libraries in it, bytes"], rows)
    places = [*((f"fresh environment, no index: `{t['wheel']}`", t) for t in found.get("tried", []))]
    places += [(f"Debian {t['root']}, no compiler: `{t['wheel']}`", t) for t in found.get("roots", [])]
    if places:
        text += (
            "\n## Tried\n\nEncryption, product, gates, the refusal of a missing GPU, and commands. Times\n"
        )
        text += "on a busy machine: that they succeed is what counts.\n\n"
        names = list(dict.fromkeys(name for _, t in places for name in t["seconds"]))
        header = [
            "where",
            "Python",
            "glibc",
            "largest error of a product",
            "gates",
            *(f"`crenel {n}`, s" for n in names),
        ]
        body = [
            [where, t["python"], t["libc"].removeprefix("glibc "), f"{t['error']:.1e}", str(t["gates"])]
            + [f"{t['seconds'].get(n, '')}" for n in names]
            for where, t in places
        ]
        text += table(header, body)
    text += "\n## The same bytes again\n\n"
    again = found.get("second build")
    if again is None:
        return text + "Not compared in this run.\n"
    if again["equal"]:
        return (
            text
            + "A second build from another folder, without a compiler's cache, is equal, byte for byte.\n"
        )
    members = ", ".join(f"`{name}`" for name in again["different members"])
    text += "A second build from another folder, without a compiler's cache, differs in\n"
    return f"{text}{members}{': ' + again['explained'] if 'explained' in again else ''}.\n"


if __name__ == "__main__":
    sys.stdout.write(rendered(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
