"""The source distribution, and the wheels that are built from it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import tracked
from runner import env
from runner.shell import ROOT, Stop, capture, run_logged, say

WORK = ROOT / "build" / "release"
DIST = ROOT / "dist"
STABLE_FROM = (3, 12)  # the first Python whose stable ABI the extension uses: pyproject.toml, wheel.py-api
WANTED = ("python3.10", "python3.11", "python3.12")
ASK = "import sys; print(sys.executable, *sys.version_info[:2])"


@dataclass(frozen=True)
class Interpreter:
    executable: str
    version: tuple[int, int]

    @property
    def tag(self) -> str:
        major, minor = self.version
        return f"cp{major}{minor}" + ("-abi3" if self.version >= STABLE_FROM else "")


def interpreter(name: str) -> Interpreter | None:
    """What a name or path starts, None where it starts nothing."""
    answer = (capture([name, "-c", ASK]) or "").split()
    return Interpreter(answer[0], (int(answer[1]), int(answer[2]))) if len(answer) == 3 else None


def interpreters(named: list[str]) -> list[Interpreter]:
    """Those named, else one for each wheel as PATH has them; what is missing is said."""
    found = []
    for name in named or WANTED:
        python = interpreter(name)
        if python is None and named:
            raise Stop(f"--python {name} is no Python that runs")
        if python is None:
            say(f"   {name} was not found: no wheel for it (--python EXECUTABLE names one)")
        elif python.version < (3, 10):
            raise Stop(f"{name} is Python {python.version[0]}.{python.version[1]}; wheels need 3.10 or newer")
        else:
            found.append(python)
    if not found:
        raise Stop("no Python to build wheels for: name one by --python")
    return found


@functools.cache  # one run is of one commit, whatever happens to the checkout meanwhile
def epoch() -> str:
    """Seconds that stand for the time of the build: SOURCE_DATE_EPOCH, else the commit's."""
    return os.environ.get("SOURCE_DATE_EPOCH") or capture(["git", "log", "-1", "--format=%ct"]) or "315532800"


@functools.cache
def commit() -> str:
    """Of the sources, when the run began."""
    return capture(["git", "rev-parse", "HEAD"]) or "unknown"


def source_distribution() -> Path:
    """dist/crenel-VERSION.tar.gz, of the repository's own files and nothing that lies beside them."""
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name in tracked.files(ROOT):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    DIST.mkdir(exist_ok=True)
    code = "import sys; from scikit_build_core.build import build_sdist as b; print(b(sys.argv[1]))"
    settings = {"SOURCE_DATE_EPOCH": epoch(), **env.tool_path()}
    run_logged([env.PYTHON, "-c", code, DIST], "sdist", env=settings, cwd=tree)
    return max(DIST.glob("crenel-*.tar.gz"), key=lambda f: f.stat().st_mtime)


def unpacked(sdist: Path, name: str = "source") -> Path:
    """A fresh folder with what the archive holds."""
    target = WORK / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(target, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(
            target
        )
    return next(target.iterdir())


def builder(python: Interpreter) -> Path:
    """A virtual environment of that Python with the pinned build tools."""
    home = WORK / f"env-{python.tag}"
    if not (home / "bin" / "cmake").exists():
        run_logged([python.executable, "-m", "venv", "--clear", home], f"venv-{python.tag}")
        pip = [home / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        run_logged([*pip, "-c", env.REQUIREMENTS / "constraints.txt", "pip"], f"pip-{python.tag}")
        run_logged([*pip, "-r", env.REQUIREMENTS / "build.txt"], f"pip-{python.tag}")
    return home


def wheel(source: Path, python: Interpreter, out: Path, defines: dict[str, str], cached: bool) -> Path:
    """An unrepaired wheel of `source` for that Python, in `out`."""
    home = builder(python)
    shutil.rmtree(out, ignore_errors=True)
    settings = [f"-Cbuild-dir=build/{python.tag}", "-Cinstall.strip=true"]
    settings += [f"-Ccmake.define.{name}={value}" for name, value in defines.items()]
    command = [home / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "wheel", "-v"]
    command += ["--no-build-isolation", "--no-deps", "-w", out, *settings, source]
    path = os.pathsep.join([str(home / "bin"), os.environ["PATH"]])
    flags = " ".join([os.environ.get("CXXFLAGS", ""), f"-ffile-prefix-map={source}=."]).strip()
    variables = {"PATH": path, "SOURCE_DATE_EPOCH": epoch(), "CXXFLAGS": flags, "PYTHONHASHSEED": "0"}
    # Paths relative to the folder of the build: of three Pythons all but the bindings are compiled once.
    variables |= {"CCACHE_BASEDIR": str(source)} if cached else {"CCACHE_DISABLE": "1"}
    variables["CMAKE_BUILD_PARALLEL_LEVEL"] = str(env.jobs())
    run_logged(command, f"wheel-{python.tag}", env=variables)
    return next(out.glob("*.whl"))


def repaired(made: Path, out: Path) -> Path:
    """The wheel with the shared libraries it needs inside and the oldest manylinux tag it is good for."""
    before = set(out.glob("*.whl")) if out.exists() else set()
    command = [env.PYTHON, "-m", "auditwheel", "repair", "--plat", "auto", "-w", out, made]
    run_logged(command, "auditwheel", env={**env.tool_path(), "SOURCE_DATE_EPOCH": epoch()})
    new = set(out.glob("*.whl")) - before
    return new.pop() if new else max(out.glob("*.whl"), key=lambda f: f.stat().st_mtime)


def nanobind(python: Interpreter) -> Path:
    """The package of the bindings whose sources are compiled in, in the build environment of this Python."""
    find = "import nanobind; print(nanobind.__path__[0])"
    return Path(subprocess.check_output([builder(python) / "bin" / "python", "-c", find], text=True).strip())
