"""What operators see: logs of named fields, and metrics. Nothing of keys, ciphertexts or tokens."""

from __future__ import annotations

import json
import logging
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

FIELDS = frozenset(
    [
        "event",
        "time",
        "worker",
        "job",
        "key",
        "upload",
        "tenant",
        "method",
        "route",
        "status",
        "seconds",
        "code",
        "state",
        "attempt",
        "device",
        "bytes",
        "id",
        "pid",
        "programs",
        "url",
        "signal",
    ]
)
"""All that a line of the log may have; a test reads that no call names another."""
LOGGER = logging.getLogger("crenel.serve")
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
STAGES = ("wait", "keys", "run")


def log(event: str, **found: str | int | float | None) -> None:
    """A line of JSON. Fields that are not allowed are a mistake of the program and are left out by name;
    hashes and ids are cut to 16 digits: enough to find, not to ask for."""
    shown: dict[str, str | int | float] = {"event": event, "time": round(time.time(), 3)}
    for name, value in found.items():
        if value is None:
            continue
        if name not in FIELDS:
            shown["code"] = "FieldNotAllowed"
            continue
        if isinstance(value, float):
            value = round(value, 4)
        shown[name] = (
            value[:16]
            if name in ("key", "job", "worker", "tenant", "upload") and isinstance(value, str)
            else value
        )
    LOGGER.info("%s", json.dumps(shown))


def to_stderr() -> None:
    """Lines of the log go to standard error; else they go where the program's own logging sends them."""
    if not LOGGER.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


@dataclass
class Counts:
    """What a worker did since it began."""

    done: int = 0
    failed: int = 0
    checked: int = 0
    busy: float = 0.0
    """Seconds in which jobs had the device, those that failed included."""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    buckets: dict[str, list[int]] = field(default_factory=lambda: {s: [0] * len(BUCKETS) for s in STAGES})

    def observe(self, stage: str, seconds: float) -> None:
        """Into the stage's sum and histogram."""
        self.seconds[stage] += seconds
        for k, bound in enumerate(BUCKETS):
            self.buckets[stage][k] += seconds <= bound


class Metrics:
    """Counters of one process of the HTTP side; what workers and the queue show is read when it is asked for.

    The process's own counters have the label ``replica``: behind one address every answer may be another's,
    and counters without it would jump.

    jobs : counts by state
    workers : what `crenel.serve.presence.alive` returns
    """

    def __init__(
        self, jobs: Callable[[], dict[str, int]], workers: Callable[[], Iterable[dict[str, object]]]
    ) -> None:
        self.registry, self._shown = CollectorRegistry(), CollectorRegistry()
        self.replica = uuid.uuid4().hex[:8]
        labels = ["method", "route", "status"]
        self.requests = Counter("crenel_requests", "Answers of HTTP.", labels, registry=self.registry)
        self.seconds = Histogram(
            "crenel_request_seconds",
            "Seconds to the end of an answer.",
            ["method", "route"],
            registry=self.registry,
        )
        self.problems = Counter(
            "crenel_problems", "Answers that are errors, by class.", ["code"], registry=self.registry
        )
        self.received = Counter(
            "crenel_received_bytes", "Bytes of bodies that were received.", ["route"], registry=self.registry
        )
        self._shown.register(_Replica(self.registry, self.replica))
        self._shown.register(_Queue(jobs, workers))

    def text(self) -> bytes:
        """In Prometheus' format."""
        return generate_latest(self._shown)


class _Replica:
    """What a registry has, with the label ``replica``."""

    def __init__(self, registry: CollectorRegistry, name: str) -> None:
        self._registry, self._name = registry, name

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [s._replace(labels={**s.labels, "replica": self._name}) for s in metric.samples]
            yield metric


class _Queue:
    def __init__(
        self, jobs: Callable[[], dict[str, int]], workers: Callable[[], Iterable[dict[str, object]]]
    ) -> None:
        self._jobs, self._workers = jobs, workers

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        states = GaugeMetricFamily("crenel_jobs", "Jobs by state.", labels=["state"])
        counts = self._jobs()
        for state in ("queued", "running", "done", "failed", "cancelled"):
            states.add_metric([state], counts.get(state, 0))
        yield states
        yield from _of_workers(list(self._workers()))


KEYS = (
    ("bytes", "Bytes of keys held: expanded on the device, files in host memory.", GaugeMetricFamily),
    ("entries", "Keys held.", GaugeMetricFamily),
    ("hits", "Keys found.", CounterMetricFamily), ("misses", "Keys prepared.", CounterMetricFamily),
    ("evictions", "Keys dropped for want of room.", CounterMetricFamily),
)  # fmt: skip


def _short(worker: dict[str, object]) -> str:
    return str(worker["id"])[:8]


def _of_workers(found: list[dict[str, object]]) -> Iterator[Metric]:
    live = GaugeMetricFamily("crenel_workers", "Workers that live, by device.", labels=["device"])
    devices = [str(w["device"]) for w in found]
    for device in sorted(set(devices)):
        live.add_metric([device], devices.count(device))
    yield live
    for name, text, kind in KEYS:
        family = kind(f"crenel_keys_{name}", text, labels=["worker", "tier"])
        for worker in found:
            for tier, use in worker["use"].items():  # type: ignore[attr-defined]
                family.add_metric([_short(worker), tier], use["nbytes" if name == "bytes" else name])
        yield family
    memory = GaugeMetricFamily(
        "crenel_device_memory_bytes",
        "Memory of a worker's device: used and total by its driver, held by the worker.",
        labels=["worker", "device", "kind"],
    )
    busy = CounterMetricFamily(
        "crenel_worker_busy_seconds", "Seconds in which jobs had the device.", labels=["worker", "device"]
    )
    jobs = CounterMetricFamily("crenel_worker_jobs", "Jobs that ended.", labels=["worker", "state"])
    for worker in found:  # one of an earlier version, which ends soon, says less
        counts: dict[str, float] = worker["counts"]  # type: ignore[assignment]
        # Workers of an older version, which share the database while versions change, do not say both.
        for of, nbytes in worker.get("memory", {}).items():  # type: ignore[attr-defined]
            memory.add_metric([_short(worker), str(worker["device"]), of], nbytes)
        if "busy" in counts:
            busy.add_metric([_short(worker), str(worker["device"])], counts["busy"])
        for state in ("done", "failed"):
            jobs.add_metric([_short(worker), state], counts[state])
    yield from (memory, busy, jobs)
    stages = HistogramMetricFamily(
        "crenel_stage_seconds",
        "Seconds of jobs that were done: in the queue, preparing keys, computing.",
        labels=["worker", "stage"],
    )
    for worker in found:
        counts = worker["counts"]  # type: ignore[assignment]
        for stage, sums in counts["buckets"].items():  # type: ignore[attr-defined]
            total = counts["done"]
            rows = [(str(b), n) for b, n in zip(BUCKETS, sums, strict=True)] + [("+Inf", total)]
            stages.add_metric([_short(worker), stage], rows, counts["seconds"][stage])  # type: ignore[index]
    yield stages
