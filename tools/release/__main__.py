"""Source distribution and wheels in dist/, examined, tried, and compared with a second build."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path

from release import audit, build, roots, sbom
from runner import cuda, package
from runner.shell import ROOT, Stop, capture, say, stage

# A100 and all of compute capability 8, H100 and H200, B100 to B300, RTX 50; the last one for what comes, too.
ARCHITECTURES = ("80-real", "90-real", "100-real", "120")
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run wheel", description=__doc__)
    parser.add_argument("--python", action="append", default=[], help="a Python to build for; repeatable")
    parser.add_argument("--cuda", action="store_true", help="with the CUDA backend, into dist/cuda")
    parser.add_argument("--no-try", action="store_true", help="build and examine only")
    parser.add_argument("--root", action="append", default=[], help="try in a fresh Debian of that name, too")
    parser.add_argument("--again", action="store_true", help="build the first wheel again elsewhere, compare")
    parser.add_argument("--json", type=Path, help="write what was found")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    args = options(arguments)
    with stage("tools"):
        toolchain = package.prepare(install_cuda=args.cuda)
        pythons = build.interpreters(args.python)
    found: dict = {
        "kind": "crenel-wheels",
        "format": 1,
        "provenance": provenance(toolchain, args.cuda),
        "wheels": [],
    }
    with stage("source distribution"):
        sdist = build.source_distribution()
        found["sdist"] = {"name": sdist.name, "bytes": sdist.stat().st_size}
        say(f"   {sdist.relative_to(ROOT)}: {sdist.stat().st_size:,} bytes")
        source = build.unpacked(sdist)
    out = build.DIST / "cuda" if args.cuda else build.DIST
    made: list[tuple[build.Interpreter, Path]] = []
    for python in pythons:
        with stage(f"wheel {python.tag}"):
            wheel = one(sdist, source, python, out, toolchain, args.cuda)
            made.append((python, wheel))
            wanted = ARCHITECTURES if args.cuda else ()
            found["wheels"].append(audit.examine(wheel, source / "build" / python.tag, wanted))
            say(f"   {wheel.relative_to(ROOT)}: {wheel.stat().st_size:,} bytes")
    if not args.no_try:
        found["tried"] = [tried(python, wheel) for python, wheel in made]
    for name in args.root:
        with stage(f"Debian {name} without compilers"):
            found.setdefault("roots", []).append(roots.debian(name, made))
    keep(args.json, found)
    if args.again:
        with stage("a second build, nothing cached"):
            found["second build"] = second(sdist, made[0], toolchain, args.cuda)
        keep(args.json, found)
    return 0


def toolkit(toolchain: package.Toolchain) -> str:
    """Version of the CUDA compiler."""
    release = capture([toolchain.nvcc, "--version"]) or "" if toolchain.nvcc else ""
    return release.rpartition(" V")[2].split("\n")[0]


def provenance(toolchain: package.Toolchain, with_cuda: bool) -> dict:
    """Of what, by what and where."""
    lines = (capture([toolchain.cxx, "--version"]) or "").splitlines()
    return {
        "version": VERSION,
        "commit": build.commit(),
        "dirty": bool(capture(["git", "status", "--porcelain", "--untracked-files=no"])),
        "compiler": lines[0] if lines else toolchain.cxx,
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        **({"cuda": toolkit(toolchain)} if with_cuda else {}),
        "SOURCE_DATE_EPOCH": int(build.epoch()),
    }


def keep(path: Path | None, found: dict) -> None:
    if path:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def defines(toolchain: package.Toolchain, with_cuda: bool) -> dict[str, str]:
    """What CMake is told: nothing of this machine's processor, and CUDA only where it was asked for."""
    if not with_cuda:
        return {"CRENEL_CUDA": "OFF", **{k: v for k, v in toolchain.defines().items() if "CUDA" not in k}}
    if not toolchain.nvcc:
        raise Stop(f"--cuda needs a CUDA compiler: {cuda.absence()}")
    return {**toolchain.defines(), "CRENEL_CUDA": "ON", "CRENEL_CUDA_ARCHITECTURES": ";".join(ARCHITECTURES)}


def one(
    sdist: Path,
    source: Path,
    python: build.Interpreter,
    out: Path,
    toolchain: package.Toolchain,
    with_cuda: bool,
    cached: bool = True,
) -> Path:
    """A repaired wheel in `out`; without a compiler's cache where that is wanted."""
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    bill = build.WORK / "sbom" / "crenel.cdx.json"
    bill.parent.mkdir(parents=True, exist_ok=True)
    cuda_part = toolkit(toolchain) if with_cuda else ""
    text = sbom.document(
        VERSION, build.commit(), digest, int(build.epoch()), build.nanobind(python), cuda_part
    )
    bill.write_text(text, encoding="utf-8")
    settings = {**defines(toolchain, with_cuda), "CRENEL_SBOM": str(bill)}
    raw = build.wheel(source, python, build.WORK / "raw", settings, cached)
    return build.repaired(raw, out)


def second(
    sdist: Path, first: tuple[build.Interpreter, Path], toolchain: package.Toolchain, with_cuda: bool
) -> dict:
    """The same wheel from another folder: what differs, by member."""
    python, wheel = first
    source = build.unpacked(sdist, "again/deeper")
    again = one(sdist, source, python, build.WORK / "second", toolchain, with_cuda, cached=False)
    differing = audit.differences(wheel, again)
    same = wheel.read_bytes() == again.read_bytes()
    other = f"different: {', '.join(differing) or 'order or attributes'}"
    say(f"   {'equal, byte for byte' if same else other}")
    return {"equal": same, "different members": differing}


def tried(python: build.Interpreter, wheel: Path) -> dict:
    with stage(f"{wheel.name} in a fresh environment, without an index"):
        return roots.virtual_environment(python, wheel)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Stop as stop:
        say(f"\n./run wheel: {stop}")
        sys.exit(1)
