"""What arrays and evaluators know of their context: parameters on a device, and its memory."""

from __future__ import annotations

from crenel import _crenel


class Place:
    """Parameters on a device: the part of Context that everything made from one refers to."""

    __slots__ = ("_context",)

    def __init__(self, context: _crenel.TfheContext) -> None:
        self._context = context

    @property
    def params(self) -> _crenel.TfheParams:
        """The parameters, with packing and arithmetic as chosen."""
        return self._context.params

    @property
    def device(self) -> _crenel.Device:
        """The device that computes."""
        return self._context.device

    def synchronize(self) -> None:
        """Wait until all queued work is done; raises DeviceError when some of it failed."""
        self._context.synchronize()

    @property
    def bytes_in_use(self) -> int:
        """Bytes of device memory held by the objects of all contexts that share the Device."""
        return self._context.bytes_in_use

    @property
    def peak_bytes(self) -> int:
        """Highest bytes_in_use since the Device was first used, or since reset_peak."""
        return self._context.peak_bytes

    def reset_peak(self) -> None:
        """Let peak_bytes start anew from bytes_in_use."""
        self._context.reset_peak()
