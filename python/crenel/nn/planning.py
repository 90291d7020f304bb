"""A device for what bootstraps are planned to be: their numbers are the same on every one."""

from __future__ import annotations

from crenel import ckks
from crenel.errors import DeviceError


def planning_context(params: ckks.Params) -> ckks.Context:
    """A context whose bootstrappers are asked for their reports alone: on "cuda:dry", which makes no
    plaintexts; of a build without CUDA on the CPU, which does, in seconds for large sets."""
    try:
        return ckks.Context(params, "cuda:dry")
    except DeviceError:
        return ckks.Context(params, "cpu")
