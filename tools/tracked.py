"""The files that belong to the repository, in a checkout and in an unpacked archive without git."""

from __future__ import annotations

import fnmatch
import os
import subprocess
from pathlib import Path

# Made by builds and tools, as .gitignore has it; only asked where there is no git to read that.
MADE = ("__pycache__", "*.egg-info", "*.pyc", "compile_commands.json")
MADE_AT_TOP = ("build*", "out", "dist", "site")
HIDDEN = (
    ".ci",
    ".gitignore",
    ".dockerignore",
    ".clang-format",
    ".clang-tidy",
    ".editorconfig",
    ".pre-commit-config.yaml",
)


def files(root: Path) -> list[str]:
    """Names relative to `root`, sorted: tracked files and untracked ones that git does not ignore."""
    listed = _from_git(root)
    names = _walked(root) if listed is None else set(listed)
    return [name for name in sorted(names) if (root / name).is_file()]


def _from_git(root: Path) -> list[str] | None:
    git = ["git", "-C", str(root)]
    try:
        top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True)
        if top.returncode or Path(top.stdout.strip()).resolve() != root.resolve():
            return None  # none, or the archive lies inside somebody else's checkout
        command = [*git, "ls-files", "-co", "--exclude-standard", "-z"]
        return subprocess.check_output(command, text=True).strip("\0").split("\0")
    except OSError:
        return None


def _walked(root: Path) -> set[str]:
    found = set()
    for folder, folders, names in os.walk(root):
        made = MADE + MADE_AT_TOP * (Path(folder) == root)
        folders[:] = [name for name in folders if not _made(name, made)]
        kept = [name for name in names if not _made(name, made)]
        found |= {(Path(folder) / name).relative_to(root).as_posix() for name in kept}
    return found


def _made(name: str, patterns: tuple[str, ...]) -> bool:
    hidden = name.startswith(".") and name not in HIDDEN
    return hidden or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
