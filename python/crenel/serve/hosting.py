"""From programs and settings to a service that answers: one call."""

from __future__ import annotations

import enum
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

import uvicorn

import crenel
from crenel.errors import ParameterError, UnsupportedError
from crenel.serve import app, local
from crenel.serve.observe import log
from crenel.serve.programs import Programs, Servable, read
from crenel.serve.service import Service
from crenel.serve.settings import Settings

CONNECTIONS = 4096
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


@dataclass(frozen=True)
class Running:
    """A service that answers."""

    url: str
    token: str | None
    """Of the tenant ``local``, where it was new; else None: it is stored only as a hash."""
    workers: local.Workers
    service: Service


def found(programs: Sequence[str | os.PathLike[str] | Servable], settings: Settings) -> list[Servable]:
    """Programs, read where they are files. Raises as `crenel.serve.programs.read`."""
    return [read(p, settings.allow_insecure) if isinstance(p, (str, os.PathLike)) else p for p in programs]


def devices_of(device: str, workers: int) -> list[str]:
    """One name a worker: ``auto`` is every GPU, or else the CPU. Raises DeviceError, ParameterError."""
    if workers < 1:
        raise ParameterError(f"{workers} workers, expected at least 1", {"value": workers})
    if device == "auto":
        gpus = [d.name for d in crenel.devices() if d.kind == "cuda"]
        return (gpus or ["cpu"]) * workers
    crenel.device_info(device)
    return [device] * workers


def first_token(service: Service) -> str | None:
    """A token of a new tenant ``local``, where there is no tenant yet."""
    return None if service.auth.names() else service.auth.add("local")


@contextmanager
def running(
    programs: Sequence[str | os.PathLike[str] | Servable],
    settings: Settings | None = None,
    *,
    device: str = "cpu",
    host: str = "127.0.0.1",
    port: int = 0,
    workers: int = 1,
) -> Iterator[Running]:
    """A service of this process and worker processes (`Engine.local`), until the block ends.

    programs : files of `Program.save`, ``module:attribute`` of a `Function`, or such objects
    port : 0 takes a free one

    Raises ParameterError, DeviceError, SerializationError; UnsupportedError where the port is taken.
    """
    settings = settings or Settings()
    served = found(programs, settings)
    names = devices_of(device, workers)
    service = Service(settings, Programs(served))
    listening = _socket(host, port)
    crew = local.Workers(settings, served, names)
    server = uvicorn.Server(_config(service))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True, name="http")
    service.start()
    thread.start()
    try:
        address, number = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        log("serving", url=f"http://{shown}:{number}", programs=len(served), device=",".join(names))
        yield Running(f"http://{shown}:{number}", first_token(service), crew, service)
    finally:
        server.should_exit = True
        thread.join(15)
        crew.close()
        service.close()
        listening.close()


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
    """Serves until Ctrl-C or SIGTERM. Raises as `running`; UnsupportedError for Ray where it is missing."""
    from crenel.serve import stopping

    if engine is Engine.ray:
        try:
            from crenel.serve import deployment
        except ImportError as error:
            raise UnsupportedError(f"the engine ray needs Ray ({error}): pip install 'crenel[ray]'") from None
        serving: Serving = deployment.running
    else:
        serving = running
    with serving(programs, settings, device=device, host=host, port=port, workers=workers) as made:
        print(f"crenel serve: {made.url}", flush=True)
        if made.token is not None:
            print(f"token of the tenant local, shown this once: {made.token}", flush=True)
        stopping.wait()


def _config(service: Service) -> uvicorn.Config:
    """h11 bounds what it reads of a header; connections are bounded too."""
    return uvicorn.Config(
        app.create(service), http="h11", h11_max_incomplete_event_size=64 << 10,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=30, timeout_graceful_shutdown=5, log_config=None, access_log=False,
        server_header=False, lifespan="off",
    )  # fmt: skip


def _socket(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET,
                                    backlog=CONNECTIONS)  # fmt: skip
    except OSError as error:
        raise UnsupportedError(f"cannot listen at {host}:{port}: {error.strerror}", {"port": port}) from None
