"""What each GPU of a device holds: keys and all else, by the library's count and by the driver's."""

from __future__ import annotations

from collections.abc import Iterator

from report.text import provenance_line, table

GB = 1e9
ABOUT = """
Bytes of one GPU, in GB: in use, by the library's own count; and by the driver's, which has everything on the
GPU in it (of models, everything of theirs). Keys are what came with them; at rest is all that a bootstrap
needs, with keys, plaintexts and tables; after bootstraps, with recordings and what they keep. Idle memory was
given back before each count. A share is of what one GPU has alone.
"""


def measured(data: dict) -> Iterator[tuple[str, list[dict]]]:
    """Device and parts; one without parts is its own only one."""
    for found in data.get("devices", []):
        yield found["device"], found["parts"]
    alone = (data.get("memory") or {}).get("by_part")
    if alone:
        yield data["provenance"]["device"], alone
    beside = (data.get("beside") or {}).get("memory_by_part")
    if beside:
        yield data["beside"]["device"], beside


def grown(part: dict, since: str, to: str, count: str) -> float | None:
    """Bytes that came between two steps; None where nobody counts."""
    values = [part["steps"][step][count] for step in (since, to)]
    return None if None in values else values[1] - values[0]


def rows(name: str, data: dict) -> list[list[str]]:
    """A line a part; nothing where no device of the file has parts."""
    found = list(measured(data))
    if all(len(parts) < 2 for _, parts in found):
        return []
    one = next((parts[0] for _, parts in found if len(parts) == 1), None)
    lines = []
    for device, parts in found:
        for part in parts:
            cells = [device, part["part"]]
            for since, to in (("context", "keys"), ("before", "plaintexts"), ("before", "bootstraps")):
                for count in ("in_use", "driver"):
                    value = grown(part, since, to, count)
                    alone = None if one is None else grown(one, since, to, count)
                    cells.append(cell(value, alone if part is not one else None))
            lines.append([*cells, f"`{name}`"])
    return lines


def cell(value: float | None, alone: float | None) -> str:
    if value is None:
        return ""
    share = f" ({100 * value / alone:.0f} %)" if alone else ""
    return f"{value / GB:.2f}{share}"


def memory_sections(files: dict[str, dict]) -> str:
    """One section, the newest first; nothing where nothing was measured by part."""
    suites = ("boot", "boot_memory")
    own = {n: d for n, d in files.items() if d["kind"] == "crenel-bench" and d.get("suite") in suites}
    chosen = {name: data for name, data in own.items() if rows(name, data)}
    if not chosen:
        return ""
    newest = sorted(chosen.items(), key=lambda entry: entry[1]["provenance"]["date"], reverse=True)
    header = ["device", "GPU", "keys, in use", "keys, driver", "at rest, in use", "at rest, driver"]
    header += ["after bootstraps, in use", "after bootstraps, driver", "source"]
    text = f"\n## Memory of each GPU of a device\n{ABOUT}\n"
    text += table(header, [line for name, data in newest for line in rows(name, data)])
    for _, data in newest:
        text += "\n" + provenance_line(data["provenance"])
    return text
