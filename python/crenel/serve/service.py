"""The services that stand behind the routes, made once a process, and what keeps house."""

from __future__ import annotations

import threading
import time

from crenel.errors import ServiceError
from crenel.serve import presence
from crenel.serve.auth import Auth
from crenel.serve.blobs import Blobs
from crenel.serve.database import Database
from crenel.serve.jobs import Jobs
from crenel.serve.keys import Keys
from crenel.serve.limits import AtOnce, Rate
from crenel.serve.observe import Metrics, log
from crenel.serve.programs import Programs
from crenel.serve.settings import Settings
from crenel.serve.uploads import Uploads

HOUSEKEEPING_S, NOTE_S, SWEEP_S = 20.0, 0.5, 3600.0


class Service:
    """All services of one process of the HTTP side. Raises StateError for a database of a newer version."""

    def __init__(self, settings: Settings, programs: Programs) -> None:
        self.settings, self.programs = settings, programs
        self.blobs = Blobs(settings.data, settings.min_free_bytes)
        self.database = Database(settings.database_url)
        self.auth = Auth(self.database, settings)
        self.keys = Keys(self.database, self.blobs, settings)
        self.uploads = Uploads(self.database, self.blobs, settings, programs, self.keys)
        self.jobs = Jobs(self.database, self.blobs, settings, programs, self.keys)
        self.requests = Rate(settings.requests_per_second, settings.burst)
        self.waiting = AtOnce(settings.waiting)
        self.refusals = Rate(settings.refusals_per_second, 20 * settings.refusals_per_second)
        self.metrics = Metrics(self.jobs.counts, self.workers)
        self._described: dict[str, dict[str, object]] = {}
        self._fetched: set[str] = set()
        self._swept: float | None = None
        self._stop = threading.Event()
        self._house: threading.Thread | None = None

    def workers(self) -> list[dict[str, object]]:
        """Those that live, as they describe themselves."""
        return presence.alive(self.database, self.settings)

    def described(self, program: str) -> dict[str, object]:
        """A program in full, made once. Raises NotFoundError."""
        if program not in self._described:
            found = self.programs.get(program)
            self._described[program] = self.programs.describe(found, full=True)
        return self._described[program]

    def checks(self) -> dict[str, str]:
        """What a service needs to be ready, each "ok" or what is wrong."""
        found: dict[str, str] = dict.fromkeys(("database", "storage", "workers"), "ok")
        try:
            self.blobs.room()
        except ServiceError as error:
            found["storage"] = error.code
        try:
            workers = self.workers()
            if not workers:
                found["workers"] = "none lives"
            elif not any(w.get("well", True) for w in workers):
                found["workers"] = "the devices of all fail"
        except ServiceError as error:
            found["database"] = found["workers"] = error.code
        return found

    def fetched(self, job: str) -> None:
        """Its result was sent. Noted in memory: what a crash forgets stays until its time is over."""
        self._fetched.add(job)

    def note(self) -> None:
        """Writes which results were sent."""
        found, self._fetched = list(self._fetched), set()
        for start in range(0, len(found), 500):
            self.jobs.fetched(found[start : start + 500])

    def start(self) -> None:
        """Begins to keep house."""
        self._house = threading.Thread(target=self._keep, daemon=True, name="housekeeping")
        self._house.start()

    def close(self) -> None:
        """Ends keeping house, and connections."""
        self._stop.set()
        if self._house is not None:
            self._house.join()
        self.database.close()

    def tidy(self) -> None:
        """Deletes what is over: uploads, keys, jobs, tokens, workers; now and then files that nobody has."""
        counts = [self.uploads.expire(), self.keys.expire(), self.jobs.expire(), self.auth.expire()]
        now = time.monotonic()
        if self._swept is None or now - self._swept > SWEEP_S:
            self._swept = now
            counts += [self.jobs.results.sweep(), self.keys.sweep()]
        presence.expire(self.database, self.settings)
        if any(counts):
            log("tidied", status=sum(counts))

    def _keep(self) -> None:
        tidied = time.monotonic()
        while not self._stop.wait(NOTE_S):
            start = time.monotonic()
            try:
                self.note()
                if start - tidied > HOUSEKEEPING_S:
                    tidied = start
                    self.tidy()
            except ServiceError as error:
                log("housekeeping_waits", code=error.code, seconds=time.monotonic() - start)
