"""What computes: a plain object that takes jobs from the queue and runs them on one device."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import sqlalchemy as sql

import crenel
from crenel.errors import (
    Cancelled,
    CrenelError,
    DeviceError,
    KeysNeededError,
    NotFoundError,
    OutOfMemoryError,
    ParameterError,
    ServiceError,
)  # fmt: skip
from crenel.serve import keys as keysets
from crenel.serve.blobs import Blobs
from crenel.serve.database import JOBS_WAIT, KEYS_WAIT, Database, workers
from crenel.serve.jobs import GROUP_S, Answered, Claimed, Jobs
from crenel.serve.keys import Keys, ToCheck
from crenel.serve.observe import BUCKETS, STAGES, log
from crenel.serve.programs import (
    HEADER,
    Loaded,
    Prepared,
    Programs,
    Reading,
    Servable,
    key_reading_bytes,
)  # fmt: skip
from crenel.serve.residency import MemoryFile, Residency
from crenel.serve.settings import Settings

LANES = 2
"""Threads of a worker: while one computes, the other fetches an input, prepares keys or writes a result."""


PATIENCE_S = 5 * GROUP_S  # on a machine that is busy with other things, a group takes longer than it should
LOOK_S = 0.25
"""Between two looks of an idle lane where nobody wrote to the database."""


class Stopping(Exception):
    """The worker is asked to stop: what it runs waits again."""


@dataclass(frozen=True)
class _Held:
    """What a lane has under a lease, and whether that was lost."""

    found: Claimed | ToCheck
    lost: threading.Event


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


class Worker:
    """One device, its resident keys, and a loop over the queue.

    device : "cpu", "cuda:0", ...; programs are loaded when it is made. Raises DeviceError, OutOfMemoryError.
    """

    def __init__(self, settings: Settings, programs: Programs, device: str) -> None:
        self.id = uuid.uuid4().hex
        self.settings, self.device, self._programs = settings, device, programs
        self._database = Database(settings.database_url)
        self._blobs = Blobs(settings.data, settings.min_free_bytes)
        self._keys = Keys(self._database, self._blobs, settings)
        self._jobs = Jobs(self._database, self._blobs, settings, programs, self._keys)
        for p in programs:
            _fits(p, settings.device_bytes)
        self._loaded: dict[str, Loaded] = {p.program: p.load(device) for p in programs}
        self.resident: Residency[Prepared] = Residency(settings.device_bytes)
        self.files: Residency[MemoryFile] = Residency(settings.host_bytes)
        self.counts = Counts()
        self._held: dict[str, _Held] = {}
        self._now = threading.local()
        self._typical: dict[str, float] = {}
        self._unstarted: set[str] = set()
        self._taken = 0
        """Jobs that were claimed at once, by the lane that did so last."""
        self._turn = threading.Condition()
        self._others = 0
        self._device, self._counting = threading.Lock(), threading.Lock()
        self._stop = threading.Event()
        self._elsewhere: set[str] = set()
        self._checked_last = False
        self._beat()

    def run(self) -> None:
        """Until `stop`; a failure of database or storage is logged, and tried again."""
        threads = [threading.Thread(target=self._beats, daemon=True, name="heartbeat")]
        threads += [threading.Thread(target=self._lane, daemon=True, name=f"lane-{k}") for k in range(LANES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.close()

    def _lane(self) -> None:
        idle = self.settings.poll_seconds
        while not self._stop.is_set():
            # While the other lane has work, what comes gathers, and is taken together; but not until it has
            # none: each reads its next input while the other one computes.
            with self._turn:
                if not self._turn.wait_for(self._few_left, LOOK_S):
                    continue
            version = self._database.version()
            try:
                busy = self.step()
            except ServiceError as error:
                log("worker_waits", worker=self.id, code=error.code)
                busy, idle = False, max(1.0, idle)
            except Exception as mistake:  # of ours: without lanes a worker would only look alive
                log("mistake", worker=self.id, code=type(mistake).__name__)
                busy, idle = False, max(1.0, idle)
            if busy:
                idle = self.settings.poll_seconds
            elif version is None:
                self._stop.wait(idle)
                idle = min(1.5 * idle, 3 * self.settings.poll_seconds)
            else:
                self._await_change(version, max(LOOK_S, idle))

    def _await_change(self, version: int, seconds: float) -> None:
        """Until somebody wrote to the database, or so long: leases and patience end without a word."""
        end, most = time.monotonic() + seconds, self.settings.poll_seconds / 4
        pause = most / 8  # who asks one thing after the other asks again at once
        while time.monotonic() < end:
            if self._stop.wait(pause):
                return
            pause = min(1.25 * pause, most)
            now = self._database.version()
            if now != version and self._database.anything():
                return
            version = now if now is not None else version

    def close(self) -> None:
        """Others need not wait for it any more."""
        with self._database.writing() as connection:
            connection.execute(sql.delete(workers).where(workers.c.id == self.id))
        self._database.close()

    def stop(self) -> None:
        """Ends `run` at the next step of what it runs."""
        self._stop.set()

    def step(self) -> bool:
        """Checks one key file or runs one job, or some that are short; False: there was nothing to do.

        In turn where there are both: whoever sends files without end keeps nobody's jobs from running.
        """
        kinds = (self._run_some, self._check_one) if self._checked_last else (self._check_one, self._run_some)
        return kinds[0]() or kinds[1]()

    def _check_one(self) -> bool:
        found = None
        if self._database.anything(KEYS_WAIT):  # mostly there is nothing, and jobs are short
            found = self._keys.to_check(self.id, self.settings.lease_seconds)
        self._checked_last = found is not None
        if found is None:
            return False
        with self._holding([found]):
            self._check(found)
        return True

    def _run_some(self) -> bool:
        self._checked_last = False
        # Whoever finds nothing never had the lock: a process that is stopped with it stops all who write.
        if not self._database.anything(JOBS_WAIT, time.time()):
            return False
        cost = self._typical.get
        claimed = self._jobs.claim(
            self.id, self._keys_here(), self._elsewhere, lambda p: cost(p, GROUP_S), self._others
        )
        if not claimed:
            return False
        with self._turn:
            self._unstarted |= {job.id for job in claimed}
            self._taken = len(claimed)
        try:
            with self._holding(claimed):
                self._answer(claimed)
        finally:
            self._started(*claimed)
        return True

    def _started(self, *found: Claimed) -> None:
        """The device has them, or they ended: the other lane looks for more once few are left."""
        with self._turn:
            self._unstarted -= {job.id for job in found}
            if self._few_left():  # not for every job: whoever wakes takes the core from what computes
                self._turn.notify_all()

    def _few_left(self) -> bool:
        return 2 * len(self._unstarted) <= self._taken

    # ---- one thing after the other ---------------------------------------------------------------------

    def _check(self, found: ToCheck) -> None:
        """By the library's loader, which reads every key; what is the worker's own trouble is no refusal."""
        error: CrenelError | None = None
        try:
            with self._prepared(found.program, found.key):
                pass
        except (DeviceError, Stopping) as trouble:
            log("check_waits", worker=self.id, key=found.key, code=type(trouble).__name__)
            return
        except KeysNeededError:
            self._keys.lost(found.tenant, found.key)
            return
        except CrenelError as refusal:
            error = refusal
        except Exception as mistake:  # ours: nothing is said of the keys
            log("mistake", worker=self.id, key=found.key, code=type(mistake).__name__)
            return
        self._keys.checked(found, error)
        with self._counting:
            self.counts.checked += 1
        log("keys", worker=self.id, key=found.key, state="ready" if error is None else "refused",
            code=error.code if error else None)  # fmt: skip
        self._beat()

    def _answer(self, claimed: list[Claimed]) -> None:
        """One after the other; results are committed together, but none waits long, `PATIENCE_S`."""
        answered: list[Answered] = []
        waiting, since = list(claimed), time.monotonic()
        try:
            while waiting:
                made = self._computed(waiting[0])
                del waiting[0]
                if made is not None:
                    answered.append(made)
                if time.monotonic() - since > PATIENCE_S:
                    self._commit(answered)
                    answered, since = [], time.monotonic()
            self._commit(answered)
        except (Stopping, ServiceError) as trouble:  # what was not committed waits again
            log("job_waits", worker=self.id, job=claimed[0].id, code=type(trouble).__name__)
            if isinstance(trouble, Stopping):
                with suppress(ServiceError):  # what is ready need not be computed again
                    self._commit(answered)
                    answered = []
            for left in [*(a.job for a in answered), *waiting]:
                self._jobs.release(left, self.id)
            if isinstance(trouble, ServiceError):
                raise

    def _computed(self, claimed: Claimed) -> Answered | None:
        """The result; None where the job ended otherwise. Raises Stopping, ServiceError."""
        self._now.job = claimed.id
        try:
            if not claimed.keys:
                self._jobs.without_keys(claimed, self.id)
                return None
            data = self._jobs.input(claimed)
            start = time.time()
            warm = bound(claimed.program, claimed.key) in self.resident
            with self._prepared(claimed.program, claimed.key) as prepared:
                ready = time.time()
                if not warm:
                    self._beat()  # others learn where these keys are
                result = prepared.run(data, self._checkpoint, lambda: self._turn_of(claimed))
                run: float = self._now.run
        except (Cancelled, NotFoundError) as ended:
            self._jobs.failed(claimed, self.id, ended)  # nothing where it was cancelled or deleted
        except KeysNeededError:
            self._keys.lost(claimed.tenant, claimed.key)
            self._jobs.without_keys(claimed, self.id)
        except (Stopping, ServiceError):  # storage or database: not the job's fault
            raise
        except CrenelError as error:
            self._failed(claimed, error)
        except Exception as error:  # a mistake of ours must not end the worker, nor be shown
            log("mistake", worker=self.id, job=claimed.id, code=type(error).__name__)
            self._failed(claimed, CrenelError("the service failed while it computed"))
        else:
            # What it takes where nothing disturbs it; a program that became slower is believed in time.
            self._typical[claimed.program] = min(run, 1.02 * self._typical.get(claimed.program, run))
            return Answered(claimed, result, 0.0 if warm else ready - start, run)
        return None

    @contextmanager
    def _turn_of(self, claimed: Claimed) -> Iterator[None]:
        """The device is this job's until the block ends."""
        with self._device, crenel.progress(lambda *_: self._checkpoint()):
            self._started(claimed)
            begun = time.time()
            try:
                self._checkpoint()
                yield
            finally:
                self._now.run = time.time() - begun
                with self._counting:
                    self.counts.busy += self._now.run

    def _commit(self, answered: list[Answered]) -> None:
        """Writes results. Raises ServiceError, and none is written."""
        if not answered:
            return
        for a, ours in zip(answered, self._jobs.done(self.id, answered), strict=True):
            with self._counting:
                self.counts.done += ours
                self.counts.observe("wait", a.job.waited)
                self.counts.observe("keys", a.keys)
                self.counts.observe("run", a.run)
            log("job", worker=self.id, job=a.job.id, state="done" if ours else "lost",
                seconds=a.keys + a.run, attempt=a.job.attempt)  # fmt: skip

    def _failed(self, claimed: Claimed, error: CrenelError) -> None:
        with self._counting:
            self.counts.failed += 1
        log("job", worker=self.id, job=claimed.id, state="failed", code=error.code, attempt=claimed.attempt)
        self._jobs.failed(claimed, self.id, error)

    @contextmanager
    def _prepared(self, program: str, key: str) -> Iterator[Prepared]:
        """The program with these keys, resident until the block ends. Out of memory: once more, alone."""
        servable = self._programs.get(program)
        needed, budget = servable.key_memory, self.settings.device_bytes
        if bound(program, key) not in self.resident:
            with self._needed(key):
                halves = self._blobs.size(keysets.blob_of(key))
            # Keys may serve higher levels than the program needs; a header is no key.
            if halves > needed // 2 + HEADER:
                needed = max(needed, min(2 * halves, servable.most_key_memory))

        def make() -> tuple[Prepared, int]:
            most = min(self.settings.key_memory, key_reading_bytes(servable))
            reading = Reading(most, self.settings.input_memory, budget if needed > budget else None)
            with self._file(key) as file:
                prepared = self._loaded[program].prepare(file, reading)
            return prepared, prepared.nbytes

        def patient() -> tuple[Prepared, int]:
            try:
                return make()
            except OutOfMemoryError as error:
                log("out_of_memory", worker=self.id, key=key, code=error.code)
                if self.resident.shrink() == 0:
                    raise
            return make()

        with self.resident.lease(bound(program, key), min(needed, budget), patient) as found:
            yield found

    @contextmanager
    def _file(self, key: str) -> Iterator[Path]:
        """The key file: in host memory where it has room, else on the disk. Raises KeysNeededError."""
        name = keysets.blob_of(key)
        with self._needed(key):
            path = self._blobs.path(name) or self._copied(key, name)
            size = path.stat().st_size
            if size > self.settings.host_bytes:
                yield path
                return
            with self.files.lease(key, size, lambda: (MemoryFile(path), size)) as held:
                yield held.path

    @contextmanager
    def _needed(self, key: str) -> Iterator[None]:
        """What is not in the storage must be sent again."""
        try:
            yield
        except (NotFoundError, FileNotFoundError):
            raise keysets.needed(key) from None

    def _copied(self, key: str, name: str) -> Path:
        """A copy on this machine's disk of a file that is elsewhere; the least recently used go first."""
        folder = Path(self.settings.cache)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / key
        if path.exists():
            path.touch()
            return path
        beside = folder / f"{key}.{self.id}.part"
        try:
            with beside.open("wb") as file:
                for piece in self._blobs.pieces(name):
                    file.write(piece)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        held = sorted((p for p in folder.iterdir() if p != path), key=lambda p: p.stat().st_mtime)
        total = path.stat().st_size + sum(p.stat().st_size for p in held)
        for old in held:
            if total <= self.settings.cache_bytes:
                break
            total -= old.stat().st_size
            old.unlink(missing_ok=True)
        return path

    def _keys_here(self) -> set[str]:
        """Hashes of the key files that are resident, for any program."""
        return {name.partition("/")[2] for name in self.resident.names}

    # ---- signs of life ---------------------------------------------------------------------------------

    def _checkpoint(self) -> None:
        held = self._held.get(getattr(self._now, "job", ""))
        if held is not None and held.lost.is_set():
            raise Cancelled("the job is not this worker's any more")
        if self._stop.is_set():
            raise Stopping

    @contextmanager
    def _holding(self, found: Sequence[Claimed | ToCheck]) -> Iterator[None]:
        names = [each.id if isinstance(each, Claimed) else f"{each.tenant}/{each.key}" for each in found]
        self._held |= {name: _Held(each, threading.Event()) for name, each in zip(names, found, strict=True)}
        self._now.job = names[0]
        try:
            yield
        finally:
            for name in names:
                self._held.pop(name, None)

    def _beats(self) -> None:
        while not self._stop.wait(self.settings.lease_seconds / 4):
            try:
                self._beat()
                for held in list(self._held.values()):
                    if isinstance(held.found, ToCheck):
                        self._keys.extend(held.found, self.id, self.settings.lease_seconds)
                    elif not self._jobs.extend(held.found, self.id):
                        held.lost.set()  # or it has just ended, and nobody asks any more
            except ServiceError as error:
                log("heartbeat_waits", worker=self.id, code=error.code)
            except Exception as mistake:  # of ours: without signs of life every job would begin again
                log("mistake", worker=self.id, code=type(mistake).__name__)

    def _beat(self) -> None:
        """Says that it lives and what it holds, and reads what others hold."""
        now = time.time()
        use = {"device": asdict(self.resident.use), "host": asdict(self.files.use)}
        info = {
            "pid": os.getpid(), "device": self.device, "resident": sorted(self._keys_here()),
            "use": use, "counts": asdict(self.counts), "memory": self._memory(),
        }  # fmt: skip
        row = {"seen": now, "info": json.dumps(info)}
        alive = workers.c.seen > now - self.settings.lease_seconds
        with self._database.writing(lasting=False) as connection:
            if (
                connection.execute(sql.update(workers).where(workers.c.id == self.id).values(**row)).rowcount
                == 0
            ):
                connection.execute(sql.insert(workers).values(id=self.id, **row))
            wanted = sql.select(workers.c.info).where(workers.c.id != self.id, alive)
            others = [json.loads(text) for text in connection.scalars(wanted)]
        self._others = len(others)
        self._elsewhere = {key for other in others for key in other["resident"]}

    def _memory(self) -> dict[str, int]:
        """Bytes of the device: in use and in all as its driver counts them, 0 of host memory; and what this
        worker took and keeps for its contexts."""
        devices = [loaded.context.device for loaded in self._loaded.values()]
        found = {"held": sum(device.pools().held for device in devices)}
        if devices:
            driver = devices[0].memory()
            found |= {"used": driver.used, "total": driver.total}
        return found


def bound(program: str, key: str) -> str:
    """What is resident is a program with keys: one file may serve several programs, of several tenants."""
    return f"{program}/{key}"


def _fits(servable: Servable, budget: int) -> None:
    """Raises ParameterError where not even two keys of the program at a time have room on the device."""
    least = min(servable.key_memory, 2 * servable.largest_key)
    if budget < least:
        raise ParameterError(
            f"the setting device_bytes is {budget}, the keys of {servable.name} need at least {least}",
            {"name": "device_bytes", "needed": least},
        )


def alive(database: Database, settings: Settings) -> list[dict[str, object]]:
    """What workers say of themselves whose signs of life are recent."""
    recent = workers.c.seen > time.time() - settings.lease_seconds
    with database.reading() as connection:
        rows = list(connection.execute(sql.select(workers.c.id, workers.c.info).where(recent)))
    return [{"id": row.id, **json.loads(row.info)} for row in rows]


def expire(database: Database, settings: Settings) -> None:
    """Forgets workers that have been silent for long."""
    with database.writing() as connection:
        connection.execute(
            sql.delete(workers).where(workers.c.seen < time.time() - 20 * settings.lease_seconds)
        )
