"""Which engine runs the workers, and serving by it until somebody ends it."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from crenel.errors import UnsupportedError
from crenel.serve import hosting, stopping
from crenel.serve.servable import Servable
from crenel.serve.settings import Settings

Serving = Callable[..., "AbstractContextManager[Answering]"]


class Answering(Protocol):
    """A service that answers, of any engine."""

    @property
    def url(self) -> str:
        """Where."""
        ...

    @property
    def token(self) -> str | None:
        """Of the tenant ``local``, where it was new."""
        ...


class Engine(enum.Enum):
    """What runs the workers."""

    ray = "ray"
    """Ray Serve, on this machine or the cluster that it is started in."""
    local = "local"
    """Processes beside the server, of this machine alone."""


def run(
    programs: Sequence[str | os.PathLike[str] | Servable],
    settings: Settings | None = None,
    *,
    device: str = "auto",
    host: str = "127.0.0.1",
    port: int = 8400,
    workers: int = 1,
    engine: Engine = Engine.ray,
) -> None:
    """Serves until Ctrl-C or SIGTERM, and prints the address and a new tenant's token.

    Parameters
    ----------
    programs, settings, host : as of `running`
    device : as of `running`; of a cluster that is joined, "cuda" is its GPUs that nobody uses, and
        "cuda:0" is refused
    port : of HTTP
    workers : that compute; with "auto" and "cuda", on each GPU
    engine : what runs them

    Raises as `running`; UnsupportedError for Ray where it is missing.
    """
    if engine is Engine.ray:
        try:
            from crenel.serve import deployment
        except ImportError as error:
            raise UnsupportedError(
                f"the engine ray needs Ray ({error}): pip install 'crenel[serve]'"
            ) from None
        serving: Serving = deployment.running
    else:
        serving = hosting.running
    with serving(programs, settings, device=device, host=host, port=port, workers=workers) as made:
        print(f"crenel serve: {made.url}", flush=True)
        if made.token is not None:
            print(f"token of the tenant local, shown this once: {made.token}", flush=True)
        stopping.wait()
