"""./run lint, docs, fuzz."""

from __future__ import annotations

import sys
from pathlib import Path

import tracked
from runner import env, fuzzing, generated, package, tidy, typed
from runner.shell import ROOT, Stop, run, run_logged, say, stage, tell_left_out

CXX_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
RULES = {
    "layer rules": "tools/check_layers.py",
    "no circles": "tools/check_circles.py",
    "tests mirror src": "tools/check_mirror.py",
    "comments of headers": "tools/check_headers.py",
    "lengths of functions": "tools/check_functions.py",
}
DICTIONARY_EXCEPTIONS = "nd,te,ot,fo,ser"


QUICK_LEAVES_OUT = "left out by --quick: mypy, pyright, clang-tidy (./run lint has them)"


def lint(arguments: list[str]) -> int:
    """./run lint [--quick] [--fix]: with --quick what a minute has time for."""
    if unknown := [word for word in arguments if word not in ("--quick", "--fix")]:
        raise Stop(f"{' '.join(unknown)}: expected --quick, --fix or both")
    fix, quick = "--fix" in arguments, "--quick" in arguments
    with stage("tools"):
        env.pip_install("lint")
    files = tracked.files(ROOT)
    sources = [f for f in files if f.endswith(CXX_SUFFIXES)]
    text = [f for f in files if not f.endswith((".json", ".safetensors", ".bin", ".png", ".npz"))]
    ruff = env.tool("ruff")
    style = ["-i"] if fix else ["--dry-run", "--Werror"]
    checks = [
        ("clang-format", [env.tool("clang-format"), *style, *sources] if sources else None),
        ("citations", [sys.executable, "-B", "tools/check_citations.py"]),
        ("ruff", [ruff, "check", *(["--fix"] if fix else []), "."]),
        ("ruff format", [ruff, "format", *([] if fix else ["--check"]), "."]),
        ("codespell", [env.tool("codespell"), "-L", DICTIONARY_EXCEPTIONS, *text]),
        *((name, [sys.executable, "-B", script]) for name, script in RULES.items()),
    ]
    failed = []
    for name, command in checks:
        with stage(name):
            if command and run(command, check=False):
                failed.append(name)
    with stage("generated files"):
        failed += generated.check(fix)
    public = (typed.SIGNATURES, typed.DOCSTRINGS)
    with stage("signatures and docstrings" if quick else "signatures, docstrings and types"):
        checks = public if quick else (*public, typed.TYPES)
        failed += [name for name, passed in typed.check(checks).items() if not passed]
    if not quick:
        with stage("clang-tidy"):
            if tidy.check("whole")[0]:
                failed.append("clang-tidy")
    tell_left_out()
    if quick:
        say(f"\n{QUICK_LEAVES_OUT}")
    say(f"\nlint: {'failed: ' + ', '.join(failed) if failed else 'clean'}")
    return 1 if failed else 0


def docs(arguments: list[str]) -> int:
    with stage("tools"):
        env.pip_install("docs")
    report = ROOT / "bench" / "report.py"
    if report.exists():
        with stage("benchmark tables"):
            run([env.PYTHON, report])
    if typed.installed_stub() is None:  # the API reference is made of it
        with stage("build and install the package"):
            env.pip_install("build", "demo")
            package.install(package.prepare(install_cuda=True))
    mkdocs = [env.tool("mkdocs")]
    quiet = {"NO_MKDOCS_2_WARNING": "1", "CRENEL_STUB": str(typed.installed_stub())}
    if "--notebooks" in arguments:  # with what their cells print: minutes
        with stage("notebooks"):
            env.pip_install("demo", "test", "notebook")
            quiet["CRENEL_NOTEBOOKS"] = str(executed_notebooks())
    if "--serve" in arguments:
        return run([*mkdocs, "serve"], env=quiet)
    with stage("mkdocs"):
        run([*mkdocs, "build", "--strict"], env=quiet)
    with stage("links, and what is loaded"):
        run([env.PYTHON, "-B", "tools/book/checker.py", "site"])
    say("   site/index.html")
    return 0


def executed_notebooks() -> Path:
    """A folder with copies of examples/notebooks that hold what their cells print."""
    folder = ROOT / "build" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    command = [env.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests/test_notebooks.py"]
    run_logged(command, "notebooks", env={"CRENEL_NOTEBOOKS": str(folder), "CRENEL_REQUIRE": "notebook"})
    return folder


fuzz = fuzzing.fuzz
