"""Waiting for Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading


def wait() -> None:
    """Returns when the process is asked to end; the signals' old handlers are there again then."""
    asked = threading.Event()

    def ask(_number: int, _frame: object) -> None:
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not asked.wait(0.5):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
