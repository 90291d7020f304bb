"""What a service may be told: one frozen dataclass, whose table in the guide is made from it."""

from __future__ import annotations

import dataclasses
import json
import typing
from dataclasses import dataclass, field, fields
from pathlib import Path

from crenel.errors import ParameterError

MIB, GIB, HOUR, DAY = 1 << 20, 1 << 30, 3600.0, 86400.0
HOST_KEYS = 4 * GIB


def _setting(default: object, text: str, least: float = 0) -> typing.Any:
    return field(default=default, metadata={"help": text, "least": least})


@dataclass(frozen=True)
class Settings:
    """Limits, times, places. Raises ParameterError for values out of range."""

    data: str = _setting(
        "crenel-service", "folder or fsspec URL (`s3://bucket/prefix`) of keys, inputs, results"
    )
    database: str = _setting("", "SQLAlchemy URL; default SQLite in the folder `data`")
    cache: str = _setting("", "local folder for copies of keys, needed where `data` is no folder")
    page: str = _setting("", "folder whose files are served under `/page/`")
    origins: tuple[str, ...] = _setting((), "origins of other pages that may call the service (CORS)")
    allow_insecure: bool = _setting(
        False, "serve programs whose parameters have less than 128 bits of security"
    )
    metrics_token: str = _setting("", "bearer token of `/metrics`; without it there is no `/metrics`")
    guests: int = _setting(0, "guests let in an hour (`POST /guests`); 0: none")
    guest_ttl: float = _setting(6 * HOUR, "seconds that a guest lives", 1)
    key_bytes: int = _setting(16 * GIB, "largest file of evaluation keys", 1)
    key_memory: int = _setting(
        32 * GIB, "most bytes of memory that one tenant's keys may take once expanded", 1
    )
    input_bytes: int = _setting(64 * MIB, "largest body of a job", 1)
    input_memory: int = _setting(512 * MIB, "most bytes of memory that one input may take once read", 1)
    chunk_bytes: int = _setting(64 * MIB, "largest chunk of an upload", 1)
    stored_key_bytes: int = _setting(32 * GIB, "key files of a tenant, uploads included", 1)
    uploads: int = _setting(8, "unfinished uploads of a tenant", 1)
    jobs: int = _setting(64, "queued and running jobs of a tenant", 1)
    job_bytes: int = _setting(GIB, "inputs of queued and running jobs of a tenant", 1)
    finished_jobs: int = _setting(
        1000, "finished jobs of a tenant; beyond, the oldest whose results were fetched go first", 1
    )
    result_bytes: int = _setting(2 * GIB, "results of a tenant; beyond, the same", 1)
    queue: int = _setting(10_000, "queued and running jobs of all tenants", 1)
    waiting: int = _setting(256, "requests of a tenant that are being answered at a time", 1)
    requests_per_second: float = _setting(100.0, "requests of a tenant, in the long run", 0.001)
    burst: int = _setting(400, "requests of a tenant at once", 1)
    refusals_per_second: float = _setting(5.0, "requests with a wrong token, of one address", 0.001)
    wait_seconds: float = _setting(60.0, "longest that a request waits for a job or for keys")
    body_seconds: float = _setting(20.0, "longest pause of a body before the connection is closed", 0.01)
    upload_ttl: float = _setting(DAY, "seconds that an upload lives after its last chunk", 1)
    key_ttl: float = _setting(30 * DAY, "seconds that keys live after their last use", 1)
    result_ttl: float = _setting(DAY, "seconds that a finished job and its result live", 1)
    lease_seconds: float = _setting(
        15.0, "after so long without a sign of life a worker's job begins again", 0.2
    )
    attempts: int = _setting(5, "times that a job begins at most", 1)
    device_errors: int = _setting(3, "`DeviceError`s in a row that end a worker, which starts anew", 1)
    device_bytes: int = _setting(
        0,
        "expanded keys on a worker's device; 0: of a GPU a third of its memory, divided by the workers that "
        "share it; 4 GiB of host memory",
    )
    host_bytes: int = _setting(2 * GIB, "key files that a worker keeps in memory below that")
    cache_bytes: int = _setting(64 * GIB, "key files in the folder `cache`", 1)
    min_free_bytes: int = _setting(256 * MIB, "what a local disk must keep free; else 507")
    poll_seconds: float = _setting(0.02, "between two looks of an idle worker at the queue", 0.001)
    steal_seconds: float = _setting(2.0, "a job waits so long for a worker that holds its keys")
    watch_seconds: float = _setting(0.05, "between two looks for jobs that somebody waits for", 0.001)

    def __post_init__(self) -> None:
        for f in fields(self):
            value, least = getattr(self, f.name), f.metadata["least"]
            if isinstance(f.default, (int, float)) and not isinstance(f.default, bool):
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if not number or not value >= least or value == float("inf"):
                    raise ParameterError(
                        f"the setting {f.name} is {value!r}, expected a number of at least {least:g}",
                        {"name": f.name, "least": float(least)},
                    )
        if "://" in self.data and not (self.cache and self.database):
            raise ParameterError(
                f"data at {self.data} needs the settings cache (a local folder) and database (a URL)",
                {"name": "cache"},
            )

    def for_device(self, memory: int, sharing: int = 1) -> Settings:
        """The same with `device_bytes` chosen where none are stated. A third: weights, plaintexts of
        bootstraps and what a request computes with take the rest.

        memory : bytes of the device's own memory; 0: it is the host's
        sharing : workers of the device
        """
        if self.device_bytes:
            return self
        return dataclasses.replace(self, device_bytes=memory // (3 * sharing) if memory else HOST_KEYS)

    @property
    def database_url(self) -> str:
        """The database's, with the default filled in."""
        return self.database or f"sqlite:///{Path(self.data).absolute() / 'service.sqlite'}"

    def to_json(self) -> str:
        """What `from_json` reads: how settings come to worker processes. It may hold passwords of URLs."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Raises ParameterError for text that is none."""
        try:
            found: dict[str, typing.Any] = json.loads(text)
            found["origins"] = tuple(found["origins"])
            return cls(**found)
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"no settings: {error}") from None

    @classmethod
    def of(cls, texts: typing.Iterable[str]) -> Settings:
        """From texts ``name=value``; lists are separated by commas. Raises ParameterError naming the text."""
        known = {f.name: f.default for f in fields(cls)}
        found: dict[str, typing.Any] = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or name not in known:
                raise ParameterError(
                    f"{text!r} is no setting, expected NAME=VALUE with a name of: {', '.join(known)}",
                    {"name": name},
                )
            found[name] = _parsed(name, value, known[name])
        return cls(**found)

    @classmethod
    def table(cls) -> str:
        """Names, defaults and meanings, for the guide."""
        rows = [f"| `{f.name}` | {_shown(f.default)} | {f.metadata['help']} |" for f in fields(cls)]
        return "\n".join(["| Setting | Default | Is |", "|---|---|---|", *rows])


def _parsed(name: str, value: str, default: object) -> object:
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[value.lower()]
        if isinstance(default, tuple):
            return tuple(v for v in value.split(",") if v)
        if isinstance(default, (int, float)):
            return type(default)(value)
    except (KeyError, ValueError):
        raise ParameterError(
            f"the setting {name} is {value!r}, expected {type(default).__name__}", {"name": name}
        ) from None
    return value


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int) and default >= MIB:
        unit, text = (GIB, "GiB") if default % GIB == 0 else (MIB, "MiB")
        return f"{default // unit} {text}"
    if isinstance(default, (int, float)):
        return f"{default:.10g}"
    return f"`{default}`" if default else "none"
