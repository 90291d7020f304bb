"""Many elements in one simulation: both forms and mutants of them, on the same steps (pe_bank.cpp).

One compilation serves all mutants, so that a quick run can try every one. Modules of a mutant get a suffix.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fhecore.config import LEVELS
from fhecore.dv import benches, tools

HERE = Path(__file__).resolve().parent
FORMS = {"modmul_pe": "", "modmul_pe_cs": ", .CELLS(0)"}  # and the parameters besides W
MOST = 64  # elements: a bit of `wrong` each

TOP = """// Made by bank.py: elements side by side, each compared with `want` when its step leaves.
module pe_bank (
    input  wire         clk, rst, valid_in, first_in, last_in, bank_in,
    input  wire [{top}:0] a_in, b_in, c_in, q0, q1, want,
    input  wire [{mu_top}:0] mu0, mu1,
    output wire [63:0]  wrong
);
    // Level n of what was wanted of a step.
    reg [{levels}:1] valid = 0, last = 0;
    reg [{levels}*{w}-1:0] wants;
    always @(posedge clk) begin
        valid <= rst ? 0 : {{valid[{levels}-1:1], valid_in}};
        last  <= {{last[{levels}-1:1], last_in}};
        wants <= {{wants[({levels}-1)*{w}-1:0], want}};
    end
    wire [{top}:0] due = wants[{levels}*{w}-1 -: {w}];
{elements}
    assign wrong[63:{count}] = 0;
endmodule
"""
ELEMENT = """    wire [{top}:0] acc{k};
    wire done{k};
    {module} #(.W({w}){parameters}) element{k} (
        .clk(clk), .rst(rst), .a_in(a_in), .b_in(b_in), .c_in(c_in), .valid_in(valid_in), .first_in(first_in),
        .last_in(last_in), .bank_in(bank_in), .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1), .a_out(), .b_out(),
        .valid_out(), .first_out(), .last_out(), .bank_out(), .acc(acc{k}), .done(done{k}));
    assign wrong[{k}] = (done{k} != (valid[{levels}] & last[{levels}])) | (valid[{levels}] & (acc{k} != due));
"""


@dataclass(frozen=True)
class Mutant:
    """A fault in a copy of one form's sources: in `file`, each `old` becomes its `new`."""

    form: str
    file: str
    patches: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Verdict:
    """What a run said of every element: None, or its first wrong step."""

    wrong: dict[str, str | None]
    steps: int
    notes: list[str]


def instantiates(text: str, modules: set[str]) -> bool:
    return bool(re.search(rf"^\s*({'|'.join(sorted(modules))})\b\s*(#|\w+\s*\()", text, re.M))


def suffixed(sources: list[Path], file: str, suffix: str) -> list[tuple[str, str]]:
    """(module, text) of `file` and of all that it is a part of, renamed; the others are shared, which is what
    makes a bank of many elements quick to compile."""
    texts = {path.stem: path.read_text() for path in sources}
    own = {Path(file).stem}
    while grown := {name for name in texts.keys() - own if instantiates(texts[name], own)}:
        own |= grown
    name = re.compile(rf"\b({'|'.join(sorted(own))})\b(?=\s*(#|\w+\s*\(|\())")
    return [(f"{module}{suffix}", name.sub(rf"\1{suffix}", texts[module])) for module in sorted(own)]


def build(work: Path, width: int, mutants: dict[str, Mutant]) -> Path:
    """Compile both forms and the mutants, W = width; the program. CompileError when a step fails."""
    if len(FORMS) + len(mutants) > MOST:
        raise ValueError(f"{len(mutants)} mutants: expected at most {MOST - len(FORMS)}")
    folder = work / "pe_bank" / f"W{width}-{len(mutants)}"
    rtl = folder / "rtl"
    rtl.mkdir(parents=True, exist_ok=True)
    elements, files = [], {path for form in FORMS for path in benches.sources(form)}
    known = {"w": width, "top": width - 1, "mu_top": width + 4, "levels": LEVELS}
    for form, parameters in FORMS.items():
        elements.append(ELEMENT.format(k=len(elements), module=form, parameters=parameters, **known))
    for k, mutant in enumerate(mutants.values()):
        sources, own = benches.sources(mutant.form), folder / f"mutant{k}"
        copies = benches.mutate(own, sources, {mutant.file: list(mutant.patches)})
        for module, text in suffixed(copies, mutant.file, f"_m{k}"):
            (rtl / f"{module}.v").write_text(text)
            files.add(rtl / f"{module}.v")
        module, parameters = f"{mutant.form}_m{k}", FORMS[mutant.form]
        elements.append(ELEMENT.format(k=len(elements), module=module, parameters=parameters, **known))
    top = rtl / "pe_bank.v"
    top.write_text(TOP.format(elements="".join(elements), count=len(elements), **known))
    names = ", ".join(f'"{name.replace(" ", "_")}"' for name in (*FORMS, *mutants))
    (rtl / "pe_bank_names.h").write_text(f"inline constexpr const char* kNames[] = {{{names}}};\n")
    # Exhaustion runs for seconds; a model of wide elements compiles for longer than it runs.
    optimised = "-O1" if width <= 8 else "-O0"
    command = [
        *(str(tools.verilator(work).path), "--cc", "--exe", "-fno-inline", "-Mdir", str(folder / "obj")),
        *(f"-I{tools.RTL}", "-Wno-fatal", "-Wno-lint", "-o", "pe_bank", "--top-module", "pe_bank"),
        *("-CFLAGS", f"-std=c++20 {optimised} -I{tools.ROOT} -I{rtl}"),
        *(str(path) for path in (top, *sorted(files), HERE / "pe_bank.cpp")),
    ]
    tools.compile_bench(command, folder / "obj", work, tools.ONE_FILE)
    return folder / "obj" / "pe_bank"


def run(program: Path, *arguments: object) -> Verdict:
    """One run; AssertionError where the program itself fails."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)
    print(done.stdout, end="")
    assert done.returncode == 0, done.stdout + done.stderr
    wrong: dict[str, str | None] = {}
    notes, steps = [], 0
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(" ")
        if name == "#":
            notes.append(rest)
        elif name == "steps":
            steps = int(rest)
        else:
            wrong[name.replace("_", " ") if name not in FORMS else name] = None if rest == "ok" else rest
    return Verdict(wrong, steps, notes)
