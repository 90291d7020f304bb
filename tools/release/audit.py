"""What is looked for in a finished wheel, and what two builds of it differ in."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import subprocess
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from elftools.elf.elffile import ELFFile

from runner.shell import Stop, say

LARGEST = 100 << 20  # bytes of a wheel that the index takes
EXECUTABLE = 1  # PF_X
# Beyond what every x86-64 processor has; sources of these instruction sets are named so.
WIDE = re.compile(r"%[yz]mm\d")
WIDE_SOURCE = re.compile(r"_avx(2|512)\.cpp\.o$")
# Of a container of GPU code: magic number, version, bytes of the header, bytes behind it; of an entry in it:
# kind, version, bytes of the header, bytes behind it, and at 28 the architecture.
FATBIN = 0xBA55ED50
CONTAINER, CONTAINER_ENTRY = struct.Struct("<IHHQ"), struct.Struct("<HHIQ")
KINDS = {1: "compute", 2: "sm"}
TUNED = re.compile(r"-m(arch|tune|cpu)=\S+")


def examine(wheel: Path, folder: Path | None = None, architectures: Sequence[str] = ()) -> dict:
    """Facts of a wheel; Stop with all that is wrong with it. `folder`: of the build, for its objects;
    `architectures`: for which it must have kernels, as CMake writes them."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = {n: archive.read(n) for n in names if re.search(r"\.so(\.\d+)*$", n)}
        wrong = members_missing(names)
    for name, data in libraries.items():
        wrong += library_faults(name, data)
    extension = next((n for n in libraries if n.startswith("crenel/_crenel")), None)
    if extension is None:
        wrong.append("no extension module")
    elif (found := kernels(libraries[extension])) != (wanted := targets(architectures)):
        wrong.append(f"kernels for {', '.join(found) or 'no GPU'}, expected {', '.join(wanted) or 'none'}")
    if extension and "-abi3-" in wheel.name and not extension.endswith(".abi3.so"):
        wrong.append(f"the tag says abi3, the extension is {extension}")
    if "-manylinux_" not in wheel.name:
        wrong.append("no manylinux tag")
    if wheel.stat().st_size > LARGEST:
        wrong.append(f"{wheel.stat().st_size:,} bytes, more than {LARGEST:,}")
    if folder is not None:
        wrong += tuned(folder) + wide_objects(folder)
    if wrong:
        raise Stop(f"{wheel.name}: " + "; ".join(wrong))
    sizes = {n: len(d) for n, d in libraries.items()}
    return {
        "name": wheel.name,
        "bytes": wheel.stat().st_size,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "members": len(names),
        "libraries": sizes,
        **({"kernels": targets(architectures)} if architectures else {}),
    }


def targets(architectures: Sequence[str]) -> list[str]:
    """What CMake's names of architectures compile to: 90-real to code, 90 to what drivers compile, too."""
    found = set()
    for each in architectures:
        number, _, only = each.partition("-")
        found |= set() if only == "virtual" else {f"sm_{number}"}
        found |= set() if only == "real" else {f"compute_{number}"}
    return sorted(found)


def kernels(library: bytes) -> list[str]:
    """For what GPUs a library has kernels: of the section .nv_fatbin, whose containers hold an entry for each
    architecture of a source file. Stop where a file lacks what another one has."""
    section = ELFFile(io.BytesIO(library)).get_section_by_name(".nv_fatbin")
    data = section.data() if section else b""
    counts: Counter[str] = Counter()
    at = 0
    while at + CONTAINER.size <= len(data):
        magic, _, header, size = CONTAINER.unpack_from(data, at)
        if magic != FATBIN:  # between two containers
            at += 8
            continue
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, header, size = CONTAINER_ENTRY.unpack_from(data, entry)
            (number,) = struct.unpack_from("<I", data, entry + 28)
            counts[f"{KINDS.get(kind, f'kind{kind}')}_{number}"] += 1
            entry += header + size
        at = end
    if len(set(counts.values())) > 1:
        raise Stop(f"kernels of some files only: {dict(sorted(counts.items()))}")
    return sorted(counts)


def members_missing(names: list[str]) -> list[str]:
    """Licences, documents of what is inside, types: what a wheel has to hold besides code."""
    info = next(n.split("/")[0] for n in names if ".dist-info/" in n)
    wanted = [
        f"{info}/licenses/LICENSE",
        f"{info}/sboms/crenel.cdx.json",
        "crenel/py.typed",
        "crenel/_crenel.pyi",
    ]
    wanted += [f"{info}/licenses/licenses/{n}.txt" for n in ("nanobind", "robin-map", "libgomp", "GPL-3.0")]
    if any(n.startswith("crenel.libs/") for n in names):
        wanted.append(f"{info}/sboms/auditwheel.cdx.json")
    stray = [n for n in names if "__pycache__" in n or n.startswith(("tests/", "docs/"))]
    return [f"{n} is missing" for n in wanted if n not in names] + [
        f"{n} does not belong here" for n in stray
    ]


def library_faults(name: str, data: bytes) -> list[str]:
    """An executable stack, or a path of the machine that built it."""
    elf = ELFFile(io.BytesIO(data))
    found = []
    for segment in elf.iter_segments("PT_GNU_STACK"):
        if segment["p_flags"] & EXECUTABLE:
            found.append(f"{name} wants an executable stack")
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic else ():
        path = getattr(tag, "runpath", None) or getattr(tag, "rpath", None)
        if path and not path.startswith("$ORIGIN"):
            found.append(f"{name} looks for libraries in {path}")
    return found


def tuned(folder: Path) -> list[str]:
    """Compilations for one processor: such a wheel stops elsewhere by an illegal instruction."""
    file = folder / "compile_commands.json"
    if not file.is_file():
        return [f"{file} is missing: cannot tell for which processor this was compiled"]
    commands = json.loads(file.read_text(encoding="utf-8"))
    return [f"{c['file']} is compiled with {m[0]}" for c in commands if (m := TUNED.search(c["command"]))]


def wide_objects(folder: Path) -> list[str]:
    """Objects that use 256-bit registers or wider without being named for that."""
    objects = [o for o in sorted(folder.rglob("*.cpp.o")) if not WIDE_SOURCE.search(o.name)]
    objects = [o for o in objects if not o.name.startswith("isa_avx")]
    found = []
    for each in objects:
        with subprocess.Popen(
            ["objdump", "-d", "--no-show-raw-insn", each], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            if any(WIDE.search(line) for line in process.stdout):
                found.append(f"{each.name} uses wide registers")
    say(f"   {len(objects)} objects use no register wider than 128 bits" if not found else "")
    return found


def differences(first: Path, second: Path) -> list[str]:
    """Names of members that are not the same in both, or in one only."""
    with zipfile.ZipFile(first) as a, zipfile.ZipFile(second) as b:
        names = sorted(set(a.namelist()) | set(b.namelist()))
        kept = [{n: z.read(n) for n in z.namelist()} for z in (a, b)]
    return [n for n in names if kept[0].get(n) != kept[1].get(n)]
