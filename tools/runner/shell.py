"""Running commands, telling what goes on, timing stages."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "logs"
TAIL_LINES = 60

stage_times: list[tuple[str, float]] = []
remembered: list[str] = []


class Stop(Exception):
    """Something is missing or failed; the text says what, and what to type."""


def say(text: str = "") -> None:
    print(text, flush=True)


def remember(text: str) -> None:
    """Says it now, and has the end of the run say it again."""
    say(f"   {text}")
    if text not in remembered:
        remembered.append(text)


def tell_left_out() -> None:
    """All that was to be remembered."""
    if remembered:
        say("\n== left out")
        for text in remembered:
            say(f"   {text}")


@contextlib.contextmanager
def stage(name: str):
    """Prints the name, then the wall time of what happens inside."""
    say(f"== {name}")
    start = time.monotonic()
    try:
        yield
    finally:
        seconds = time.monotonic() - start
        stage_times.append((name, seconds))
        say(f"   {name}: {seconds:.1f} s")


def together(*lanes: Callable[[], None]) -> None:
    """Runs all at once, each to its end; then the first problem, if there was one."""
    problems: list[BaseException] = []

    def guarded(lane: Callable[[], None]) -> None:
        try:
            lane()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stops = [str(p) for p in problems if isinstance(p, Stop)]
    if stops and len(stops) == len(problems):
        raise Stop("\n\n".join(stops))
    if problems:
        raise next(p for p in problems if not isinstance(p, Stop))


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    env = dict(os.environ)
    env.update(extra or {})
    return env


def run(command: list, *, env: dict | None = None, cwd: Path = ROOT, check: bool = True) -> int:
    """Runs with the terminal's own input and output."""
    command = [str(c) for c in command]
    code = subprocess.run(command, cwd=cwd, env=environment(env)).returncode
    if check and code:
        raise Stop(f"failed with exit code {code}: {shlex.join(command)}")
    return code


def capture(command: list, *, env: dict | None = None) -> str | None:
    """Standard output, or None when the command is absent or fails."""
    try:
        done = subprocess.run(
            [str(c) for c in command],
            cwd=ROOT,
            env=environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def run_logged(
    command: list, log: str, *, env: dict | None = None, check: bool = True, cwd: Path = ROOT
) -> int:
    """Writes output to build/logs/<log>.log; shows one moving line when a person watches, and the end
    of the log when the command fails."""
    command = [str(c) for c in command]
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{log}.log"
    watched = sys.stdout.isatty() and threading.current_thread() is threading.main_thread()
    with path.open("w", encoding="utf-8", errors="replace") as out:
        out.write(f"$ {shlex.join(command)}\n")
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            for line in process.stdout:
                out.write(line)
                if watched and line.strip():
                    print(f"\r\033[K   {line.strip()[:100]}", end="", flush=True)
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
    if watched:
        print("\r\033[K", end="", flush=True)
    if code and check:
        tail = path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        say("\n".join(tail))
        raise Stop(f"failed with exit code {code} (whole output: {path.relative_to(ROOT)})")
    return code


def tree_hash(paths: list[str], salt: str = "", root: Path = ROOT) -> str:
    """SHA-256 over names and contents of the files in the given files and folders of the repository."""
    digest = hashlib.sha256(salt.encode())
    for file in sorted(f for path in paths for f in files_below(root / path)):
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def files_below(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [
        f
        for f in path.rglob("*")
        if f.is_file() and "__pycache__" not in f.parts and f.suffix not in (".pyc", ".orig")
    ]
