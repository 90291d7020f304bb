"""./run lint, docs, fuzz."""

from __future__ import annotations

import sys

from runner import env, fuzzing
from runner.shell import ROOT, Stop, capture, run, say, stage

CXX_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
RULES = {
    "layer rules": "tools/check_layers.py",
    "no circles": "tools/check_circles.py",
    "tests mirror src": "tools/check_mirror.py",
}
DICTIONARY_EXCEPTIONS = "nd,te,ot,fo,ser"


def _files() -> list[str]:
    """Files of the repository: tracked, and untracked ones that git does not ignore."""
    listed = capture(["git", "ls-files", "-co", "--exclude-standard"])
    if listed is None:
        raise Stop("lint needs a git checkout, to know which files belong to the repository")
    return [name for name in sorted(set(listed.splitlines())) if (ROOT / name).is_file()]


def lint(arguments: list[str]) -> int:
    fix = "--fix" in arguments
    with stage("tools"):
        env.pip_install("lint")
    files = _files()
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
    say(f"\nlint: {'failed: ' + ', '.join(failed) if failed else 'clean'}")
    return 1 if failed else 0


def docs(arguments: list[str]) -> int:
    with stage("tools"):
        env.pip_install("docs")
    report = ROOT / "bench" / "report.py"
    if report.exists():
        with stage("benchmark tables"):
            run([env.PYTHON, report])
    mkdocs = [env.tool("mkdocs")]
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    if "--serve" in arguments:
        return run([*mkdocs, "serve"], env=quiet)
    with stage("mkdocs"):
        run([*mkdocs, "build", "--strict"], env=quiet)
    say("   site/index.html")
    return 0


fuzz = fuzzing.fuzz
