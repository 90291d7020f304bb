"""What cmake/Hardening.cmake asks for is in the extension: read from its ELF file."""

from __future__ import annotations

import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from crenel import _crenel

PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474E551, 0x6474E552
DT_STRTAB, DT_SYMTAB, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1, DT_TEXTREL = 5, 6, 24, 30, 0x6FFFFFFB, 22
DF_BIND_NOW, DF_1_NOW, PF_X, PF_W = 8, 1, 1, 2
SHT_DYNSYM = 11


class Elf:
    """The parts of a 64-bit little-endian ELF file that say how it was linked."""

    def __init__(self, file: Path) -> None:
        self.data = file.read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            pytest.skip(f"{file.name} is no 64-bit little-endian ELF file")
        phoff, shoff = struct.unpack_from("<QQ", self.data, 32)
        phsize, phnum, shsize, shnum = struct.unpack_from("<HHHH", self.data, 54)
        self.segments = [self._fields("<IIQQQQQQ", phoff + i * phsize) for i in range(phnum)]
        self.sections = [self._fields("<IIQQQQIIQQ", shoff + i * shsize) for i in range(shnum)]

    def _fields(self, form: str, at: int) -> tuple:
        return struct.unpack_from(form, self.data, at)

    def segment(self, kind: int) -> tuple | None:
        """(type, flags, offset, ...) of the first segment of this kind."""
        return next((s for s in self.segments if s[0] == kind), None)

    def dynamic(self) -> dict[int, int]:
        _, _, offset, _, _, size, *_ = self.segment(PT_DYNAMIC)
        return dict(struct.iter_unpack("<qQ", self.data[offset : offset + size]))

    def offset_of(self, address: int) -> int:
        for kind, _, offset, start, _, size, *_ in self.segments:
            if kind == 1 and start <= address < start + size:
                return offset + address - start
        raise AssertionError(hex(address))

    def symbols(self) -> dict[str, int]:
        """Dynamic symbols and their addresses, 0 for those that others define."""
        table = next(s for s in self.sections if s[1] == SHT_DYNSYM)
        names = self.sections[table[6]]
        found = {}
        entries = self.data[table[4] : table[4] + table[5]]
        for name, _, _, _, value, _ in struct.iter_unpack("<IBBHQQ", entries):
            start = names[4] + name
            found[self.data[start : self.data.index(b"\0", start)].decode()] = value
        return found


@pytest.fixture(scope="module")
def elf() -> Elf:
    if sys.platform != "linux":
        pytest.skip(f"ELF files are Linux', this is {sys.platform}")
    return Elf(Path(_crenel.__file__))


def test_tables_of_addresses_are_read_only(elf):
    """Full RELRO: resolved at once, then write-protected."""
    tags = elf.dynamic()
    assert elf.segment(PT_GNU_RELRO) is not None
    now = DT_BIND_NOW in tags or tags.get(DT_FLAGS, 0) & DF_BIND_NOW or tags.get(DT_FLAGS_1, 0) & DF_1_NOW
    assert now, {hex(tag): hex(value) for tag, value in tags.items()}


def test_no_page_is_writable_and_executable(elf):
    stack = elf.segment(PT_GNU_STACK)
    assert stack is not None and not stack[1] & PF_X
    assert not any(s[1] & PF_X and s[1] & PF_W for s in elf.segments)
    assert DT_TEXTREL not in elf.dynamic()


def test_frames_and_library_calls_are_checked(elf):
    names = {name.partition("@")[0] for name in elf.symbols()}
    assert "__stack_chk_fail" in names
    assert any(name.startswith("__") and name.endswith("_chk") for name in names), "_FORTIFY_SOURCE"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="endbr64 is x86-64's")
def test_indirect_branches_land_on_marks(elf):
    entry = elf.symbols()["PyInit__crenel"]
    assert elf.data[elf.offset_of(entry) :][:4] == b"\xf3\x0f\x1e\xfa"


def test_large_frames_touch_every_page(tmp_path):
    """-fstack-clash-protection leaves no mark in the file: the build's record of its commands says it."""
    root = Path(__file__).resolve().parents[2]
    records = sorted((root / "build").glob("*/compile_commands.json"), key=lambda f: f.stat().st_mtime)
    if not records:
        pytest.skip("no build/*/compile_commands.json beside these tests")
    text = records[-1].read_text()
    assert text.count("-fstack-clash-protection") >= text.count("/python/src/")


def test_programs_have_random_addresses():
    """A test program of the build, where there is one."""
    root = Path(__file__).resolve().parents[2]
    programs = sorted((root / "build").glob("*/tests/*_tests"), key=lambda f: f.stat().st_mtime)
    if not programs:
        pytest.skip("no test programs were built beside these tests")
    data = programs[-1].read_bytes()
    assert struct.unpack_from("<H", data, 16)[0] == 3, f"{programs[-1].name} is not position-independent"
    assert subprocess.run([programs[-1], "--gtest_list_tests"], capture_output=True).returncode == 0
