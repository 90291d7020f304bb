"""What switches in a netlist: capacitance of the pins that change, in fF an edge, for random steps.

usage: python -m fhecore.syn.activity NETLISTS [--liberty FILE] [--out FILE]

NETLISTS: folders of sized netlists, as `python -m fhecore.syn ... --work` leaves them (its w32). Cells have
their functions from the library and no delay; each net's changes are counted over LANES independent streams
and weighted by the capacitance of the input pins on it. No wires, no glitches, nothing inside a cell, no
leakage: the library has no power tables. So this compares elements; it is no energy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fhecore.dv import liberty_cells
from fhecore.syn import tools

KIND = "crenel-fhecore-activity"
LANES, EDGES, WARM, SEED = 256, 96, 32, 1
W, MODULUS = 32, 0xFFFC_0001
MU = (1 << (2 * W + 1)) // MODULUS
INSTANCE = re.compile(r"^  (\w+) (\\\S+ |\w+) *\((.*?)\n? *\);", re.DOTALL | re.MULTILINE)
PIN = re.compile(r"\.(\w+)\((\\\S+ |[^()\s]+)(?:\[(\d+)\])?\s*\)")
NET = r"(?:\\\S+ ?|\w+)(?: *\[\d+\])?"
ASSIGN = re.compile(rf"^  assign ({NET}) = ({NET}) *;", re.MULTILINE)  # a name more for one bit
PORT = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", re.MULTILINE)


@dataclass(frozen=True)
class Model:
    """A cell: its outputs as functions of its pins, or what a flip-flop takes."""

    inputs: Mapping[str, float]  # fF
    outputs: Mapping[str, Callable[..., int]]
    next_state: Callable[..., int] | None


def models(library: Path, wanted: set[str]) -> dict[str, Model]:
    """Of the cells that a netlist has. LibertyError for one that cannot be simulated."""
    out = {}
    for cell in liberty_cells.read(library).all("cell"):
        if cell.args[0] not in wanted:
            continue
        pins = [p for p in cell.all("pin") if p.attrs.get("direction") == "input"]
        names = [p.args[0] for p in pins]
        flops = cell.all("ff")

        def compiled(text: str, names: tuple[str, ...] = tuple(names)) -> Callable[..., int]:
            body = re.sub(r"1'b0", "0", re.sub(r"1'b1", "ones", liberty_cells.expression(text)))
            return eval(f"lambda ones, {', '.join(names)}: ({body}) & ones")  # noqa: S307

        functions = {
            p.args[0]: p.attrs["function"]
            for p in cell.all("pin") if p.attrs.get("direction") == "output" and "function" in p.attrs
        }  # fmt: skip
        state = None
        if flops:
            if set(functions.values()) != {flops[0].args[0]}:
                raise tools.FlowError(f"cell {cell.args[0]}: its output is not its state")
            state = compiled(flops[0].attrs["next_state"])
            functions = dict.fromkeys(functions, "0")
        made = {name: compiled(text) for name, text in functions.items()}
        caps = {p.args[0]: float(p.attrs["capacitance"]) for p in pins}
        out[cell.args[0]] = Model(caps, made, state)
    if wanted - set(out):
        raise tools.FlowError(f"no model of cells {sorted(wanted - set(out))}")
    return out


def bits(text: str) -> tuple[str, int | None]:
    """A net of one bit: its name, and its place in a bus."""
    found = re.fullmatch(r"(\\\S+|\w+|1'h[01])\s*(?:\[(\d+)\])?", text.strip())
    if not found:
        raise tools.FlowError(f"net {text!r}: expected one bit")
    return found[1], None if found[2] is None else int(found[2])


class Netlist:
    """A flat netlist, in the order in which its logic is computed."""

    def __init__(self, path: Path, library: Path) -> None:
        text = path.read_text()
        found = [(kind, pins) for kind, _, pins in INSTANCE.findall(text) if kind != "module"]
        self.models = models(library, {kind for kind, _ in found})
        self.ports = {name: (way, int(high or 0) + 1, bool(high)) for way, high, name in PORT.findall(text)}
        self.numbers: dict[tuple[str, int | None], int] = {}
        self.same = {bits(a): self.net(b) for a, b in ASSIGN.findall(text)}
        self.cells = [
            (
                self.models[kind],
                {pin: self.net(f"{name}[{at}]" if at else name) for pin, name, at in PIN.findall(pins)},
            )
            for kind, pins in found
        ]  # fmt: skip
        for name in self.ports:
            self.port(name)
        self.load = [0.0] * len(self.numbers)
        for model, pins in self.cells:
            for pin, cap in model.inputs.items():
                self.load[pins[pin]] += cap
        self.flops = [(m, p) for m, p in self.cells if m.next_state]
        driven = {p[out] for m, p in self.cells for out in m.outputs if out in p}
        driven |= {net for name, (way, *_) in self.ports.items() if way == "input" for net in self.port(name)}
        self.high = [self.numbers[key] for key in self.numbers if key[0] == "1'h1"]
        driven |= {net for key, net in self.numbers.items() if key[0] in ("1'h0", "1'h1")}
        used = {p[pin] for m, p in self.cells for pin in m.inputs}
        if used - driven:
            raise tools.FlowError(f"{path.name}: {len(used - driven)} nets are read and not driven")
        self.logic = list(self._ordered())

    def net(self, text: str) -> int:
        key = bits(text)
        alias = getattr(self, "same", {})
        return alias[key] if key in alias else self.numbers.setdefault(key, len(self.numbers))

    def port(self, name: str) -> list[int]:
        _, width, bus = self.ports[name]
        return [self.net(f"{name}[{k}]" if bus else name) for k in range(width)]

    def _ordered(self) -> Iterator[tuple[Callable[..., int], int, list[int]]]:
        todo = {
            pins[out]: (function, [pins[p] for p in model.inputs])
            for model, pins in self.cells if not model.next_state
            for out, function in model.outputs.items() if out in pins
        }  # fmt: skip
        state = dict.fromkeys(todo, 0)
        for first in todo:
            stack = [first]
            while stack:
                net = stack[-1]
                if net not in todo or state[net] == 2:
                    stack.pop()
                    continue
                function, inputs = todo[net]
                if state[net] == 0:
                    state[net] = 1
                    stack += [n for n in inputs if state.get(n) == 0]
                    continue
                state[net] = 2
                yield function, net, inputs
                stack.pop()


class Run:
    """LANES streams at once: a net is a number whose bit l is its value in lane l."""

    def __init__(self, netlist: Netlist, lanes: int = LANES) -> None:
        self.netlist, self.ones = netlist, (1 << lanes) - 1
        self.lanes = lanes
        self.values = [0] * len(netlist.numbers)
        for net in netlist.high:
            self.values[net] = self.ones
        self.switched = 0.0
        self.clock = sum(m.inputs["CLK"] for m, _ in netlist.flops)

    def drive(self, port: str, words: list[int]) -> None:
        """A word for each lane."""
        for k, net in enumerate(self.netlist.port(port)):
            self.values[net] = sum((word >> k & 1) << lane for lane, word in enumerate(words))

    def read(self, port: str) -> list[int]:
        nets = self.netlist.port(port)
        return [
            sum((self.values[net] >> lane & 1) << k for k, net in enumerate(nets))
            for lane in range(self.lanes)
        ]

    def edge(self, inputs: Mapping[str, list[int]], count: bool) -> None:
        """Inputs change, logic settles, the clock rises; what changed since the edge before is counted."""
        before = list(self.values)
        for port, words in inputs.items():
            self.drive(port, words)
        self.settle()
        taken = [
            (pins[out], model.next_state(self.ones, *(self.values[pins[p]] for p in model.inputs)))
            for model, pins in self.netlist.flops if model.next_state for out in model.outputs if out in pins
        ]  # fmt: skip
        for net, value in taken:
            self.values[net] = value
        self.settle()
        if count:
            changed = zip(self.netlist.load, before, self.values, strict=True)
            self.switched += sum(load * (a ^ b).bit_count() for load, a, b in changed if a != b) / self.lanes

    def settle(self) -> None:
        for function, net, inputs in self.netlist.logic:
            self.values[net] = function(self.ones, *(self.values[n] for n in inputs))


def element(run: Run, rng: Random, spacing: int) -> dict[str, float]:
    """An element of an array: tiles of 16 steps, `spacing` edges apart. fF an edge."""

    def words(width: int) -> list[int]:
        return [rng.getrandbits(width) for _ in range(run.lanes)]

    def all_of(value: int) -> list[int]:
        return [value] * run.lanes

    still = {"q0": MODULUS, "q1": MODULUS, "mu0": MU, "mu1": MU}
    fixed = {port: all_of(v) for port, v in still.items() if port in run.netlist.ports}
    inputs = {"a_in": words(W), "b_in": words(W), "c_in": words(W)}
    edges = EDGES * spacing
    for n in range(WARM + edges):
        step, new = divmod(n, spacing)
        if new == 0:
            inputs = {"a_in": words(W), "b_in": words(W), "c_in": words(W)}
        control = {"valid_in": new == 0, "first_in": step % 16 == 0, "last_in": step % 16 == 15,
                   "rst": n < 2, "bank_in": step // 16 % 2}  # fmt: skip
        run.edge(inputs | fixed | {k: all_of(int(v)) for k, v in control.items()}, count=n >= WARM)
    return {"switched_ff": run.switched / edges, "clock_ff": 2 * run.clock, "edges_a_step": spacing}


def reduction(run: Run, rng: Random) -> dict[str, float]:
    """A column's reduction, a sum an edge."""
    width = run.netlist.ports["x"][1]
    still = {"q0": MODULUS, "q1": MODULUS, "mu0": MU, "mu1": MU}
    fixed = {port: [v] * run.lanes for port, v in still.items()}
    for n in range(WARM + EDGES):
        sums = {port: [rng.getrandbits(width) for _ in range(run.lanes)] for port in ("x", "y")}
        control = {"valid_in": 1, "rst": int(n < 2), "bank_in": n // 16 % 2}
        run.edge(sums | fixed | {k: [v] * run.lanes for k, v in control.items()}, count=n >= WARM)
    return {"switched_ff": run.switched / EDGES, "clock_ff": 2 * run.clock, "edges_a_step": 1}


# Edges a step; 0: a reduction.
DESIGNS = {
    "modmul_pe_cs": 1, "modmul_pe_seq": 3, "lazy_pe": 1, "lazy_pe_32": 1, "lazy_reduce": 0,
    "lazy_reduce_32": 0,
}  # fmt: skip


def measured(name: str, path: Path, library: Path) -> dict[str, object]:
    run, rng = Run(Netlist(path, library)), Random(SEED)
    spacing = DESIGNS[name]
    found = element(run, rng, spacing) if spacing else reduction(run, rng)
    return {"design": name, **found, "lanes": LANES, "edges": EDGES, "seed": SEED}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.syn.activity", description=__doc__.splitlines()[0])
    parser.add_argument("netlists", type=Path, nargs="+")
    parser.add_argument("--liberty")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    try:
        library = tools.find_liberty("activity", args.liberty)
    except tools.Skipped as error:
        print(error, file=sys.stderr)
        return tools.SKIPPED
    rows = []
    for name in DESIGNS:
        path = next((f / f"{name}.v" for f in args.netlists if (f / f"{name}.v").is_file()), None)
        if path is None:
            print(f"{name}: no netlist: python -m fhecore.syn {name} --work FOLDER")
            continue
        rows.append(measured(name, path, library))
        row = rows[-1]
        print(f"{name:<16}{row['switched_ff']:>9.1f} fF an edge, {row['clock_ff']:>7.1f} on clock pins")
    if args.out:
        digest = hashlib.sha256(library.read_bytes()).hexdigest()
        command = f"python -m fhecore.syn.activity NETLISTS --out {args.out}"
        document = {
            "kind": KIND,
            "provenance": {"command": command},
            "liberty_sha256": digest,
            "results": rows,
        }
        args.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
