"""Tests of the hardware unit: `python -m pytest fhecore` (quick), `--long` for all (./run fhecore-full)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked long too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: minutes; run by ./run fhecore-full")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """CRENEL_REQUIRE=fhecore: a test that is skipped fails, as where its tool was expected."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and "fhecore" in os.environ.get("CRENEL_REQUIRE", "").split(","):
        report.outcome = "failed"
        report.longrepr = f"CRENEL_REQUIRE=fhecore, and {item.nodeid} was skipped: {report.longrepr}"


@pytest.fixture(scope="session")
def work() -> Path:
    """Where builds of simulators, netlists and reports go."""
    path = Path(os.environ.get("CRENEL_FHECORE_WORK", ROOT / "build" / "fhecore"))
    path.mkdir(parents=True, exist_ok=True)
    return path
