"""Builds and runs a cocotb bench on Verilator; what the tests of element, array and wrapper share."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhecore.dv import stimulus, tools


def need_cocotb(work: Path) -> None:
    """Skip the running test with the reason when the simulator or cocotb is missing."""
    for tool in (tools.cocotb(), tools.verilator(work)):
        if not tool:
            pytest.skip(tool.reason)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    saved = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def sources(top: str, folder: Path = tools.RTL) -> list[Path]:
    """The file of module `top` and, recursively, those of the modules it instantiates (one module a file)."""
    known = {path.stem: path for path in sorted(folder.glob("*.v"))}
    todo, found = [top], []
    while todo:
        path = known.get(todo.pop())
        if path is not None and path not in found:
            found.append(path)
            todo += [
                name for name in known if re.search(rf"^\s*{name}\b\s*(#|\w+\s*\()", path.read_text(), re.M)
            ]
    return found


def simulate(
    work: Path,
    bench: str,
    top: str,
    files: list[Path],
    parameters: dict[str, int],
    env: dict[str, str],
    ports: list[str],
) -> int:
    """Run the tests of module fhecore.dv.<bench> on `top`; returns how many passed. AssertionError when one
    fails; the simulator's log is in <work>/cocotb/ and is printed. `ports` are the names the bench uses."""
    tag = "-".join([bench, top, *(f"{k}{v}" for k, v in parameters.items())])
    folder = work / "cocotb" / tag
    folder.mkdir(parents=True, exist_ok=True)
    build(work, folder, top, files, parameters, ports)
    return execute(work, folder, bench, top, env)


def build(
    work: Path, folder: Path, top: str, files: list[Path], parameters: dict[str, int], ports: list[str]
) -> None:
    """Compile `top` for cocotb. Not with cocotb's own builder: that one makes every signal public, and the
    carry-save form then compiles for minutes; here the ports are."""
    import cocotb_tools.config as config

    public = folder / "public.vlt"
    lines = [f'public_flat_rw -module "{top}" -var "{port}"' for port in ports]
    public.write_text("\n".join(["`verilator_config", *lines, ""]))
    libraries = f"-Wl,-rpath,{config.libs_dir} -L{config.libs_dir} -lcocotbvpi_verilator"
    command = [
        *("verilator", "-cc", "--exe", "--vpi", "--prefix", "Vtop", "-o", top, "-Mdir", str(folder)),
        *("--top-module", top, "-Wno-fatal", "-Wno-lint", "--x-assign", "unique", "--x-initial", "unique"),
        f"-I{tools.RTL}",  # also for copies elsewhere: fhecore_config.vh
        *("-LDFLAGS", libraries, "--timescale", "1ns/1ps"),
        *(f"-G{name}={value}" for name, value in parameters.items()),
        str(config.share_dir / "lib" / "verilator" / "verilator.cpp"),
        *(str(path) for path in (public, *files)),
    ]
    tools.compile_bench(command, folder, work, ("OPT_FAST=-O1", *tools.ONE_FILE))


def execute(work: Path, folder: Path, bench: str, top: str, env: dict[str, str]) -> int:
    """Run a compiled bench; see simulate."""
    from cocotb_tools.runner import get_runner

    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    seed = stimulus.run_seed()
    # The runner leaves with SystemExit when a test fails: the results file says which.
    with _environment(tools.environment(work)), contextlib.suppress(SystemExit):
        get_runner("verilator").test(
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            test_module=f"fhecore.dv.{bench}",
            build_dir=folder,
            test_dir=folder,
            results_xml=str(results),
            plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{seed % 2147483646 + 1}"],
            extra_env={**env, "CRENEL_SEED": str(seed), "COCOTB_ANSI_OUTPUT": "0"},
            log_file=folder / "sim.log",
        )
    print((folder / "sim.log").read_text())
    assert results.exists(), f"{folder.name}: the simulator ended early, see {folder}/sim.log"
    cases = list(ElementTree.parse(results).getroot().iter("testcase"))
    failed = [c.get("name") for c in cases if c.find("failure") is not None or c.find("error") is not None]
    assert cases and not failed, f"{folder.name}: {failed} failed; repeat with CRENEL_SEED={seed}"
    return len(cases)


def mutate(folder: Path, files: list[Path], patches: dict[str, list[tuple[str, str]]]) -> list[Path]:
    """Copies of `files` in `folder` with textual patches, by file name. A text to replace that is not there
    exactly once is an error: a mutation must not vanish when the source changes."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = []
    for path in files:
        copy = folder / path.name
        shutil.copyfile(path, copy)
        text = copy.read_text()
        for old, new in patches.get(path.name, []):
            assert text.count(old) == 1, f"mutation of {path.name}: {old!r} occurs {text.count(old)} times"
            text = text.replace(old, new)
        copy.write_text(text)
        copies.append(copy)
    missing = set(patches) - {path.name for path in files}
    assert not missing, f"mutation of files that are not built: {missing}"
    return copies
