"""Registers and shared memory of compiled kernels, as cuobjdump -res-usage prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .sass import SassError, cuobjdump

# Listed with every kernel that uses shared memory at all; the model adds it to every CTA (shared_reserved).
RESERVED = 1024


@dataclass(frozen=True)
class Usage:
    registers: int  # of a thread
    shared_bytes: int  # static, of a CTA
    stack_bytes: int  # of a thread


_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")


def parse_usage(text: str) -> dict[str, Usage]:
    out, name = {}, None
    for line in text.splitlines():
        if "Function " in line:
            name = line.split("Function ")[1].strip().rstrip(":")
        found = _USAGE.search(line)
        if found and name:
            registers, stack, shared = map(int, found.groups())
            out[name] = Usage(registers, max(0, shared - RESERVED), stack)
            name = None
    return out


def read_usage(program: Path) -> dict[str, Usage]:
    """By mangled name. SassError without cuobjdump or without device code."""
    done = cuobjdump(program, "-res-usage")
    out = parse_usage(done.stdout + done.stderr)
    if not out:
        raise SassError(f"{program}: no resource usage: {done.stderr.strip()[:200]}")
    return out
