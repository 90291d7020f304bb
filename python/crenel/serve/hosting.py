"""From programs and settings to a service that answers: one call."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

import crenel
from crenel.errors import ParameterError, UnsupportedError
from crenel.serve import app, local
from crenel.serve.observe import log
from crenel.serve.placing import expect_workers
from crenel.serve.programs import Programs, read
from crenel.serve.servable import Servable
from crenel.serve.service import Service
from crenel.serve.settings import Settings

CONNECTIONS = 4096


@dataclass(frozen=True)
class Running:
    """A service that answers."""

    url: str
    """Its address."""
    token: str | None
    """Of the tenant ``local``, where it was new; else None: it is stored only as a hash."""
    workers: local.Workers
    service: Service


def found(programs: Sequence[str | os.PathLike[str] | Servable], settings: Settings) -> list[Servable]:
    """Programs, read where they are files. Raises as `crenel.serve.programs.read`, and ParameterError for
    parameters of less than 128 bits without the setting allow_insecure."""
    made = [read(p, settings.allow_insecure) if isinstance(p, (str, os.PathLike)) else p for p in programs]
    for program in made:
        if program.insecure and not settings.allow_insecure:
            raise ParameterError(
                f"{program.name} has {program.params.security_bits:.0f} bits of security, expected at least "
                "128: only the setting allow_insecure serves it",
                {"name": program.name},
            )
    return made


def devices_of(device: str, workers: int) -> list[str]:
    """One name a worker: ``cuda`` is every GPU, ``auto`` the same, or else the CPU. Raises DeviceError,
    ParameterError."""
    expect_workers(workers)
    if device in ("auto", "cuda"):
        gpus = [d.name for d in crenel.devices() if d.kind == "cuda"]
        if gpus or device == "auto":
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

    Parameters
    ----------
    programs : files of `crenel.nn.Program.save`, ``module:attribute`` of a `Function`, or such objects
    settings : default `Settings()`
    device : of the workers: "cpu", "ref", "cuda:0", ...; "cuda": every GPU; "auto": the same, or else the CPU
    host, port : where it listens for HTTP; port 0 takes a free one
    workers : processes that compute, each with the device; with several GPUs, on each of them

    Raises ParameterError, DeviceError, SerializationError; UnsupportedError where the port is taken.
    """
    settings = settings or Settings()
    served = found(programs, settings)
    names = devices_of(device, workers)
    service = Service(settings, Programs(served))
    listening = _socket(host, port)
    try:
        crew = local.Workers(settings, served, names)
    except BaseException:
        listening.close()
        service.close()
        raise
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


def _config(service: Service) -> uvicorn.Config:
    """h11 bounds what it reads of a header; connections are bounded too."""
    return uvicorn.Config(
        app.create(service), http="h11", h11_max_incomplete_event_size=64 << 10,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=30, timeout_graceful_shutdown=5, log_config=None, access_log=False,
        server_header=False, lifespan="off",
    )  # fmt: skip


def expect_port(port: int) -> None:
    """Raises ParameterError for a number that is no port's."""
    if not 0 <= port < 1 << 16:
        raise ParameterError(f"port {port}, expected 0 to 65535", {"port": port})


def expect_free(host: str, port: int) -> None:
    """Raises UnsupportedError where nobody can listen there."""
    _socket(host, port).close()


def _socket(host: str, port: int) -> socket.socket:
    expect_port(port)
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET,
                                    backlog=CONNECTIONS)  # fmt: skip
    except OSError as error:
        raise UnsupportedError(f"cannot listen at {host}:{port}: {error.strerror}", {"port": port}) from None
