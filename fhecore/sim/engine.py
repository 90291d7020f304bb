"""Builds and runs the C++ model, and says which model it is. No dependency on the library's build: a few
files and a compiler."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import params

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = ("sm_model.cpp", "sm_units.cpp", "sm_text.cpp", "sm_main.cpp")
HEADERS = ("sm_model.h", "sm_units.h")
# Modules that turn machine code into traces: with the program and its parameters, the model.
FRONT_END = ("sass", "trace", "profiles", "rewrite")


class EngineError(RuntimeError):
    """The model cannot be built, or refuses its input; the message is its own."""


def canonical(node) -> str:
    """Text of a syntax tree that says what the code does and not how it is laid out: without positions,
    comments and docstrings, and without the module before a name of the front end."""
    if isinstance(node, list):
        return "[" + " ".join(canonical(n) for n in node if not _is_text(n)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in FRONT_END:
        node = ast.Name(node.attr)
    # What is empty is left out, so that fields that a version of Python adds change nothing.
    fields = [(k, v) for k, v in ast.iter_fields(node) if v is not None and v != [] and k != "ctx"]
    return f"({type(node).__name__} " + " ".join(f"{k}={canonical(v)}" for k, v in fields) + ")"


def _is_text(node) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def definitions(sources: list[str]) -> list[str]:
    """Canonical texts of the statements of modules, imports left out, sorted: the same for the same
    definitions, in whichever of the modules each stands."""
    statements = [s for text in sources for s in ast.parse(text).body]
    dropped = (ast.Import, ast.ImportFrom)
    return sorted(canonical(s) for s in statements if not (isinstance(s, dropped) or _is_text(s)))


def fingerprint(calibration: dict | None) -> str:
    """SHA-256 of everything that a result of the model depends on: program, front end, parameters,
    calibration."""
    digest = hashlib.sha256()
    for name in (*SOURCES, *HEADERS):
        digest.update(name.encode() + b"\0" + (HERE / name).read_bytes() + b"\0")
    front_end = definitions([(HERE / f"{name}.py").read_text() for name in FRONT_END])
    for part in (front_end, params.everything(), calibration):
        digest.update(json.dumps(part, sort_keys=True).encode() + b"\0")
    return digest.hexdigest()


def build(folder: Path | None = None) -> Path:
    """The program, made anew when a source is newer. Default folder: build/fhecore/sim, or $FHECORE_BUILD."""
    folder = folder or Path(os.environ.get("FHECORE_BUILD", ROOT / "build" / "fhecore" / "sim"))
    program = folder / "sm_model"
    newest = max((HERE / name).stat().st_mtime for name in (*SOURCES, *HEADERS))
    if program.exists() and program.stat().st_mtime >= newest:
        return program
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise EngineError("no C++ compiler: g++ or clang++ is needed, or CXX set")
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"sm_model.{os.getpid()}"
    command = [
        compiler,
        "-std=c++20",
        "-O2",
        "-Wall",
        "-Wextra",
        "-o",
        str(fresh),
        *(str(HERE / s) for s in SOURCES),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise EngineError(done.stderr[-2000:])
    fresh.replace(program)
    return program


def run(trace: str, params: dict[str, float], program: Path | None = None) -> dict:
    """The model's result (sm_model.h Result, as JSON has it) for a trace text and a full set of
    parameters."""
    program = program or build()
    with tempfile.TemporaryDirectory() as folder:
        trace_file, params_file = Path(folder) / "trace", Path(folder) / "params"
        trace_file.write_text(trace)
        params_file.write_text("".join(f"{k} {float(v):.12g}\n" for k, v in params.items()))
        done = subprocess.run(
            [str(program), str(trace_file), str(params_file)], capture_output=True, text=True
        )
    if done.returncode:
        raise EngineError(done.stderr.strip())
    return json.loads(done.stdout)
