"""What a `serveConfigV2` imports (deploy/rayservice.yaml): the applications of `deployment`."""

from __future__ import annotations

from typing import Any

from crenel.serve import deployment, hosting
from crenel.serve.settings import Settings


def workers(args: dict[str, Any]) -> Any:
    """The application of workers. Arguments as `http`."""
    return _applications(args)[deployment.WORKERS]


def http(args: dict[str, Any]) -> Any:
    """The application that answers HTTP.

    args : ``programs`` (files, on every node), ``device``, ``workers``, ``servers``, ``gpus`` and
        ``settings``, a list of texts NAME=VALUE; all but the first may miss

    Raises ParameterError, SerializationError, FileError, and DeviceError for the device cuda without a GPU.
    """
    return _applications(args)[deployment.HTTP]


def _applications(args: dict[str, Any]) -> dict[str, Any]:
    settings = Settings.of(args.get("settings", []))
    programs = hosting.found(args["programs"], settings)
    return deployment.applications(
        settings, programs, device=str(args.get("device", "cpu")), workers=int(args.get("workers", 1)),
        servers=int(args.get("servers", 1)), gpus=int(args["gpus"]) if "gpus" in args else None,
    )  # fmt: skip
