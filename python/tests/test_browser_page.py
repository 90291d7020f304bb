"""The page in a real browser against a real service: a drawn digit is classified under encryption."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from browser_pages import classify, draw, expected, posts, serving, shown, small_program

try:
    from playwright.sync_api import Route

    from crenel.workloads.networks import demo_serve
except ImportError:
    pass  # the fixture browser says it


@pytest.fixture(scope="module")
def program(browser):
    return small_program()


@pytest.fixture
def world(browser, program, tmp_path) -> Iterator[SimpleNamespace]:
    with shown(browser, program, tmp_path) as found:
        yield found


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
    with serving(program, tmp_path) as service:
        tab = browser.new_page()
        tab.goto(f"{service.url}/page/")
        tab.wait_for_selector("#state[data-error]", timeout=60_000)
        assert tab.get_attribute("#state", "data-error") == "NotFoundError"
        assert tab.is_disabled("#classify")
        tab.close()
