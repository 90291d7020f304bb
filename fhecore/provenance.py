"""What every result file says of itself."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def provenance(command: str) -> dict:
    """Commit of the checkout (`unknown` outside git), whether tracked files differ from it, command, date."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True)
    return {
        "commit": head.stdout.strip() if head.returncode == 0 else "unknown",
        "dirty": bool(changed.stdout.strip()),
        "command": command,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
