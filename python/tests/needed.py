"""What some tests need and the library does not: packages of requirements/, programs of the system.

Where it is missing, the test is skipped with what to install. CRENEL_REQUIRE makes that a failure: by the
name of the group of packages, or by `packages` for all groups that ./run test installs
(tools/runner/extras.py).
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

INSTALLED = ("build", "demo", "docs", "notebook", "release", "service", "test")  # by ./run test


def lacking(group: str, reason: str) -> None:
    """A skip for this reason, or the failure that CRENEL_REQUIRE asks for."""
    required = os.environ.get("CRENEL_REQUIRE", "").split(",")
    if group in required or ("packages" in required and group in INSTALLED):
        pytest.fail(f"CRENEL_REQUIRE asks for {group}, and {reason}")
    pytest.skip(reason, allow_module_level=True)


def needs(group: str, *modules: str) -> Any:
    """The first of these modules, of packages of requirements/<group>.txt; all of them can be imported."""
    found = []
    for name in modules:
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            lacking(group, f"no {error.name}: pip install -r requirements/{group}.txt")
    return found[0]
