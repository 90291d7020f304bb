"""A service for tests: a small program, tenants, requests in this process, and a worker."""

from __future__ import annotations

import base64
import hashlib
import uuid
import warnings
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
from fastapi.testclient import TestClient

from crenel import ckks, nn
from crenel.serve import app
from crenel.serve.programs import NnProgram, Programs
from crenel.serve.service import Service
from crenel.serve.settings import Settings
from crenel.serve.worker import Worker

TUS = {"Tus-Resumable": "1.0.0"}
CHUNK = TUS | {"Content-Type": "application/offset+octet-stream"}


def quiet() -> None:
    """The toy sets are insecure on purpose."""
    warnings.simplefilter("ignore", ckks.InsecureParametersWarning)


@cache
def made() -> SimpleNamespace:
    """A program of two layers, a client with its keys, and another client's: made once."""
    quiet()
    rng = np.random.default_rng(5)
    params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
    layers = nn.Linear(rng.normal(0, 0.5, (4, 3))), nn.Square(), nn.Linear(rng.normal(0, 0.5, (2, 4)))
    samples = rng.normal(size=(100, 3))
    program = nn.compile(nn.Sequential(*layers), samples, params=params, batch=4, device="cpu")
    spec = program.client
    clients = [spec.keygen("cpu") for _ in range(2)]
    keys = [c.evaluation_keys(spec).to_bytes() for c in clients]
    sent = [c.encrypt(samples[:2], spec).to_bytes() for c in clients]
    server = program.bind(keys[0])
    answer = server.run(server.tensor_from_bytes(sent[0])).to_bytes()
    return SimpleNamespace(
        program=program, spec=spec, clients=clients, keys=keys, sent=sent, samples=samples, answer=answer,
        servable=NnProgram("toy", program.to_bytes(), allow_insecure=True),
    )  # fmt: skip


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def metadata(key: bytes | str, program: str | None = None, **more: str) -> str:
    """tus' Upload-Metadata for a key file."""
    names = {"program": program or made().program.fingerprint}
    names |= {"sha256": key if isinstance(key, str) else sha(key), **more}
    return ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in names.items())


def checksum(data: bytes) -> str:
    return f"sha256 {base64.b64encode(hashlib.sha256(data).digest()).decode()}"


@dataclass
class World:
    """Services and routes of one folder, without sockets; a worker runs where `work` is called."""

    folder: Path
    settings: Settings
    service: Service = field(init=False)
    http: TestClient = field(init=False)
    tokens: dict[str, str] = field(default_factory=dict)
    _worker: Worker | None = None

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """As a server that starts, on what lies in the folder."""
        self.service = Service(self.settings, Programs([made().servable]))
        self.http = TestClient(app.create(self.service), raise_server_exceptions=False)
        for name in ("alice", "bob"):
            if name not in self.service.auth.names():
                self.tokens[name] = self.service.auth.add(name)

    def restart(self, **changed: object) -> None:
        """Another server in its place."""
        self.close()
        self.settings = replace(self.settings, **changed)
        self.open()

    def close(self) -> None:
        self.http.close()
        self.service.close()
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def worker(self) -> Worker:
        if self._worker is None:
            self._worker = Worker(self.settings, Programs([made().servable]), "cpu")
        return self._worker

    def work(self, most: int = 100) -> int:
        """Steps until there is nothing to do."""
        return next((k for k in range(most) if not self.worker().step()), most)

    def ask(self, method: str, route: str, tenant: str = "alice", **given: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[tenant]}"} | dict(given.pop("headers", {}))  # type: ignore[call-overload]
        return self.http.request(method, route, headers=headers, **given)  # type: ignore[arg-type]

    def begin(self, data: bytes, tenant: str = "alice", **more: str) -> str:
        """A new upload's place."""
        headers = TUS | {"Upload-Length": str(len(data)), "Upload-Metadata": metadata(data, **more)}
        answer = self.ask("POST", "/keys/uploads", tenant, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.headers["Location"])

    def patch(
        self, place: str, offset: int, data: bytes, tenant: str = "alice", **more: str
    ) -> httpx.Response:
        headers = CHUNK | {"Upload-Offset": str(offset)} | more
        return self.ask("PATCH", place, tenant, headers=headers, content=data)

    def upload(self, data: bytes, tenant: str = "alice", **more: str) -> str:
        """A whole key file; its hash."""
        answer = self.patch(self.begin(data, tenant, **more), 0, data, tenant)
        assert answer.status_code == 204, answer.text
        return str(answer.headers["Crenel-Key"])

    def ready(self, data: bytes, tenant: str = "alice") -> str:
        """A whole key file, checked."""
        key = self.upload(data, tenant)
        self.work()
        assert self.ask("GET", f"/keys/{key}", tenant).json()["state"] == "ready"
        return key

    def submit(self, data: bytes, key: str, tenant: str = "alice", **more: str) -> httpx.Response:
        headers = {
            "Crenel-Program": made().program.fingerprint, "Crenel-Key": key,
            "Content-Type": "application/octet-stream", "Idempotency-Key": uuid.uuid4().hex,
        } | more  # fmt: skip
        return self.ask("POST", "/jobs", tenant, headers=headers, content=data)


def problem(answer: httpx.Response, status: int, code: str) -> dict:
    """The answer is a problem of this status and class; its document."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), (
        answer.text
    )
    found = answer.json()
    assert set(found) == {"type", "title", "status", "detail", "code", "fields", "retry"}
    assert (found["code"], found["status"], found["type"]) == (code, status, f"urn:crenel:error:{code}"), (
        found
    )
    assert ("retry-after" in answer.headers) == found["retry"]
    return found
