"""Static timing by OpenSTA: the figures that are reported.

The design is timed inside a wrapper that closes the connections to its neighbours (Design.join) and keeps its
black boxes as registers at their ports. Ideal clock, no wires; other inputs arrive at ARRIVE ps from a BUFx4,
outputs are loaded with 2 fF and must be there at the edge.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fhecore.syn.designs import Design
from fhecore.syn.tools import FlowError, Tools

ARRIVE = 60.0  # ps: clock to output of a flip-flop and its inverter
PROBE = 500.0  # ps: period of the probe clock; the least period is PROBE - worst slack


@dataclass(frozen=True)
class SlowPath:
    """Slowest path: end points and the cells in between, with the ps that each adds."""

    start: str
    end: str
    cells: list[tuple[str, str, float]]  # instance, kind, ps


def _width(bits: list) -> str:
    return f"[{len(bits) - 1}:0] " if len(bits) > 1 else ""


def wrapper(design: Design, ports: dict) -> str:
    """Verilog of module `context`: one instance, joined inputs driven by its own outputs."""
    joined = dict(design.join)
    outer = [p for p in ports if p not in joined and p not in joined.values()]
    lines = [f"module context({', '.join(outer)});"]
    lines += [f"{ports[p]['direction']} {_width(ports[p]['bits'])}{p};" for p in outer]
    lines += [f"wire {_width(ports[p]['bits'])}{p};" for p in joined.values()]
    pins = [f".{p}({joined.get(p, p)})" for p in ports]
    return "\n".join([*lines, f"{design.top} dut({', '.join(pins)});", "endmodule", ""])


def register_box(name: str, module: dict) -> str:
    """Verilog of a black box as registers at its ports, for the paths around it."""
    ports = module["ports"]
    lines = [f"module {name}({', '.join(ports)});"]
    lines += [f"{p['direction']} {_width(p['bits'])}{n};" for n, p in ports.items()]
    for port, p in ports.items():
        for i in range(len(p["bits"])):
            at = f"{port}[{i}]" if len(p["bits"]) > 1 else port
            flop = f"DFFHQNx1_ASAP7_75t_R {port}_{i}_ff(.CLK(clk), "
            if p["direction"] == "output":
                lines.append(f"wire {port}_{i}_n; {flop}.QN({port}_{i}_n));")
                lines.append(f"INVx2_ASAP7_75t_R {port}_{i}_inv(.A({port}_{i}_n), .Y({at}));")
            elif port != "clk":
                lines.append(f"{flop}.D({at}));")
    return "\n".join([*lines, "endmodule", ""])


def _script(library: Path, files: list[Path], still: list[str], timed: list[str]) -> str:
    return "\n".join(
        [
            f"read_liberty {library}",
            *(f"read_verilog {f}" for f in files),
            "link_design context",
            f"create_clock -name clk -period {PROBE} [get_ports clk]",
            f"set_input_delay {ARRIVE} -clock clk [get_ports {{{' '.join(timed)}}}]" if timed else "",
            f"set_false_path -from [get_ports {{{' '.join(still)}}}]" if still else "",
            "set_output_delay 0 -clock clk [all_outputs]",
            "set_driving_cell -lib_cell BUFx4_ASAP7_75t_R [all_inputs]",
            "set_load 2 [all_outputs]",
            f'puts "PERIOD [expr {PROBE} - [worst_slack]]"',
            "report_checks -digits 2 -format full",
            "exit",
            "",
        ]
    )


def least_period(design: Design, netlist: Path, mapped_json: Path, work: Path, tools: Tools, boxes: set[str]):
    """(least clock period in ps, the path that sets it) of a netlist with the black boxes `boxes`. `work`
    holds library.lib, the plain text that OpenSTA reads. FlowError when OpenSTA does not answer."""
    modules = json.loads(mapped_json.read_text())["modules"]
    ports = modules[design.top]["ports"]
    context = work / f"{design.name}_context.v"
    # Parameters make a box's module name: `$paramod\name\...`; the netlist writes it as an escaped name.
    text = "".join(register_box(f"\\{b} " if not b.isidentifier() else b, modules[b]) for b in sorted(boxes))
    context.write_text(text + wrapper(design, ports))
    joined = dict(design.join)
    inputs = [p for p, v in ports.items() if v["direction"] == "input" and p != "clk" and p not in joined]
    script = work / f"{design.name}.tcl"
    script.write_text(
        _script(work / "library.lib", [netlist, context], [p for p in inputs if p in design.still],
                [p for p in inputs if p not in design.still])
    )  # fmt: skip
    out = subprocess.run([tools.sta, "-exit", script], capture_output=True, text=True)
    (work / f"{design.name}.sta").write_text(out.stdout + out.stderr)
    found = re.search(r"^PERIOD ([\d.]+)", out.stdout, re.M)
    if not found or "Error" in out.stdout + out.stderr:
        raise FlowError(f"timing of {design.name}: OpenSTA failed, see {work / (design.name + '.sta')}")
    steps = re.findall(r"^\s+(-?[\d.]+)\s+-?[\d.]+ [v^] (\S+)/(\w+) \((\w+)\)", out.stdout, re.M)
    cells = [
        (name.removeprefix("dut/"), kind.removesuffix("_ASAP7_75t_R"), float(ps))
        for ps, name, pin, kind in steps
        if pin not in ("CLK", "D")
    ]
    ends = dict(re.findall(r"^(Startpoint|Endpoint): (\S+)", out.stdout, re.M))
    return float(found.group(1)), SlowPath(ends.get("Startpoint", "?"), ends.get("Endpoint", "?"), cells)
