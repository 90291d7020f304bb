"""Headless Chromium by its own protocol, for measurements: a tab, its scripts, its mouse and its picture.

A driver for tests has Chromium tell of every request with its body, which costs many times what sending tens
of megabytes does. Here the browser tells nothing of the network. The protocol is that of the DevTools, as
JSON over a pipe.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Chromium reads the protocol at 3 and writes it at 4.
AT_3_AND_4 = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(reads, 3), os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
ANSWER_S, END_S = 60.0, 30.0


class Chromium:
    """A browser that runs. See `launched`."""

    def __init__(self, process: subprocess.Popen[bytes], writes: int, reads: int) -> None:
        self.process, self._writes, self._reads = process, writes, reads
        self._number, self._pending = 0, b""

    @property
    def version(self) -> str:
        """As in ``156.0.8078.108``."""
        return str(self.call("Browser.getVersion")["product"]).partition("/")[2]

    def call(
        self, method: str, session: str | None = None, seconds: float = ANSWER_S, **params: Any
    ) -> dict[str, Any]:
        """What it answers; events are left unread. Raises RuntimeError where it refuses, TimeoutError."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._writes, data) :]
        end = time.monotonic() + seconds
        while True:
            found = json.loads(self._message(method, end))
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return dict(found["result"])

    def _message(self, method: str, end: float) -> bytes:
        while b"\0" not in self._pending:
            if not select.select([self._reads], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{method}: Chromium did not answer in time")
            piece = os.read(self._reads, 1 << 20)
            if not piece:
                raise RuntimeError(f"{method}: Chromium ended with {self.process.wait(END_S)}")
            self._pending += piece
        found, _, self._pending = self._pending.partition(b"\0")
        return found

    @contextmanager
    def tab(self, url: str, width: int, height: int) -> Iterator[Tab]:
        """A new tab, closed with the block."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        made = Tab(self, str(session))
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        made.call("Emulation.setDeviceMetricsOverride", **size)
        made.call("Emulation.setScrollbarsHidden", hidden=True)
        made.call("Page.navigate", url=url)
        try:
            yield made
        finally:
            self.call("Target.closeTarget", targetId=target)


class Tab:
    """A tab. See `Chromium.tab`."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, seconds: float = ANSWER_S, **params: Any) -> dict[str, Any]:
        """As `Chromium.call`, of this tab."""
        return self._browser.call(method, self._session, seconds, **params)

    def evaluate(self, script: str, seconds: float = ANSWER_S) -> Any:
        """The value of an expression, awaited. Raises RuntimeError for what it throws."""
        found = self.call(
            "Runtime.evaluate", seconds, expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def wait_for(self, selector: str, seconds: float) -> None:
        """Until an element is there. Raises TimeoutError."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"document.querySelector({json.dumps(selector)}) !== null"):
            if time.monotonic() > end:
                raise TimeoutError(f"no {selector} after {seconds:.0f} s")
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """As a mouse does, by the element's own event."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def drag(self, selector: str, points: Sequence[tuple[float, float]], steps: int = 5) -> None:
        """The mouse with its button down along points, in parts of the element's width and height."""
        box = self.evaluate(
            f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()"
        )
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
        self._mouse("mousePressed", places[0])
        for (x, y), (u, v) in zip(places, places[1:], strict=False):
            for k in range(1, steps + 1):
                self._mouse("mouseMoved", (x + (u - x) * k / steps, y + (v - y) * k / steps))
        self._mouse("mouseReleased", places[-1])

    def _mouse(self, kind: str, at: tuple[float, float]) -> None:
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", buttons=1, clickCount=1
        )

    def choose(self, selector: str, file: Path) -> None:
        """A file for an input of files."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def picture(self, to: Path) -> None:
        """The whole page as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        to.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def launched(program: str) -> Iterator[Chromium]:
    """The browser, without a window and with a profile of its own, until the block ends."""
    theirs_in, writes = os.pipe()
    reads, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [sys.executable, "-c", AT_3_AND_4, str(theirs_in), str(theirs_out), program, "--headless"]
        command += ["--remote-debugging-pipe", "--no-sandbox", "--no-first-run", f"--user-data-dir={profile}"]
        process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        made = Chromium(process, writes, reads)
        try:
            yield made
        finally:
            with contextlib.suppress(RuntimeError, TimeoutError, OSError):
                made.call("Browser.close", seconds=END_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
            process.kill()
            os.close(writes)
            os.close(reads)
