"""``crenel doctor``: what was found on this machine, printed."""

from __future__ import annotations

from crenel.cli.output import size
from crenel.doctor import Diagnosis, diagnose

BYTES = ("bytes", "available bytes", "may be locked", "not locked now")


def run(json: bool) -> int:
    """Prints the diagnosis; exit status 1 where there is a problem."""
    found = diagnose()
    print(found.to_json() if json else text(found))
    return 0 if found.healthy else 1


def text(found: Diagnosis) -> str:
    """For people: a line a fact, then what stands out."""
    lines = []
    for section, facts in found.facts.items():
        lines.append(section)
        for name, value in facts.items():
            lines.append(f"  {name:<32}{shown(name, value)}")
    lines.append("")
    for finding in found.findings:
        lines.append(f"{finding.kind}: {finding.text}")
        if finding.advice:
            lines.append(f"      {finding.advice}")
    lines.append("nothing is wrong" if found.healthy else "something is wrong: see the problems above")
    return "\n".join(lines)


def shown(name: str, value: str | int | list[str] | None) -> str:
    """A value as people read it."""
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, int) and (name in BYTES or name.startswith("limit")):
        return size(value)
    return str(value)
