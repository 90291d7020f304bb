"""What runs of `./run wheel --json FILE` found, as Markdown; a second file is of a run with --cuda.

PYTHONPATH=tools python -m release.report FILE [FILE] > PAGE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HEAD = """# Release: wheels built, examined and tried

Rendered by `tools/release/report.py` from `bench/results/wheels-x86_64.json`, which `./run wheel --json`
wrote; do not edit. What is looked for: [releases](../reference/releases.md). A wheel that lacked a licence or
a bill of materials, wanted an executable stack, or had code for one processor would have stopped the run.
"""


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(list(header))}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def rendered(found: dict[str, Any], cuda: dict[str, Any] | None = None) -> str:
    """The page; `cuda` is what a run with --cuda found."""
    text = f"{HEAD}\n{_origin(found)}\n## Files\n\n{_files(found)}"
    if places := _places(found):
        text += (
            "\n## Tried\n\nEncryption, product, gates, the refusal of a missing GPU, and commands. Times\n"
            "on a busy machine: that they succeed is what counts.\n\n"
        )
        text += _tried(places)
    text += "\n## The same bytes again\n\n" + _again(found.get("second build"))
    if cuda is None:
        return text
    text += "\n## With CUDA\n\n`bench/results/wheels-cuda-x86_64.json`, by `./run wheel --cuda`: "
    text += f"{_origin(cuda)}\n{_files(cuda)}"
    if places := _places(cuda):
        model = any(t.get("model") for _, t in places)
        also = ", and an operation on the model of one (`cuda:dry`)" if model else ""
        text += f"\nTried without a GPU: the same{also}.\n\n"
        text += _tried(places)
    return text


def _origin(found: dict[str, Any]) -> str:
    origin = found["provenance"]
    changes = " with changes" if origin["dirty"] else ""
    compilers = origin["compiler"] + (f"; CUDA {origin['cuda']}" if "cuda" in origin else "")
    return f"Commit {origin['commit'][:10]}{changes}; {compilers}; {origin['system']}.\n"


def _files(found: dict[str, Any]) -> str:
    rows = [[f"`{found['sdist']['name']}`", f"{found['sdist']['bytes']:,}", ""]]
    for wheel in found["wheels"]:
        sizes = ", ".join(f"`{name}` {size:,}" for name, size in wheel["libraries"].items())
        rows.append([f"`{wheel['name']}`", f"{wheel['bytes']:,}", sizes])
    return table(["file", "bytes", "libraries in it, bytes"], rows)


def _places(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    places = [(f"fresh environment, no index: `{t['wheel']}`", t) for t in found.get("tried", [])]
    return places + [(f"Debian {t['root']}, no compiler: `{t['wheel']}`", t) for t in found.get("roots", [])]


def _tried(places: list[tuple[str, dict[str, Any]]]) -> str:
    names = list(dict.fromkeys(name for _, t in places for name in t["seconds"]))
    header = ["where", "Python", "glibc", "largest error of a product", "gates"]
    models = any(t.get("model") for _, t in places)
    header += ["model of a GPU"] if models else []
    body = [
        [where, t["python"], t["libc"].removeprefix("glibc "), f"{t['error']:.1e}", str(t["gates"])]
        + ([t.get("model", "")] if models else [])
        + [f"{t['seconds'].get(n, '')}" for n in names]
        for where, t in places
    ]
    return table([*header, *(f"`crenel {n}`, s" for n in names)], body)


def _again(again: dict[str, Any] | None) -> str:
    if again is None:
        return "Not compared in this run.\n"
    if again["equal"]:
        return "A second build from another folder, without a compiler's cache, is equal, byte for byte.\n"
    members = ", ".join(f"`{name}`" for name in again["different members"])
    text = "A second build from another folder, without a compiler's cache, differs in\n"
    return f"{text}{members}{': ' + again['explained'] if 'explained' in again else ''}.\n"


if __name__ == "__main__":
    sys.stdout.write(rendered(*(json.loads(Path(f).read_text(encoding="utf-8")) for f in sys.argv[1:3])))
