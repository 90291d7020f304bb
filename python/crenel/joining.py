"""The Ray cluster that RAY_ADDRESS names: joined, or said not to be there.

Ray itself asks an address that nobody answers at for minutes, and then ends with an error of its own.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from crenel.errors import ParameterError, UnavailableError

ADDRESS = "RAY_ADDRESS"
ANSWER_S = 10.0


def named() -> bool:
    """Does the environment name a cluster? An empty name is none."""
    return bool(os.environ.get(ADDRESS))


def join(ray: Any, **options: Any) -> None:
    """``ray.init(**options)`` on that cluster.

    Raises ParameterError for what is no address, UnavailableError where no cluster answers.
    """
    address = os.environ[ADDRESS]
    if address not in ("auto", "local"):
        _expect_answer(address)
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _unavailable(address, type(error).__name__) from None


def _expect_answer(address: str) -> None:
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not host or not colon or not (port.isdecimal() and len(port) < 6 and 0 < int(port) < 1 << 16):
        raise ParameterError(
            f"{ADDRESS} is {address!r}, expected HOST:PORT, ray://HOST:PORT, auto or local",
            {"name": ADDRESS, "value": address},
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S).close()
    except (OSError, UnicodeError) as error:
        raise _unavailable(address, getattr(error, "strerror", None) or type(error).__name__) from None


def _unavailable(address: str, why: str) -> UnavailableError:
    return UnavailableError(
        f"no Ray cluster answers at {ADDRESS} {address!r}: {why}", {"retry_after": ANSWER_S}
    )
