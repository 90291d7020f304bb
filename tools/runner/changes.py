"""What changed, and against what: the checks that are too slow for everything read this and say it.

The base is the first of these that there is:
  CRENEL_BASE      a commit that the caller names
  upstream         where HEAD left the branch it follows, origin/HEAD, origin/main or origin/master, unless
                   HEAD is part of that branch already
  HEAD^            the commit before the last one (the first parent of a merge)
Without any (one commit of history, or no git at all) everything counts as changed: never nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from runner.shell import ROOT, Stop, capture

UPSTREAMS = ("@{upstream}", "origin/HEAD", "origin/main", "origin/master")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
INCLUDE_ROOTS = ("src", "include", "", "tests", "python/src")


class Changes(NamedTuple):
    """`files`: changed files of the repository, that exist; None: everything counts as changed."""

    files: list[str] | None
    why: str


def git(*arguments: str, root: Path = ROOT) -> str | None:
    """Output of git in this repository; None where it fails, or where `root` is not the top of a checkout
    (an unpacked archive may lie inside somebody else's)."""
    top = capture(["git", "-C", root, "rev-parse", "--show-toplevel"])
    if top is None or Path(top).resolve() != root.resolve():
        return None
    return capture(["git", "-C", root, *arguments])


def base(root: Path = ROOT) -> tuple[str | None, str]:
    """The commit to compare with, or None, and why."""
    if named := os.environ.get("CRENEL_BASE"):
        commit = git("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}", root=root)
        if commit is None:
            raise Stop(f"CRENEL_BASE={named}: expected a commit of this repository")
        return commit, f"CRENEL_BASE={named}"
    head = git("rev-parse", "--verify", "--quiet", "HEAD", root=root)
    if head is None:
        return None, "no git history here"
    for branch in UPSTREAMS:
        commit = git("merge-base", "HEAD", branch, root=root)
        if commit and commit != head:
            return commit, f"where HEAD left {branch}"
    commit = git("rev-parse", "--verify", "--quiet", "HEAD^", root=root)
    return commit, "the commit before HEAD" if commit else "history begins with HEAD"


def changes(root: Path = ROOT) -> Changes:
    commit, why = base(root)
    if commit is None:
        return Changes(None, f"{why}: everything counts as changed")
    listed = [
        git("diff", "--name-only", "--no-renames", "-z", commit, "--", root=root),
        git("ls-files", "--others", "--exclude-standard", "-z", root=root),
    ]
    if None in listed:
        return Changes(None, f"git cannot compare with {commit[:12]}: everything counts as changed")
    names = {name for text in listed for name in text.split("\0") if name}
    files = sorted(name for name in names if (root / name).is_file())
    return Changes(files, f"{len(names)} files differ from {commit[:12]} ({why})")


class Includes:
    """Which files of the repository include which, by their text."""

    def __init__(self, root: Path, files: list[str]):
        self.root = root
        self.known = set(files)
        self.direct = {name: self._read(name) for name in files}

    def _read(self, name: str) -> set[str]:
        text = (self.root / name).read_text(errors="replace")
        places = [Path(place) for place in (*INCLUDE_ROOTS, Path(name).parent.as_posix())]
        found = {(p / written).as_posix() for written in INCLUDE.findall(text) for p in places}
        return found & self.known

    def behind(self, name: str) -> list[str]:
        """`name` and all that it includes, sorted."""
        seen, todo = {name}, [name]
        while todo:
            fresh = self.direct[todo.pop()] - seen
            seen |= fresh
            todo += fresh
        return sorted(seen)

    def reader(self, header: str, sources: list[str]) -> str | None:
        """The source through which a header is best read: one of its own folder and name if there is one,
        otherwise the one that includes least besides."""
        readers = [s for s in sources if header in self.behind(s)]
        where = Path(header)

        def order(source: str) -> tuple:
            path = Path(source)
            alike = path.stem == where.stem
            return (not alike, path.parent != where.parent, len(self.behind(source)), source)

        return min(readers, key=order, default=None)
