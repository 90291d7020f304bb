"""What computes: a plain object that takes jobs from the queue and runs them on one device."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

import crenel
from crenel.errors import (
    Cancelled,
    CrenelError,
    DeviceError,
    KeysNeededError,
    NotFoundError,
    OutOfMemoryError,
    ServiceError,
)  # fmt: skip
from crenel.serve.blobs import Blobs
from crenel.serve.database import JOBS_WAIT, KEYS_WAIT, Database
from crenel.serve.health import Health
from crenel.serve.jobs import GROUP_S, Answered, Claimed, Jobs
from crenel.serve.keys import Keys, ToCheck
from crenel.serve.observe import Counts, log
from crenel.serve.patience import servers_own
from crenel.serve.presence import Presence
from crenel.serve.programs import Programs
from crenel.serve.servable import Loaded, Prepared
from crenel.serve.settings import Settings
from crenel.serve.tiers import Tiers, bound

LANES = 2
"""Threads of a worker: while one computes, the other fetches an input, prepares keys or writes a result."""


PATIENCE_S = 5 * GROUP_S  # on a machine that is busy with other things, a group takes longer than it should
LOOK_S = 0.25
"""Between two looks of an idle lane where nobody wrote to the database."""
TROUBLE_S = 1.0
"""The pause of a lane after storage or database failed."""
GRACE_S = 20.0
"""What lanes of a broken device have to end: a call to it may never return."""


class Stopping(Exception):
    """The worker is asked to stop: what it runs waits again."""


@dataclass(frozen=True)
class _Held:
    """What a lane has under a lease, and whether that was lost."""

    found: Claimed | ToCheck
    lost: threading.Event


class Worker:
    """One device, its resident keys, and a loop over the queue.

    device : "cpu", "cuda:0", ...; programs are loaded when it is made. Raises DeviceError, OutOfMemoryError.
    sharing : workers of that device
    """

    def __init__(self, settings: Settings, programs: Programs, device: str, sharing: int = 1) -> None:
        self.id = uuid.uuid4().hex
        settings = settings.for_device(crenel.device_info(device).memory_bytes, sharing)
        self.settings, self.device, self._programs = settings, device, programs
        self._database = Database(settings.database_url)
        self._blobs = Blobs(settings.data, settings.min_free_bytes)
        self._keys = Keys(self._database, self._blobs, settings)
        self._jobs = Jobs(self._database, self._blobs, settings, programs, self._keys)
        self._presence = Presence(self._database, settings, self.id)
        self._loaded: dict[str, Loaded] = {}
        self.tiers = Tiers(settings, programs, self._loaded, self._blobs, self.id)
        self._loaded |= {p.program: p.load(device) for p in programs}
        self.health, self.counts = Health(settings.device_errors), Counts()
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
        """Until `stop`, or until the device is given up (`health`): who began the worker begins another one.
        A failure of database or storage is logged, and tried again."""
        threads = [threading.Thread(target=self._beats, daemon=True, name="heartbeat")]
        threads += [threading.Thread(target=self._lane, daemon=True, name=f"lane-{k}") for k in range(LANES)]
        for thread in threads:
            thread.start()
        self._stop.wait()
        end = time.monotonic() + GRACE_S
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()) if self.health.broken else None)
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
                self._stop.wait(TROUBLE_S)
                continue
            except Exception as mistake:  # of ours: without lanes a worker would only look alive
                log("mistake", worker=self.id, code=type(mistake).__name__)
                self._stop.wait(TROUBLE_S)
                continue
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
        self._presence.end()
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
        if not self._database.anything(JOBS_WAIT):
            return False
        cost = self._typical.get
        claimed = self._jobs.claim(
            self.id, self.tiers.keys, self._elsewhere, lambda p: cost(p, GROUP_S), self._others
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
        """By the library's loader, which reads every key; what is the service's own trouble is no refusal."""
        error: CrenelError | None = None
        warm = bound(found.program, found.key) in self.tiers.device
        try:
            with self.tiers.prepared(found.program, found.key):
                pass
        except KeysNeededError:
            self._keys.lost(found.tenant, found.key)
            return
        except Exception as failure:
            if trouble := servers_own(failure):
                self._not_checked(found, trouble)
                return
            if not isinstance(failure, CrenelError):
                log("mistake", worker=self.id, key=found.key, code=type(failure).__name__)
                ours = CrenelError("the service failed while it checked")
                self._keys.put_off(found, self.id, ours, counts=True)
                return
            error = failure
        else:
            if not warm:
                self.health.worked()
        self._keys.checked(found, error)
        with self._counting:
            self.counts.checked += 1
        log("keys", worker=self.id, key=found.key, state="ready" if error is None else "refused",
            code=error.code if error else None)  # fmt: skip
        self._beat()

    def _not_checked(self, found: ToCheck, trouble: CrenelError) -> None:
        """Keys that device, memory or storage kept from being checked wait."""
        log("check_waits", worker=self.id, key=found.key, code=trouble.code, attempt=found.attempt)
        self._suffered(trouble)
        self._keys.put_off(found, self.id, trouble)

    def _suffered(self, error: CrenelError) -> None:
        """Counts a failure of the device; where there are too many in a row the worker ends."""
        if not isinstance(error, DeviceError) or isinstance(error, OutOfMemoryError):
            return
        self.health.failed()
        self._give_up()

    def _give_up(self) -> None:
        if self.health.broken and not self._stop.is_set():
            log("device_broken", worker=self.id, device=self.device, attempt=self.health.failures)
            self.stop()

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
                if isinstance(trouble, ServiceError):
                    self._jobs.put_off(left, self.id, trouble)
                else:
                    self._jobs.release(left, self.id, counts=False)
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
            warm = bound(claimed.program, claimed.key) in self.tiers.device
            with self.tiers.prepared(claimed.program, claimed.key) as prepared:
                ready = time.time()
                if not warm:
                    self._beat()  # others learn where these keys are
                result = self._result(claimed, prepared, data)
                run: float = self._now.run
        except (Cancelled, NotFoundError) as ended:
            self._jobs.failed(claimed, self.id, ended)  # nothing where it was cancelled or deleted
        except KeysNeededError:
            self._keys.lost(claimed.tenant, claimed.key)
            self._jobs.without_keys(claimed, self.id)
        except (Stopping, ServiceError):  # storage or database: not the job's fault
            raise
        except MemoryError as error:
            self._failed(claimed, servers_own(error) or CrenelError("the service is out of memory"))
        except DeviceError as error:
            self._device_failed(claimed, error)
        except CrenelError as error:
            self._failed(claimed, error)
        except Exception as error:  # a mistake of ours must not end the worker, nor be shown
            log("mistake", worker=self.id, job=claimed.id, code=type(error).__name__)
            self._failed(claimed, CrenelError("the service failed while it computed"))
        else:
            self.health.worked()
            # What it takes where nothing disturbs it; a program that became slower is believed in time.
            self._typical[claimed.program] = min(run, 1.02 * self._typical.get(claimed.program, run))
            return Answered(claimed, result, 0.0 if warm else ready - start, run)
        return None

    def _result(self, claimed: Claimed, prepared: Prepared, data: bytes) -> bytes:
        """The answer to an input. Out of memory: once more, with no keys on the device but its own and those
        that the other lane has in use."""
        try:
            return prepared.run(data, self._checkpoint, lambda: self._turn_of(claimed))
        except MemoryError as error:  # what it holds of the computation goes with the block
            log("out_of_memory", worker=self.id, job=claimed.id, code=type(error).__name__)
        with self._device:
            self.tiers.shrink()
        return prepared.run(data, self._checkpoint, lambda: self._turn_of(claimed))

    def _device_failed(self, claimed: Claimed, error: DeviceError) -> None:
        """The job begins again, here or elsewhere, unless it was its last attempt. Raises Stopping where the
        device is given up."""
        self._suffered(error)  # before the other lane can have the job
        if claimed.last:
            self._failed(claimed, error)
        else:
            log("job_waits", worker=self.id, job=claimed.id, code=error.code, attempt=claimed.attempt)
            self._jobs.release(claimed, self.id)
        if self.health.broken:
            raise Stopping

    @contextmanager
    def _turn_of(self, claimed: Claimed) -> Iterator[None]:
        """The device is this job's until the block ends."""
        with self._device, crenel.progress(lambda *_: self._checkpoint()):
            self._started(claimed)
            self.tiers.settle()
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
        steps = self._extend, self._beat, self._forget, self._probe
        while not self._stop.wait(self.settings.lease_seconds / 4):
            for step in steps:
                try:
                    step()
                except ServiceError as error:
                    log("heartbeat_waits", worker=self.id, code=error.code)
                except Exception as mistake:  # of ours: without signs of life every job would begin again
                    log("mistake", worker=self.id, code=type(mistake).__name__)

    def _extend(self) -> None:
        """Leases of what runs."""
        for held in list(self._held.values()):
            if isinstance(held.found, ToCheck):
                self._keys.extend(held.found, self.id, self.settings.lease_seconds)
            elif not self._jobs.extend(held.found, self.id):
                held.lost.set()  # or it has just ended, and nobody asks any more

    def _beat(self) -> None:
        """Says that it lives and what it holds, and reads what others hold."""
        use = {"device": asdict(self.tiers.device.use), "host": asdict(self.tiers.host.use)}
        others = self._presence.say({
            "pid": os.getpid(), "device": self.device, "resident": sorted(self.tiers.keys), "use": use,
            "counts": asdict(self.counts), "memory": self._memory(), "well": self.health.well,
        })  # fmt: skip
        self._others = len(others)
        self._elsewhere = {key for other in others for key in other["resident"]}

    def _forget(self) -> None:
        """Keys that no tenant has any more: deleted, replaced, or their time is over."""
        try:
            if gone := self.tiers.keep(self._keys.held):
                log("keys_forgotten", worker=self.id, status=gone)
        finally:
            if self._device.acquire(blocking=False):  # else the next job that has its turn does it
                try:
                    self.tiers.settle()
                finally:
                    self._device.release()

    def _probe(self) -> None:
        """Is the device well again, or does it fail without a job, too?"""
        for loaded in list(self._loaded.values())[:1]:
            self.health.probe(loaded.context)
        self._give_up()

    def _memory(self) -> dict[str, int]:
        """Bytes of the device: in use and in all as its driver counts them, 0 of host memory; and what this
        worker took and keeps for its contexts. A device that failed does not say the former."""
        devices = [loaded.context.device for loaded in self._loaded.values()]
        found = {"held": sum(device.pools().held for device in devices)}
        for device in devices[:1]:
            try:
                driver = device.memory()
            except DeviceError:
                self.health.doubt()
            else:
                found |= {"used": driver.used, "total": driver.total}
        return found
