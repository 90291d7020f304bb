"""What the service cannot do now through no fault of what it is to do waits, longer every time."""

from __future__ import annotations

import os

from crenel.errors import CrenelError, DeviceError, OutOfMemoryError, ServiceError, StorageError

FIRST_S, LONGEST_S = 1.0, 60.0
"""The pause after the first time, doubled every time, and what it grows to."""


def pause(times: int) -> float:
    """Seconds until it is tried again what was begun so often."""
    return min(LONGEST_S, FIRST_S * 2.0 ** min(max(times - 1, 0), 30))


def servers_own(error: BaseException) -> CrenelError | None:
    """The typed error where the device, memory, storage or database failed, and not what was worked on; else
    None. A file of the service that the system refuses is storage, whatever its class says of files."""
    if isinstance(error, (DeviceError, ServiceError)):
        return error
    if isinstance(error, MemoryError):
        return OutOfMemoryError("the host is out of memory", {"device": "host"})
    if isinstance(error, OSError):
        text = os.strerror(error.errno) if error.errno else type(error).__name__
        return StorageError(f"a file of the service failed: {text}", {"retry_after": 30})
    return None
