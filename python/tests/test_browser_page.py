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


def test_a_table_is_classified(world, program, tmp_path) -> None:
    """More rows than a ciphertext takes, with names, labels of which one is wrong, numbers to be divided."""
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    pixels, _ = demo_serve.digits()
    sixteenths = np.round(16 * np.random.default_rng(seed).permutation(pixels)).astype(int)
    scores = program.simulate(sixteenths / 16, noise=False)
    clear_ones = np.sort(scores)[:, -1] - np.sort(scores)[:, -2] > 2**-5  # no rounding changes their class
    samples = sixteenths[clear_ones][: 2 * program.client.batch + 3]
    scores = scores[clear_ones][: len(samples)]
    clear = scores.argmax(axis=1)
    labels = clear.copy()
    labels[1] = (labels[1] + 1) % 10
    lines = [",".join([*(f"pixel{k}" for k in range(64)), '"what, it is"'])]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(samples, labels, strict=True)]
    file = tmp_path / "digits.csv"
    file.write_text("\r\n".join(lines) + "\r\n")
    world.tab.set_input_files("#table", file)
    world.tab.fill("#divisor", "16")
    world.tab.click("#classify-table")
    done = "#table-answer[data-classes], #state[data-error]"
    world.tab.wait_for_selector(done, state="attached", timeout=120_000)
    assert world.tab.get_attribute("#state", "data-error") is None, world.tab.inner_text("#state")
    found = world.tab.get_attribute("#table-answer", "data-classes")
    assert found == " ".join(map(str, clear))
    assert f"{len(clear)} rows" in world.tab.inner_text("#table-answer")
    assert f"{len(clear) - 1} as their label says" in world.tab.inner_text("#table-answer")
    assert world.tab.locator("#results tr.wrong").count() == 1
    assert len([r for r in posts(world.sent, "/jobs") if r.url.endswith("/jobs")]) == 3
    with world.tab.expect_download() as saved:
        world.tab.click("#save")
    rows = saved.value.path().read_text().splitlines()
    assert rows[0].startswith("row,class,score0,") and len(rows) == 1 + len(clear)
    assert [int(row.split(",")[1]) for row in rows[1:]] == list(clear)
    shown = np.array([[float(x) for x in row.split(",")[2:]] for row in rows[1:]])
    assert np.abs(shown - scores).max() < 2**-6


def test_tables_that_are_none_are_said(world, tmp_path) -> None:
    """Nothing is sent, no key is made, and no number of the file is shown."""
    good = ",".join(["1"] * 64)
    for text in (
        "",
        "a,b\n",
        "1,2,3\n",
        f"{good}\n{good},9,9\n",
        f"{good}\n77123{good[1:]}\n",
        f'{good}\n"1',
    ):
        file = tmp_path / "wrong.csv"
        file.write_text(text)
        world.tab.set_input_files("#table", file)
        world.tab.evaluate("() => { delete document.querySelector('#state').dataset.error }")
        world.tab.click("#classify-table")
        world.tab.wait_for_selector("#state[data-error]", state="attached", timeout=10_000)
        assert world.tab.get_attribute("#state", "data-error") == "ParameterError", text
        assert "77123" not in world.tab.inner_text("#state")
    assert posts(world.sent, "/keys/uploads") == posts(world.sent, "/jobs") == []


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
