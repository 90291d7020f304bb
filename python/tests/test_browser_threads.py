"""Helper threads of the WebAssembly module: as many as can be had, and none of their memory for the page."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest
from browser_pages import classify, draw, expected, serving, small_program
from browser_world import HERE, WEB, page, tool

from crenel import ckks

START_S = 10
"""How long web/team.mjs waits for a helper."""
MUTE = "// Never answers.\n"
BROKEN = "throw new Error('broken on purpose');\n"
LOST = """import { parentPort } from "node:worker_threads";
const answer = ({ begin }) => (begin ? { failed: "lost" } : { ready: true });
parentPort.onmessage = ({ data }) => parentPort.postMessage(answer(data));
"""
ONLY_ONE = """import { threadId } from "node:worker_threads";
if (threadId !== 2) throw new Error("only one");
await import("./one.mjs");
"""
# Of every message that a page's worker sends or is sent, whether shared memory is in it.
LISTEN = """
globalThis.heard = [];
globalThis.shares = (value, seen = new Set()) => {
  if (value === null || typeof value !== "object" || seen.has(value)) return false;
  seen.add(value);
  if (value instanceof SharedArrayBuffer || value instanceof WebAssembly.Memory) return true;
  if (ArrayBuffer.isView(value)) return value.buffer instanceof SharedArrayBuffer;
  return Object.values(value).some((part) => shares(part, seen));
};
globalThis.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => heard.push(["from", shares(data)]));
  }
  postMessage(data, ...rest) {
    heard.push(["to", shares(data)]);
    super.postMessage(data, ...rest);
  }
};
"""


@pytest.fixture(scope="module")
def parameters(tmp_path_factory) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
    found = tmp_path_factory.mktemp("threads") / "params"
    found.write_bytes(params.to_bytes())
    return found


def team(parameters: Path, threads: int, web: Path = WEB, module: str = "crenel-threads.wasm") -> dict:
    """What team.mjs answers."""
    call = [tool("node", "nodejs"), HERE / "team.mjs", web, page() / module, threads, parameters]
    done = subprocess.run([str(c) for c in call], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture
def copy(tmp_path) -> Path:
    """The scripts, to be changed."""
    page()
    for script in WEB.glob("*.mjs"):
        shutil.copy(script, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    return tmp_path


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_there_are_as_many_as_asked_for(parameters: Path, threads: int) -> None:
    found = team(parameters, threads)
    assert (found["threads"], found["after"]) == (threads, threads)
    assert found["right"] and found["gone"]


@pytest.mark.parametrize("threads", [0, 65, 1.5])
def test_other_numbers_are_refused(parameters: Path, threads: float) -> None:
    assert team(parameters, threads)["refused"] == "ParameterError"


def test_the_module_without_has_one(parameters: Path) -> None:
    found = team(parameters, 4, module="crenel.wasm")
    assert found["threads"] == 1 and found["right"] and found["gone"]


@pytest.mark.parametrize("script", [None, BROKEN, MUTE, LOST])
def test_helpers_that_cannot_be_had_are_done_without(
    parameters: Path, copy: Path, script: str | None
) -> None:
    if script is None:
        (copy / "helper.mjs").unlink()
    else:
        (copy / "helper.mjs").write_text(script)
    found = team(parameters, 3, web=copy)
    assert (found["threads"], found["after"]) == (1, 1)
    assert found["right"] and found["gone"]
    if script != MUTE:
        assert found["seconds"] < START_S


def test_one_helper_of_three_makes_two_threads(parameters: Path, copy: Path) -> None:
    (copy / "helper.mjs").rename(copy / "one.mjs")
    (copy / "helper.mjs").write_text(ONLY_ONE)
    found = team(parameters, 4, web=copy)
    assert (found["threads"], found["after"]) == (2, 2)
    assert found["right"] and found["gone"] and found["seconds"] < START_S


@pytest.fixture(scope="module")
def program(browser):
    return small_program()


def opened(browser, url: str, threads: int | None = None):
    """A tab that has the page, and hears what its worker is told and says."""
    tab = browser.new_page()
    tab.add_init_script(LISTEN)
    tab.goto(f"{url}/page/" + ("" if threads is None else f"?threads={threads}"))
    tab.wait_for_selector("#classify:not([disabled]), #state[data-error]", timeout=60_000)
    assert tab.get_attribute("#state", "data-error") is None, tab.inner_text("#state")
    return tab


def test_a_page_has_threads_and_none_of_their_memory(browser, program, tmp_path) -> None:
    with serving(program, tmp_path, guests=100) as service:
        tab = opened(browser, service.url, 3)
        assert tab.evaluate("crossOriginIsolated") is True
        assert tab.evaluate("crenelThreads") == 3 and "3 threads" in tab.inner_text("#about")
        draw(tab, 7)
        assert classify(tab) == expected(tab, program)
        heard = tab.evaluate("heard")
        assert {way for way, _ in heard} == {"to", "from"} and len(heard) > 10
        assert not any(shared for _, shared in heard)
        found = tab.evaluate(
            "[{ a: [new Uint8Array(new SharedArrayBuffer(8))] }, new ArrayBuffer(8)].map((v) => shares(v))"
        )
        assert found == [True, False]  # it would have been heard
        tab.close()
        tab = opened(browser, service.url)
        usual = tab.evaluate("Math.min(8, navigator.hardwareConcurrency)")
        assert tab.evaluate("crenelThreads") == usual
        tab.close()


@pytest.mark.parametrize("lacking", ["helper.mjs", "crenel-threads.wasm"])
def test_a_page_that_gets_no_helpers_has_one_thread(browser, program, tmp_path, lacking: str) -> None:
    folder = tmp_path / "page"
    shutil.copytree(page(), folder)
    (folder / lacking).unlink()
    with serving(program, tmp_path, guests=100, page=str(folder)) as service:
        tab = opened(browser, service.url, 3)
        assert tab.evaluate("crenelThreads") == 1
        draw(tab, 1)
        assert classify(tab) == expected(tab, program)
        tab.close()


def test_a_page_that_is_not_isolated_has_one_thread(browser, program, tmp_path) -> None:
    with serving(program, tmp_path, guests=100) as service:
        tab = browser.new_page()

        def plain(route) -> None:
            answer = route.fetch()
            dropped = ("cross-origin-opener-policy", "cross-origin-embedder-policy")
            route.fulfill(
                response=answer, headers={k: v for k, v in answer.headers.items() if k not in dropped}
            )

        tab.route("**/page/**", plain)
        tab.goto(f"{service.url}/page/?threads=3")
        tab.wait_for_selector("#classify:not([disabled])", timeout=60_000)
        assert tab.evaluate("[crossOriginIsolated, crenelThreads]") == [False, 1]
        assert "1 thread." in tab.inner_text("#about")
        tab.close()


def test_a_page_of_its_own_thread_has_one(browser, program, tmp_path) -> None:
    """Which may not wait for others."""
    with serving(program, tmp_path, guests=100) as service:
        tab = browser.new_page()
        tab.goto(f"{service.url}/page/")
        found = tab.evaluate(
            "import('./crenel.mjs').then(async (m) => {"
            " await m.initAsync(undefined, { threads: 3 }); return m.about().threads; })"
        )
        assert found == 1
        tab.close()
