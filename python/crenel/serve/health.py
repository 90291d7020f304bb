"""Whether a worker's device still computes: what fails again and again ends the worker, which starts anew."""

from __future__ import annotations

import threading

import numpy as np

from crenel import ckks, tfhe
from crenel.errors import DeviceError, OutOfMemoryError


def _computes(context: ckks.Context | tfhe.Context) -> bool:
    """Does the device give back what it was given? A plaintext of CKKS, whatever it computes otherwise: of
    TFHE nothing is computed without a key, and a service has no secret one."""
    if isinstance(context, tfhe.Context):
        context = ckks.Context(ckks.Params(log_n=13, scale_bits=30, depth=1), device=context.device)
    values = np.array([0.5, -0.25])
    found = context.decode(context.encode(values, slots=2))
    return bool(np.max(np.abs(found - values)) < 0.01)


class Health:
    """Of one device. Threads may share it.

    most : DeviceErrors in a row, of jobs, checks of keys and probes, after which the device is given up.
        OutOfMemoryError is none of them: a device without memory computes what is smaller.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._failures, self._well = 0, True

    def worked(self) -> None:
        """A job or a check of keys was done."""
        with self._lock:
            self._failures, self._well = 0, True

    def failed(self) -> None:
        """A DeviceError."""
        with self._lock:
            self._failures, self._well = self._failures + 1, False

    def doubt(self) -> None:
        """Something else of the device failed: the next probe says whether that counts."""
        with self._lock:
            self._well = False

    def probe(self, context: ckks.Context | tfhe.Context) -> None:
        """Asks the device to compute something small, where the last that it was asked for failed.

        That it can says that the worker is well, but the errors of jobs still count: a device may fail at
        what is large alone.
        """
        if self.well:
            return
        try:
            right = _computes(context)
        except OutOfMemoryError:
            return
        except DeviceError:
            right = False
        if not right:
            self.failed()
            return
        with self._lock:
            self._well = True

    @property
    def failures(self) -> int:
        """DeviceErrors since something was done."""
        with self._lock:
            return self._failures

    @property
    def well(self) -> bool:
        """Did the device do the last that it was asked for?"""
        with self._lock:
            return self._well

    @property
    def broken(self) -> bool:
        """Is it given up?"""
        with self._lock:
            return self._failures >= self.most
