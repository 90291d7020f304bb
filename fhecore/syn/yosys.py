"""Mapping of one design to library cells; run as a process of its own: yosys.py JOB.json, log on stdout.

Adders of the carry-save trees are library full adders, placed as the RTL says; other logic goes through ABC.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from fhecore.syn.liberty import DONT_USE  # noqa: E402

FLIPFLOP = "DFFHQNx1_ASAP7_75t_R"
ABC = "strash;&get -n;&st;&dch;&nf;&put;buffer -c -N 32;topo;upsize;dnsize;stime -p"
CHOICES = "&st;&dch;"  # left out with memories: over 5 minutes on their 350,000 nodes, mostly multiplexers
CONSTRAINTS = "set_driving_cell BUFx4_ASAP7_75t_R\nset_load 2.0 [all_outputs]\n"
TREE_DEPTH = 12  # passes of constants through the trees; more than the adders of any path


def absorb_inverters(design, ys) -> int:
    """Flip-flops fed by an adder's inverter take the inverted value and give it back through QN, the output
    that ASAP7's flip-flops have anyway. Returns how many inverters that saves."""
    module, name, saved = design.top_module(), ys.IdString, 0

    def bit(cell, port):
        b = cell.getPort(name(port)).as_bit()
        return (b.wire.name.str(), b.offset) if b.is_wire() else None

    inverters, adder_outputs = {}, set()
    for cell in module.cells_.values():
        kind = cell.type.str()
        if kind == "$_NOT_":
            inverters[bit(cell, "\\Y")] = cell
        elif kind.startswith("\\FAx1"):
            adder_outputs |= {bit(cell, "\\CON"), bit(cell, "\\SN")}
    for cell in list(module.cells_.values()):
        inverter = inverters.get(bit(cell, "\\D")) if cell.type.str() == "$_DFF_P_" else None
        if inverter is None or bit(inverter, "\\A") not in adder_outputs:
            continue
        data, out, clock = (c.getPort(name(p)) for c, p in ((inverter, "\\A"), (cell, "\\Q"), (cell, "\\C")))
        old = cell.name.str()
        module.remove(cell)
        flop = module.addCell(name(old), name("\\" + FLIPFLOP))
        for port, signal in (("\\D", data), ("\\QN", out), ("\\CLK", clock)):
            flop.setPort(name(port), signal)
        saved += 1
    return saved


def main(job_path: str) -> None:
    from pyosys import libyosys as ys

    job = json.loads(Path(job_path).read_text())
    work, liberty = Path(job["work"]), job["liberty"]
    design = ys.Design()

    def run(line: str) -> None:
        ys.run_pass(line, design)

    (work / "abc.constr").write_text(CONSTRAINTS)
    script = ABC.replace(CHOICES, "") if job["memory"] else ABC
    (work / "abc.script").write_text(script.replace(";", "\n") + "\n")
    avoid = " ".join(f"-dont_use {p}" for p in DONT_USE)
    run(f"read_liberty -lib {liberty}")
    for source in job["sources"]:
        black_box = "-lib " if Path(source).stem in job["blocks"] else ""
        run(f"read_verilog {black_box}-I{Path(source).parent} {source}")
    run(f"read_verilog -lib {HERE / 'adder_stub.v'}")
    parameters = " ".join(f"-chparam {k} {v}" for k, v in job["parameters"].items())
    run(f"hierarchy -check -top {job['top']} {parameters}")
    for line in ("proc", "flatten", "opt -full"):
        run(line)
    if job["memory"]:
        for line in ("memory", "opt -full"):
            run(line)
    for _ in range(TREE_DEPTH):
        run(f"techmap -map {HERE / 'adder_constants.v'} t:full_adder")
        run("opt_expr -full")
        run("opt_clean")
    if job["behavioural"]:
        run("booth")
    for line in ("alumacc", "opt"):
        run(line)
    run("techmap -map +/techmap.v -map +/choices/kogge-stone.v" if job["behavioural"] else "techmap")
    run("opt -full")
    run(f"techmap -map {HERE / 'adder_cells.v'} t:full_adder")
    for line in ("techmap", "opt -full"):
        run(line)
    if job["memory"]:  # enables become logic here, so that all flip-flops are named after their registers
        run("dfflegalize -cell $_DFF_P_ x")
    run("rename -wire t:$_DFF_P_")
    print("inverters absorbed by flip-flops:", absorb_inverters(design, ys))
    run(f"dfflibmap -liberty {liberty} {avoid}")
    run("opt")
    run(f"abc -liberty {liberty} -constr {work / 'abc.constr'} -script {work / 'abc.script'} {avoid}")
    run("opt_clean -purge")
    # Names that both writers agree on: sizing reads the one netlist and edits the other.
    run("rename -enumerate -pattern u%")
    run(f"write_verilog -noattr -noexpr -simple-lhs {work / (job['name'] + '_mapped.v')}")
    run(f"write_json {work / (job['name'] + '.json')}")
    run("check")


if __name__ == "__main__":
    main(sys.argv[1])
