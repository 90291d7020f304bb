"""Builds and runs the C++ model. No dependency on the library's build: a few files and a compiler."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = ("sm_model.cpp", "sm_units.cpp", "sm_text.cpp", "sm_main.cpp")
HEADERS = ("sm_model.h", "sm_units.h")


# What turns machine code into traces: with the program and its parameters, the model.
FRONT_END = ("sass.py", "registers.py", "trace.py", "profiles.py", "rewrite.py")


class EngineError(RuntimeError):
    """The model cannot be built, or refuses its input; the message is its own."""


def fingerprint(calibration: dict | None) -> str:
    """SHA-256 of everything that a result of the model depends on: sources, parameters, calibration."""
    digest = hashlib.sha256()
    for name in (*SOURCES, *HEADERS, *FRONT_END, "params.toml"):
        digest.update(name.encode() + b"\0" + (HERE / name).read_bytes() + b"\0")
    digest.update(json.dumps(calibration, sort_keys=True).encode())
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
