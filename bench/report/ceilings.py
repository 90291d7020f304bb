"""The tables of measured ceilings inside docs/theory/gpu.md: each stands between two markers."""

import re

from report.text import table

BLOCK = re.compile(r"(<!-- ceilings (\w+) -->\n).*?(<!-- /ceilings -->)", re.DOTALL)


def filled(page: str, files: dict[str, dict]) -> str:
    """`page` with every marked table made anew from the groups of the ceilings' file."""
    (groups,) = (data["groups"] for data in files.values() if data["kind"] == "crenel-ceilings")

    def rendered(block: re.Match) -> str:
        return block[1] + table(["ceiling", "figure", "note"], groups[block[2]]) + block[3]

    return BLOCK.sub(rendered, page)
