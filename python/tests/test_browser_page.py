"""The page in a real browser against a real service: a drawn digit is classified under encryption."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from browser_world import chromium, missing, page

from crenel import ckks

try:
    from playwright.sync_api import Page, Request, Route, sync_playwright

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


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if ABSENT:
        missing(ABSENT)
    page()
    program = chromium()
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def program(browser):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = ckks.preset("toy-leveled-n16-s40", allow_insecure=True)
        return demo_serve.program("cpu", 3, params)[0]


@contextmanager
def serving(program, folder, **settings) -> Iterator[str]:
    program.save(folder / "digits.crn")
    chosen = serve.Settings(
        data=str(folder / "data"), page=str(page()), allow_insecure=True, min_free_bytes=0, **settings
    )
    with serve.running([folder / "digits.crn"], chosen, device="cpu") as made:
        yield made.url


@pytest.fixture
def world(browser, program, tmp_path) -> Iterator[SimpleNamespace]:
    """A tab that shows the page, and what it sent."""
    with serving(program, tmp_path, guests=100) as url:
        tab = browser.new_page(viewport={"width": 1240, "height": 860})
        found = SimpleNamespace(tab=tab, url=url, sent=[], wrong=[])
        tab.on("request", lambda request: found.sent.append(request))
        tab.on("pageerror", lambda error: found.wrong.append(str(error)))
        tab.on("console", lambda m: found.wrong.append(m.text) if "Content Security" in m.text else None)
        tab.goto(f"{url}/page/")
        tab.wait_for_selector("#classify:not([disabled])", timeout=60_000)
        yield found
        assert found.wrong == []
        tab.close()


def draw(tab: Page, digit: int) -> None:
    tab.click("#clear")
    box = tab.locator("#drawing").bounding_box()
    for line in STROKES[digit]:
        points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in line]
        tab.mouse.move(*points[0])
        tab.mouse.down()
        for point in points[1:]:
            tab.mouse.move(*point, steps=5)
        tab.mouse.up()


def classify(tab: Page) -> str:
    """The page's answer, or its error."""
    tab.evaluate("() => { delete document.querySelector('#answer').dataset.digit }")
    tab.evaluate("() => { delete document.querySelector('#state').dataset.error }")
    tab.click("#classify")
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
    return [r for r in sent if r.method in ("POST", "PATCH") and path in r.url]


def test_a_drawn_digit_is_classified(world, program) -> None:
    for digit in (7, 1):
        draw(world.tab, digit)
        assert classify(world.tab) == expected(world.tab, program)
    # One set of keys, two pictures; nothing went anywhere else.
    assert len(posts(world.sent, "/keys/uploads")) == 1 + len(posts(world.sent, "/keys/uploads/"))
    assert len([r for r in posts(world.sent, "/jobs") if r.url.endswith("/jobs")]) == 2
    assert all(r.url.startswith(world.url) for r in world.sent)
    steps = world.tab.evaluate("() => crenelSteps")
    names = [s["name"] for s in steps]
    assert names[2:5] == ["Make a secret key", "Make keys for the server", "Send and check these keys"]
    assert all(s["milliseconds"] > 0 for s in steps)
    keys = program.client.keygen("cpu").evaluation_keys(program.client).to_bytes()
    assert next(s["bytes"] for s in steps if s["name"] == names[3]) == len(keys)
    # What was shown as the server's view is what was sent.
    body = posts(world.sent, "/jobs")[-1].post_data_buffer
    if body is not None:  # some browsers keep no large bodies
        shown = world.tab.inner_text("#bytes").split()
        at = len(body) // 2
        assert bytes.fromhex("".join(shown)) == body[at : at + 160]


def test_an_upload_that_breaks_goes_on(world, program) -> None:
    broken = []

    def breaks(route: Route) -> None:
        if route.request.method == "PATCH" and len(broken) < 2:
            broken.append(route.request.headers["upload-offset"])
            route.abort("connectionreset")
        else:
            route.continue_()

    world.tab.route("**/keys/uploads/*", breaks)
    draw(world.tab, 4)
    assert classify(world.tab) == expected(world.tab, program)
    assert len(broken) == 2
    assert any(r.method == "HEAD" for r in world.sent)


def test_keys_that_the_service_lost_are_sent_again(world, program) -> None:
    draw(world.tab, 7)
    assert classify(world.tab) == expected(world.tab, program)
    request = posts(world.sent, "/jobs")[0]
    headers = {"Authorization": request.headers["authorization"], "Crenel-Protocol": "1"}
    key = request.headers["crenel-key"]
    assert world.tab.request.delete(f"{world.url}/keys/{key}", headers=headers).status == 204
    assert classify(world.tab) == "KeysNeededError"
    assert classify(world.tab) == expected(world.tab, program)


def test_a_service_without_guests_is_said(browser, program, tmp_path) -> None:
    with serving(program, tmp_path) as url:
        tab = browser.new_page()
        tab.goto(f"{url}/page/")
        tab.wait_for_selector("#state[data-error]", timeout=60_000)
        assert tab.get_attribute("#state", "data-error") == "NotFoundError"
        assert tab.is_disabled("#classify")
        tab.close()
