"""The engine Ray Serve: deployments of the HTTP side and of workers.

Ray places processes, gives each worker its GPU, restarts what dies, scales, and takes HTTP in on every node.
The queue is the database's: a worker takes jobs whose keys it holds first (`Jobs.claim`). So a tenant's jobs
go to the replica that has its keys by bytes that are really there, not by a header that a client writes.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no network at run time; read when Ray is imported

import ray
from ray import serve
from ray.serve.schema import LoggingConfig

from crenel import joining
from crenel.errors import ParameterError, UnavailableError
from crenel.serve import app, hosting
from crenel.serve.auth import Auth
from crenel.serve.database import Database
from crenel.serve.observe import log, to_stderr
from crenel.serve.placing import expect_workers, placed
from crenel.serve.presence import alive
from crenel.serve.programs import Programs
from crenel.serve.servable import Servable
from crenel.serve.service import Service
from crenel.serve.settings import Settings
from crenel.serve.worker import Worker

HTTP, WORKERS = "crenel", "crenel-workers"
START_S = 180.0
RAY_S = 30.0  # that Ray waits for its processes; nothing sets it
VISIBLE, ONE_GPU = "CUDA_VISIBLE_DEVICES", re.compile(r"cuda:(\d+)")
OBJECTS = 128 << 20  # Ray's object store: nothing of ours goes through it


class Computing:
    """A worker's replica: the loop over the queue in a thread, on the device that Ray gave it."""

    def __init__(self, settings: str, programs: list[Servable], device: str, sharing: int) -> None:
        to_stderr()
        self.worker = Worker(Settings.from_json(settings), Programs(programs), device, sharing)
        self._thread = threading.Thread(target=self.worker.run, daemon=True, name="worker")
        self._thread.start()

    def check_health(self) -> None:
        """Asked by Ray: raises where the loop ended, and the replica starts anew."""
        if not self._thread.is_alive():
            raise RuntimeError("the worker's loop ended")

    def __call__(self) -> int:
        """Its process: workers take their work from the queue, not from calls."""
        return os.getpid()

    def __del__(self) -> None:
        """Called by Ray before the replica ends: what runs waits for others."""
        worker = getattr(self, "worker", None)
        if worker is not None:
            worker.stop()
            self._thread.join(30)


def answering(settings: str, programs: list[Servable]) -> Callable[[], Any]:
    """What a replica of the HTTP side calls once, where it runs, to make the application."""

    def build() -> Any:
        to_stderr()
        service = Service(Settings.from_json(settings), Programs(programs))
        service.start()
        return app.create(service)

    return build


def applications(
    settings: Settings,
    programs: Sequence[Servable],
    *,
    device: str,
    workers: int = 1,
    servers: int = 1,
    gpus: int | None = None,
) -> dict[str, Any]:
    """Applications of Ray Serve by name, for `ray.serve.run` on a cluster of one's own.

    settings : on several machines with database and storage that all of them reach
    device : "cpu" or "ref"; "cuda": every GPU; "auto": the same, or the CPU where the cluster has none
    workers : that compute; with GPUs so many of each, which share it
    servers : replicas that answer HTTP
    gpus : that workers are placed on, None: all that the cluster has now. One that grows as it is asked to
        has to be told: it may have none yet

    Raises ParameterError for another device, DeviceError for "cuda" without a GPU.
    """
    if gpus is None and device in ("auto", "cuda"):
        if not ray.is_initialized():
            ray.init()
        gpus = int(ray.cluster_resources().get("GPU", 0))
    place = placed(device, workers, gpus or 0)
    text, sent = settings.to_json(), list(programs)
    resources = {"num_cpus": 1.0} | ({"num_gpus": place.gpu} if place.gpu else {})
    quiet_http = LoggingConfig(enable_access_log=False)  # Edge logs requests, without names
    # Threads that wait give their core away: the servers need it.
    quiet = {"env_vars": {"OMP_WAIT_POLICY": "passive"}}
    computing: Any = serve.deployment(
        Computing, name="workers", num_replicas=place.replicas, health_check_period_s=2,
        health_check_timeout_s=30, graceful_shutdown_timeout_s=30,
        ray_actor_options={**resources, "runtime_env": quiet},
    )  # fmt: skip
    http: Any = serve.deployment(
        serve.ingress(answering(text, sent))(), name="http", num_replicas=servers,
        max_ongoing_requests=hosting.CONNECTIONS, logging_config=quiet_http,
        ray_actor_options={"num_cpus": 0.1},
    )  # fmt: skip
    return {WORKERS: computing.bind(text, sent, place.device, workers if place.gpu else 1), HTTP: http.bind()}


