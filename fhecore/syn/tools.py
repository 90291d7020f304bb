"""What synthesis needs from outside: cell library, yosys (pyosys), OpenSTA; Skipped says what is missing."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the checkout
RTL = ROOT / "fhecore" / "rtl"
HERE = ROOT / "fhecore" / "syn"
WORK = ROOT / "build" / "fhecore" / "syn"
SKIPPED = 77  # exit status, as in automake

LIBRARY_HELP = """\
The ASAP7 standard-cell library is not part of this repository (BSD 3-Clause, (c) Lawrence T. Clark, Vinay
Vashishtha, or Arizona State University). From its public repository, asap7sc7p5t_28, take the five RVT TT
NLDM files (SIMPLE, INVBUF, AO, OA, SEQ; 0.70 V, 25 C), merge them into one `library` group, keep the licence
beside it, and name the result with --liberty PATH or CRENEL_ASAP7_LIB=PATH (gzip or plain text)."""


class Skipped(RuntimeError):
    """A step cannot run here; the message names the step, what is missing and how to get it."""


class FlowError(RuntimeError):
    """A tool ran and failed; the message names the step and the log."""


@dataclass(frozen=True)
class Tools:
    liberty: Path
    liberty_sha256: str
    sta: Path
    versions: dict[str, str]


def find_liberty(step: str, named: str | None) -> Path:
    """--liberty, else CRENEL_ASAP7_LIB. Skipped when neither names a file."""
    place = named or os.environ.get("CRENEL_ASAP7_LIB")
    if not place:
        raise Skipped(f"{step}: no cell library\n{LIBRARY_HELP}")
    if not Path(place).is_file():
        raise Skipped(f"{step}: cell library {place}: no such file\n{LIBRARY_HELP}")
    return Path(place).resolve()


def find(step: str, liberty: str | None = None) -> Tools:
    """All tools of `step`. Skipped names the first that is missing."""
    library = find_liberty(step, liberty)
    if importlib.util.find_spec("pyosys") is None:
        raise Skipped(f"{step}: Python package pyosys is not installed (requirements/fhecore.txt)")
    sta = shutil.which("sta")
    if sta is None:
        raise Skipped(f"{step}: OpenSTA (`sta`) is not on PATH (Debian and Ubuntu: package opensta)")
    version = subprocess.run([sta, "-version"], capture_output=True, text=True).stdout.split()
    return Tools(
        liberty=library,
        liberty_sha256=hashlib.sha256(library.read_bytes()).hexdigest(),
        sta=Path(sta),
        versions={"pyosys": importlib.metadata.version("pyosys"), "opensta": version[0] if version else "?"},
    )
