"""A service that holds evaluation keys for many tenants and runs programs on what they encrypt.

Needs ``crenel[serve]``.

>>> from crenel import serve
>>> serve.run(["digits.crn"], device="cpu")                    # as `crenel serve digits.crn --device cpu`

What it speaks is in docs/reference/service.md; a client is `crenel.client`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crenel.serve.engines import Engine, run
    from crenel.serve.forms import Integers, Numbers, Vector
    from crenel.serve.functions import Function, refreshed
    from crenel.serve.hosting import Running, running
    from crenel.serve.integer_functions import IntegerFunction
    from crenel.serve.programs import NnProgram
    from crenel.serve.settings import Settings

_PLACES = {
    "Engine": "engines", "Function": "functions", "IntegerFunction": "integer_functions", "Integers": "forms",
    "NnProgram": "programs", "Numbers": "forms", "Running": "hosting", "Settings": "settings",
    "Vector": "forms", "refreshed": "functions", "run": "engines", "running": "hosting",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"crenel.serve.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Engine",
    "Function",
    "IntegerFunction",
    "Integers",
    "NnProgram",
    "Numbers",
    "Running",
    "Settings",
    "Vector",
    "refreshed",
    "run",
    "running",
]
