"""mypy and pyright over what users write and read: the package, examples/ and the programs of the pages.

    python tools/check_types.py [--stub build/main/python/_crenel.pyi]

The package is checked strictly, programs as their authors would check them. Findings name files and lines of
the repository, those of a page's program the page's. Needs requirements/typing.txt, and the stub of the
extension module: the one that is given, otherwise the installed one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import snippets

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "build" / "typing"
# The pages' programs define functions as a new user does, without types.
# The package was judged by then, more strictly.
PROGRAM_FLAGS = ["--check-untyped-defs", "--warn-unused-ignores", "--follow-imports=silent"]
PACKAGE_FLAGS = ["--strict", "--extra-checks"]
# These need not be here: the demo, plots, notebooks and importers use them (as pyproject.toml says to mypy).
OPTIONAL = ("sklearn", "matplotlib", "IPython", "torch", "onnx", "h5py", "safetensors", "ray", "fsspec",
            "tokenizers")  # fmt: skip
PYRIGHT = {"typeCheckingMode": "standard", "reportMissingModuleSource": "none", "pythonVersion": "3.10"}


class Missing(Exception):
    """Something that the check needs is not here; the message says how to have it."""


def find_stub(given: str | None) -> Path:
    """The stub of the extension module: the given one, or that of the installed package."""
    if given:
        stub = Path(given)
    else:
        spec = importlib.util.find_spec("crenel")
        stub = Path(spec.origin or "").with_name("_crenel.pyi") if spec else Path("_crenel.pyi")
    if not stub.is_file():
        raise Missing(f"no stub {stub}: build the package first (./run demo), or name it by --stub")
    return stub


def stage(stub: Path, root: Path = ROOT, folder: Path = STAGE) -> dict[str, str]:
    """Package, examples and pages' programs below one folder; its files by those of the repository."""
    shutil.rmtree(folder, ignore_errors=True)
    origin = {}

    def put(path: Path, text: str, source: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        origin[str(path.relative_to(folder))] = source

    for file in sorted((root / "python" / "crenel").rglob("*.py")):
        relative = file.relative_to(root / "python")
        put(folder / "package" / relative, file.read_text(encoding="utf-8"), f"python/{relative}")
    put(folder / "package/crenel/_crenel.pyi", stub.read_text(encoding="utf-8"), "_crenel.pyi")
    put(folder / "package/crenel/py.typed", "", "py.typed")
    for file in sorted((root / "examples").glob("*.py")):
        put(folder / "programs" / f"example_{file.name}", file.read_text("utf-8"), f"examples/{file.name}")
    for snippet in snippets.snippets(root):
        put(folder / "programs" / f"{snippet.module}.py", snippet.placed, snippet.page)
    return origin


def _run(command: list[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "MYPYPATH"} | {
        "MYPYPATH": str(cwd / "package")
    }
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)


def mypy(folder: Path, what: str, flags: list[str]) -> Iterator[str]:
    """Findings of mypy, as it prints them, paths below the folder."""
    if importlib.util.find_spec("mypy") is None:
        raise Missing("no mypy: python -m pip install -r requirements/typing.txt")
    cache = folder.parent / f"mypy-{what}"
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", "--no-pretty"]
    done = _run([*command, "--config-file", ROOT / "pyproject.toml", "--cache-dir", cache, *flags], folder)
    for line in done.stdout.splitlines():
        if ": note: " not in line:
            yield line
    if done.returncode not in (0, 1) or (done.returncode and not done.stdout.strip()):
        yield f"mypy itself failed: {done.stderr.strip() or done.returncode}"


def pyright(folder: Path) -> Iterator[str]:
    """Errors of pyright in its standard mode."""
    program = shutil.which(
        "basedpyright", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if program is None:
        raise Missing("no basedpyright: python -m pip install -r requirements/typing.txt")
    config = folder / "pyrightconfig.json"
    config.write_text(json.dumps({**PYRIGHT, "include": ["package", "programs"], "extraPaths": ["package"]}))
    done = _run([program, "-p", config, "--outputjson", "--pythonpath", sys.executable], folder)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        yield f"basedpyright itself failed: {(done.stderr or done.stdout).strip()}"
        return
    if not report["summary"]["filesAnalyzed"]:
        yield "basedpyright analysed no file"
    for found in report["generalDiagnostics"]:
        if found["severity"] == "error":
            place = Path(found["file"]).resolve().relative_to(folder.resolve())
            message = " ".join(found["message"].split())
            if re.match(rf'Import "({"|".join(OPTIONAL)})[."].* could not be resolved', message):
                continue
            rule = f"  [{found['rule']}]" if "rule" in found else ""
            yield f"{place}:{found['range']['start']['line'] + 1}: error: {message}{rule}"


def named(line: str, origin: dict[str, str]) -> str:
    """The finding with the repository's file in place of the staged one."""
    match = re.match(r"([^:]+):", line)
    return origin[match[1]] + line[match.end(1) :] if match and match[1] in origin else line


def check(stub: Path, root: Path = ROOT, folder: Path = STAGE) -> list[str]:
    """What mypy and pyright find, each checker's name before it."""
    origin = stage(stub, root, folder)
    programs = sorted(name for name in origin if name.startswith("programs/"))
    jobs = {
        "pyright": lambda: list(pyright(folder)),
        "mypy": lambda: [
            *mypy(folder, "package", [*PACKAGE_FLAGS, "-p", "crenel"]),
            *mypy(folder, "programs", [*PROGRAM_FLAGS, "--scripts-are-modules", *programs]),
        ],
    }
    with ThreadPoolExecutor() as pool:
        running = {name: pool.submit(job) for name, job in jobs.items()}
        return [f"{name}: {named(line, origin)}" for name, job in running.items() for line in job.result()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stub", help="the extension module's stub; default: the installed package's")
    options = parser.parse_args()
    try:
        found = check(find_stub(options.stub))
    except Missing as missing:
        print(f"check_types.py: {missing}")
        return 2
    print(*found, sep="\n", end="\n" if found else "")
    print(
        f"types: {len(found)} findings of mypy and pyright"
        if found
        else "types: mypy and pyright find nothing"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
