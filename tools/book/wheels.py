"""What the last runs of `./run wheel` wrote: files, sizes, and where they were tried, from their records."""

from __future__ import annotations

from book.peers import data
from book.reach import Row
from report.text import table

RECORDS = {"wheels-x86_64.json": "for CPUs", "wheels-cuda-x86_64.json": "with CUDA"}


def tried(record: Row, name: str) -> str:
    """Interpreters and systems in which a wheel computed."""
    found = [f"CPython {t['python']}" for t in record.get("tried", []) if t["wheel"] == name]
    found += [f"Debian {t['root']} ({t['python']})" for t in record.get("roots", []) if t["wheel"] == name]
    return ", ".join(found)


def sizes() -> str:
    """The table, in Markdown."""
    rows, origins = [], []
    for name, backends in RECORDS.items():
        record = data(name)
        made = record["provenance"]
        rows.append([f"`{record['sdist']['name']}`", backends, f"{record['sdist']['bytes']:,}", "", ""])
        for wheel in record["wheels"]:
            libraries = [size for file, size in wheel["libraries"].items() if file.startswith("crenel/")]
            cells = [f"{wheel['bytes']:,}", f"{sum(libraries):,}", tried(record, wheel["name"])]
            rows.append([f"`{wheel['name']}`", backends, *cells])
        kernels = sorted({each for wheel in record["wheels"] for each in wheel.get("kernels", [])})
        toolkit = f", CUDA {made['cuda']}" if "cuda" in made else ""
        toolkit += f", kernels for {', '.join(kernels)}" if kernels else ""
        origins.append(f"{backends}: commit {made['commit'][:10]}, {made['compiler']}{toolkit}")
    header = ["file", "built", "bytes", "extension in it, bytes", "computed in"]
    said = "; ".join(origins)
    return f"{table(header, rows)}\n{said[0].upper()}{said[1:]}.\n"
