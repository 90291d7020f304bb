"""Design -> mapped, sized and timed netlist, and the figures about it."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from fhecore.provenance import provenance
from fhecore.syn import liberty, timing, tools
from fhecore.syn.designs import Design
from fhecore.syn.graph import Graph, Library
from fhecore.syn.sizing import Sizer
from fhecore.syn.tools import RTL, FlowError, Tools

# Parameters of black boxes, which OpenSTA's reader does not know.
PARAMETERS = re.compile(r"^(  \w+) #\((?:\n +\.\w+\([^)]*\),?)+\n  \)", re.M)


@dataclass
class Result:
    """Figures of one netlist. Areas are cell areas in um2, without utilisation; times in ps."""

    design: str
    note: str
    parameters: dict[str, int]
    area: float
    cells: dict[str, int]  # kind -> count
    area_by_kind: dict[str, float]
    flops: int
    period: float
    frequency_ghz: float
    critical_start: str
    critical_end: str
    critical_cells: list[tuple[str, str, float]]
    unsized_area: float
    boxes: dict[str, int]  # black boxes, not in the area
    netlist: str


@cache
def library(path: Path) -> Library:
    return Library(liberty.cells(liberty.read_text(path)))


def map_design(design: Design, work: Path, found: Tools) -> tuple[Path, Path]:
    """Netlist and its JSON after logic synthesis. FlowError when yosys fails; its log stays in `work`."""
    work.mkdir(parents=True, exist_ok=True)
    text = work / "library.lib"  # read by yosys and ABC, which want plain text
    text.write_text(liberty.read_text(found.liberty))
    job = work / f"{design.name}_job.json"
    job.write_text(
        json.dumps(
            {
                "work": str(work),
                "liberty": str(text),
                "name": design.name,
                "top": design.top,
                "sources": [str(RTL / s) for s in design.sources],
                "parameters": design.parameters,
                "blocks": list(design.blocks),
                "behavioural": design.behavioural,
                "memory": design.memory,
            }
        )
    )
    log = work / f"{design.name}_yosys.log"
    with log.open("w") as out:
        run = subprocess.run([sys.executable, str(tools.HERE / "yosys.py"), str(job)], stdout=out, stderr=out)
    if run.returncode:
        raise FlowError(f"synthesis of {design.name}: yosys failed, see {log}")
    return work / f"{design.name}_mapped.v", work / f"{design.name}.json"


def resize(verilog: str, kinds: dict[str, str]) -> str:
    """The netlist with the kinds of the named instances replaced."""

    def swap(match: re.Match) -> str:
        return f"{match[1]}{kinds[match[3].removeprefix(chr(92))]} {match[3]}{match[4]}"

    return re.sub(r"^(\s+)(\w+_ASAP7_75t_R) (\S+)(\s+\()", swap, verilog, flags=re.M)


def synthesise(design: Design, work: Path, found: Tools) -> Result:
    """Maps, sizes and times one design; netlists, scripts and logs stay in `work`."""
    mapped, mapped_json = map_design(design, work, found)
    lib = library(found.liberty)
    netlist = work / f"{design.name}.v"
    kinds = [c["type"] for c in json.loads(mapped_json.read_text())["modules"][design.top]["cells"].values()]
    boxes = {k: kinds.count(k) for k in set(kinds) if k not in lib.number}
    kinds = [k for k in kinds if k in lib.number]
    unsized = sum(lib.area[lib.number[k]] for k in kinds)
    text = PARAMETERS.sub(r"\1", mapped.read_text())
    if design.period:
        graph = Graph(
            mapped_json, design.top, lib, join=design.join, arrive=timing.ARRIVE, still=design.still
        )
        Sizer(graph).run(design.period)
        kinds = [lib.cells[c].name for c in graph.cell]
        text = resize(text, dict(zip(graph.names, kinds, strict=True)))
    netlist.write_text(text)
    period, path = timing.least_period(design, netlist, mapped_json, work, found, set(boxes))
    count = {k: kinds.count(k) for k in sorted(set(kinds))}
    area = {k: n * float(lib.area[lib.number[k]]) for k, n in count.items()}
    return Result(
        design=design.name,
        note=design.note,
        parameters=design.parameters,
        area=sum(area.values()),
        cells=count,
        area_by_kind=area,
        flops=sum(n for k, n in count.items() if lib.cells[lib.number[k]].clock),
        period=period,
        frequency_ghz=1000 / period,
        critical_start=path.start,
        critical_end=path.end,
        critical_cells=path.cells,
        unsized_area=float(unsized),
        boxes=boxes,
        netlist=netlist.name,
    )


def fingerprint(design: Design, found: Tools) -> str:
    """SHA-256 of all that a netlist depends on: the design's sources and parameters, the headers, this flow's
    files, the cell library and the versions of the tools."""
    digest = hashlib.sha256(json.dumps([asdict(design), found.versions, found.liberty_sha256]).encode())
    headers, flow_files = (
        sorted(RTL.glob("*.vh")),
        sorted([*tools.HERE.glob("*.py"), *tools.HERE.glob("*.v")]),
    )
    for file in [*(RTL / s for s in design.sources), *headers, *flow_files]:
        if not file.name.startswith("test_"):
            digest.update(f"\n{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


def netlist(
    name: str = "modmul_pe_cs", *, width: int = 32, work: Path | None = None, path: str | None = None
):
    """For gate-level simulation: path of the sized netlist of a design at `width` bits, and the sorted names
    of the library cells in it. Made when there is none of the same fingerprint. Skipped when a tool or the
    library is missing."""
    from fhecore.syn.designs import designs

    found = tools.find(f"netlist of {name}", path)
    design = designs(width)[name]
    folder = (work or tools.WORK) / f"w{width}"
    file, made_from = folder / f"{name}.v", folder / f"{name}.sha256"
    wanted = fingerprint(design, found)
    if not file.exists() or not made_from.exists() or made_from.read_text() != wanted:
        made_from.unlink(missing_ok=True)  # a run that fails half-way leaves no netlist that looks right
        synthesise(design, folder, found)
        made_from.write_text(wanted)
    cells = re.findall(r"^\s+(\w+_ASAP7_75t_R) ", file.read_text(), re.M)
    return file, sorted(set(cells))


def record(results: list[Result], found: Tools, command: str) -> dict:
    return {
        "kind": "crenel-fhecore-synthesis",
        "provenance": provenance(command),
        "results": [asdict(r) for r in results],
        "tools": found.versions,
        "liberty": {"file": found.liberty.name, "sha256": found.liberty_sha256},
        "conditions": "ASAP7 RVT TT 0.70 V 25 C; after synthesis: no wires, no clock tree, no utilisation",
    }
