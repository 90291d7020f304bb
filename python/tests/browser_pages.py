"""The page in a real browser against a real service, for tests: a tab, and what people do in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from browser_world import chromium, missing, page

from crenel import ckks

try:
    from playwright.sync_api import Page, Request, sync_playwright

    from crenel import serve
    from crenel.workloads.networks import demo_serve

    serve.Settings, serve.running  # noqa: B018  # imported when they are asked for
    ABSENT = ""
except ImportError as error:
    ABSENT = f"{error}: pip install -r requirements/web.txt -r requirements/test.txt"

STROKES = {
    1: [[(0.42, 0.3), (0.55, 0.15), (0.55, 0.85)]],
    7: [[(0.3, 0.2), (0.7, 0.2), (0.5, 0.5), (0.42, 0.85)]],
    4: [[(0.55, 0.15), (0.3, 0.55), (0.72, 0.55)], [(0.6, 0.35), (0.6, 0.85)]],
}
ANSWER = "#answer[data-digit], #state[data-error]"


@contextmanager
def launched() -> Iterator[object]:
    """Chromium, or a skip."""
    if ABSENT:
        missing(ABSENT)
    page()
    program = chromium()
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


def small_program():
    """The digits' program with a toy's parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = ckks.preset("toy-leveled-n16-s40", allow_insecure=True)
        return demo_serve.program("cpu", 3, params)[0]


@contextmanager
def serving(program, folder, **settings) -> Iterator[object]:
    """A service of the program, with the page."""
    program.save(folder / "digits.crn")
    settings = {"page": str(page()), **settings}
    chosen = serve.Settings(data=str(folder / "data"), allow_insecure=True, min_free_bytes=0, **settings)
    with serve.running([folder / "digits.crn"], chosen, device="cpu") as made:
        yield made


@contextmanager
def shown(browser, program, folder, **settings) -> Iterator[SimpleNamespace]:
    """A tab that shows the page, what it sent, and the service. Nothing may go wrong in it unseen."""
    with serving(program, folder, guests=100, **settings) as service:
        tab = browser.new_page(viewport={"width": 1240, "height": 860})
        found = SimpleNamespace(tab=tab, url=service.url, service=service, sent=[], wrong=[])
        tab.on("request", lambda request: found.sent.append(request))
        tab.on("pageerror", lambda error: found.wrong.append(str(error)))
        tab.on("console", lambda m: found.wrong.append(m.text) if "Content Security" in m.text else None)
        tab.goto(f"{service.url}/page/")
        tab.wait_for_selector("#classify:not([disabled])", timeout=60_000)
        yield found
        assert found.wrong == []
        tab.close()


def draw(tab: Page, digit: int) -> None:
    """With the mouse."""
    tab.click("#clear")
    box = tab.locator("#drawing").bounding_box()
    for line in STROKES[digit]:
        points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in line]
        tab.mouse.move(*points[0])
        tab.mouse.down()
        for point in points[1:]:
            tab.mouse.move(*point, steps=5)
        tab.mouse.up()


def begin(tab: Page) -> None:
    """Clicks, with no answer and no error shown."""
    tab.evaluate("() => { delete document.querySelector('#answer').dataset.digit }")
    tab.evaluate("() => { delete document.querySelector('#state').dataset.error }")
    tab.click("#classify")


def classify(tab: Page) -> str:
    """The page's answer, or its error."""
    begin(tab)
    return ended(tab)


def ended(tab: Page) -> str:
    """Of what was begun, the answer or the error."""
    tab.wait_for_selector(ANSWER, state="attached", timeout=120_000)
    tab.wait_for_selector("#classify:not([disabled])", timeout=10_000)
    return tab.get_attribute("#state", "data-error") or tab.get_attribute("#answer", "data-digit")


def expected(tab: Page, program) -> str:
    """What the program makes of the same picture in the clear."""
    sample = tab.evaluate(
        "async () => { const m = await import('./picture.mjs');"
        " return Array.from(m.pixels(m.inkOf(document.querySelector('#drawing')), 8)) }"
    )
    return str(int(program.simulate(np.array([sample])).argmax()))


def posts(sent: list[Request], path: str) -> list[Request]:
    """What was sent to such a path."""
    return [r for r in sent if r.method in ("POST", "PATCH") and path in r.url]