@dataclass(frozen=True)
class RayRunning:
    """A service on Ray that answers."""

    url: str
    token: str | None
    """Of the tenant ``local``, where it was new."""
    database: Database
    settings: Settings

    def worker_pids(self) -> list[int]:
        """Of workers that live."""
        return [int(str(w["pid"])) for w in alive(self.database, self.settings)]


@contextmanager
def running(
    programs: Sequence[str | os.PathLike[str] | Servable],
    settings: Settings | None = None,
    *,
    device: str = "cpu",
    host: str = "127.0.0.1",
    port: int = 8400,
    workers: int = 1,
) -> Iterator[RayRunning]:
    """A service on Ray until the block ends: on the cluster that RAY_ADDRESS names, else on this machine.

    device : as `applications`; on this machine "cuda:1" as well, of which alone workers have use

    Raises as `crenel.serve.running`; UnavailableError where Ray does not start within the 30 seconds that it
    gives itself, or no worker lives after three minutes.
    """
    expect_workers(workers)  # before anything begins
    hosting.expect_port(port)
    chosen = settings or Settings()
    if "://" not in chosen.data:
        chosen = replace(chosen, data=str(Path(chosen.data).absolute()))
    served = hosting.found(programs, chosen)
    database = Database(chosen.database_url)
    auth = Auth(database, chosen)
    try:
        gpus = _start(device, workers, host, port)
        try:
            serve.start(http_options={"host": host, "port": port, "request_timeout_s": None})
            general = "cuda" if ONE_GPU.fullmatch(device) else device
            made = applications(chosen, served, device=general, workers=workers, gpus=gpus)
            for name, application in made.items():
                serve.run(application, name=name, route_prefix="/" if name == HTTP else None)
            _await(database, chosen)
            log("serving", url=f"http://{host}:{port}", programs=len(served), device=device)
            token = None if auth.names() else auth.add("local")
            yield RayRunning(f"http://{host}:{port}", token, database, chosen)
        finally:
            serve.shutdown()
            ray.shutdown()
    finally:
        database.close()


def _start(device: str, workers: int, host: str, port: int) -> int:
    """Ray: joined, or begun on this machine. How many GPUs it has for workers that nobody else uses."""
    if joining.named():
        if ONE_GPU.fullmatch(device):
            raise ParameterError(
                f"the cluster at RAY_ADDRESS chooses GPUs itself: auto, cpu, ref or cuda, not {device}",
                {"name": "device", "value": device},
            )
        joining.join(ray, log_to_driver=True)
        return int(ray.available_resources().get("GPU", 0))
    hosting.expect_free(host, port)  # Ray would say it late, and in its own words
    names = hosting.devices_of(device, 1)
    gpus = [int(found[1]) for name in names if (found := ONE_GPU.fullmatch(name))]
    with _visible(gpus), _in_time():
        # A laptop's cores are shared by workers that each use all of them: Ray only counts.
        ray.init(
            num_cpus=workers * len(names) + 2, num_gpus=len(gpus), include_dashboard=False,
            object_store_memory=OBJECTS, log_to_driver=True, configure_logging=False,
        )  # fmt: skip
    return len(gpus)


@contextmanager
def _in_time() -> Iterator[None]:
    """Raises UnavailableError where Ray waited in vain for its own processes, of which it says so in errors
    without a class of their own."""
    try:
        yield
    except Exception as error:
        if "timed out" not in str(error).lower():
            raise
        raise UnavailableError(
            f"Ray waited {RAY_S:.0f} s for its own processes and gave up: the machine is too busy for it, or "
            "too slow. Try again, or serve with --engine local",
            {"retry_after": RAY_S},
        ) from error


@contextmanager
def _visible(gpus: Sequence[int]) -> Iterator[None]:
    """What is started within the block sees these of the GPUs that this process sees, and no others."""
    before = os.environ.get(VISIBLE)
    names = before.split(",") if before else []
    os.environ[VISIBLE] = ",".join(names[k] if names else str(k) for k in gpus)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VISIBLE]
        else:
            os.environ[VISIBLE] = before


def _await(database: Database, settings: Settings) -> None:
    end = time.monotonic() + START_S
    while not alive(database, settings):
        if time.monotonic() > end:
            raise UnavailableError("no worker began to live; the log of Ray says why")
        time.sleep(0.1)
