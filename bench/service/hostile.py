"""Requests that mean harm: fuzzed bodies and headers, other tenants' names, replays, slow clients.

    python bench/service/hostile.py --requests 10000 --json bench/results/service-hostile.json

None may end in a status of 500, reach what is another tenant's, or make memory grow; the service answers an
honest client afterwards. `requests_of` makes them, for a test too.
"""

from __future__ import annotations

import argparse
import base64
import collections
import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import common
import httpx
import numpy as np

from crenel import client
from crenel.serve import NnProgram, running

ROUTES = [
    "/jobs",
    "/jobs/{job}",
    "/jobs/{job}/result",
    "/jobs/{job}/cancel",
    "/keys",
    "/keys/{key}",
    "/keys/uploads",
    "/keys/uploads/{upload}",
    "/programs",
    "/programs/{program}",
    "/programs/{program}/client",
    "/protocol",
    "/readyz",
    "/metrics",
    "/guests",
    "/",
    "/page/../../etc/passwd",
    "/jobs/%00",
    "/jobs/..%2f..%2fkeys",
    "//jobs",
    "/openapi.json/x",
    "/keys/" + "a" * 4000,
    "/jobs?wait=nan",
    "/jobs/{job}?wait=-1",
    "/jobs?state=x%27%20OR%201=1",
]
VERBS = ["GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS", "TRACE", "BREW"]


@dataclass(frozen=True)
class Request:
    """One of them; what it tries is in `kind`."""

    kind: str
    method: str
    route: str
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""


def requests_of(
    rng: np.random.Generator, count: int, token: str, names: dict[str, str], body: bytes, keys: bytes
) -> Iterator[Request]:
    """So many of all kinds, with a valid token of a tenant that owns nothing of `names`."""
    base = {
        "Authorization": f"Bearer {token}",
        "Crenel-Program": names["program"],
        "Crenel-Key": names["own"],
    }
    octets = base | {"Content-Type": "application/octet-stream"}
    chunk = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}
    kinds = (
        lambda k: Request("body", "POST", "/jobs", octets | {"Idempotency-Key": f"h{k}"}, _fuzzed(rng, body)),
        lambda k: Request(
            "replay", "POST", "/jobs", octets | {"Idempotency-Key": "once"}, _fuzzed(rng, body)
        ),
        lambda k: Request(
            "theirs",
            _pick(rng, VERBS[:5]),
            _pick(rng, ROUTES).format(**names),
            base | {"Tus-Resumable": "1.0.0", "Idempotency-Key": f"t{k}"},
        ),
        lambda k: Request(
            "token",
            _pick(rng, VERBS[:5]),
            _pick(rng, ROUTES[:8]).format(**names),
            {"Authorization": _token(rng, token)},
        ),
        lambda k: Request(
            "header", _pick(rng, VERBS), _pick(rng, ROUTES).format(**names), base | _headers(rng)
        ),
        lambda k: Request(
            "upload",
            "POST",
            "/keys/uploads",
            base
            | chunk
            | {
                "Upload-Length": _pick(rng, ["1", "0", "-1", "1e9", str(2**63), str(2**80), "x"]),
                "Upload-Metadata": _pick(
                    rng, ["", "program", "sha256 !!!", "a b,c d", "program " + "QUFB" * 20]
                ),
            },
        ),
        lambda k: Request(
            "chunk",
            "PATCH",
            f"/keys/uploads/{names['mine']}",
            base | chunk | {"Upload-Offset": str(int(rng.integers(-2, 400)))},
            _fuzzed(rng, keys[:400]),
        ),
    )
    for k in range(count):
        yield kinds[k % len(kinds)](k)


def _pick(rng: np.random.Generator, of: list[str]) -> str:
    return of[int(rng.integers(len(of)))]


def _token(rng: np.random.Generator, token: str) -> str:
    at = int(rng.integers(len(token)))
    return _pick(
        rng,
        [
            "",
            "Bearer",
            "Bearer \x7f",
            f"Bearer {token[:at]}",
            f"Bearer {token}x",
            f"Basic {token}",
            f"Bearer {token[:at]}~{token[at + 1 :]}",
            "Bearer " + "A" * 3000,
        ],
    )


def _headers(rng: np.random.Generator) -> dict[str, str]:
    names = [
        "Content-Length",
        "Content-Type",
        "Crenel-Key",
        "Crenel-Program",
        "Idempotency-Key",
        "Upload-Offset",
        "Tus-Resumable",
        "Range",
        "Expect",
        "Host",
        "Crenel-Protocol",
        "Content-Digest",
        "Accept-Encoding",
    ]
    values = [
        "0",
        "-1",
        "99999999999999999999",
        "../../x",
        "\x7f",
        "é",
        "a" * 2000,
        "; drop table jobs",
        "[1,2]",
        "",
    ]
    return {_pick(rng, names[1:]): _pick(rng, values) for _ in range(3)}


def _fuzzed(rng: np.random.Generator, data: bytes) -> bytes:
    found = bytearray(data)
    how = int(rng.integers(5))
    if how == 0:
        return bytes(found[: int(rng.integers(len(found)))])
    if how == 1:
        return rng.bytes(int(rng.integers(2000)))
    if how == 2:
        return bytes(found) + rng.bytes(10)
    first = 400 if how == 3 else len(found)  # headers, where the structure is, or anywhere
    for at in rng.integers(0, min(first, len(found)), 4):
        found[int(at)] = int(rng.integers(256))
    return bytes(found)


class Slow:
    """Connections that send a byte now and then, until they are closed."""

    def __init__(self, port: int, count: int, token: str) -> None:
        self._stop = threading.Event()
        head = (
            f"POST /jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 100000\r\n"
        )
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
        for k, s in enumerate(self.sockets):
            s.sendall((head + ("\r\n" if k % 2 else "")).encode())
        self._thread = threading.Thread(target=self._drip, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for s in self.sockets:
            s.close()

    def _drip(self) -> None:
        while not self._stop.wait(1.0):
            for s in self.sockets:
                with contextlib.suppress(OSError):
                    s.send(b"x")


def broken_http(port: int, rng: np.random.Generator, count: int) -> None:
    """Bytes that are no HTTP."""
    lines = [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02",
        b"GET " + b"/" * 70000,
        b"A: b\r\n" * 20000,
        b"POST /jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /jobs HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ]
    for k in range(count):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as s:
            s.sendall(lines[k % len(lines)] if k % 2 else rng.bytes(300))
            s.settimeout(0.2)
            s.recv(1000)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    seed = int(np.random.default_rng().integers(2**32)) if given.seed is None else given.seed
    rng = np.random.default_rng(seed)
    program, images = common.digits("toy-leveled-n14-s40", 4)
    served, spec = NnProgram("digits", program.to_bytes(), allow_insecure=True), program.client
    with tempfile.TemporaryDirectory() as folder:
        settings = common.settings(folder, refusals_per_second=1e5, jobs=200, body_seconds=5.0)
        with running([served], settings) as service:
            alice = client.Session(client.connect(service.url, service.token or ""), spec, spec.keygen("cpu"))
            alice.send_keys()
            job = alice.submit(images[:4])
            right = job.result(60)
            token = service.service.auth.add("mallory")
            mallory = client.connect(service.url, token)
            keys = spec.keygen("cpu").evaluation_keys(spec).to_bytes()
            names = {
                "program": spec.program,
                "key": alice.key,
                "job": job.id,
                "upload": "0" * 32,
                "mine": _begun(service.url, token, spec.program),
            }
            own = client.Session(mallory, spec, spec.keygen("cpu"))
            own.send_keys()
            body = own.client.encrypt(images[:4], spec).to_bytes()
            before = [common.resident_bytes(p) for p in (os.getpid(), service.workers.pids[0])]
            pids = service.workers.pids
            found = _sent(
                service.url,
                requests_of(rng, given.requests, token, names | {"own": own.key}, body, keys),
                names,
                given.slow,
                token,
                rng,
            )
            start = time.monotonic()
            again = alice.run(images[:4], timeout=300)
            after = [common.resident_bytes(p) for p in (os.getpid(), service.workers.pids[0])]
            held = [found_key["key"] for found_key in list(alice.service.keys())]
    return found | {
        "seed": seed,
        "honest_client_right_afterwards": bool(abs(again - right).max() < 1e-6),
        "honest_client_waited_seconds": round(time.monotonic() - start, 1),
        "worker_died": pids != service.workers.pids,
        "keys_of_the_other_tenant_untouched": held == [alice.key],
        "resident_bytes_before": dict(zip(("server_and_client", "worker"), before, strict=True)),
        "resident_bytes_after": dict(zip(("server_and_client", "worker"), after, strict=True)),
    }


def _begun(url: str, token: str, program: str) -> str:
    metadata = (
        f"program {base64.b64encode(program.encode()).decode()},sha256 {base64.b64encode(b'0' * 64).decode()}"
    )
    headers = {
        "Authorization": f"Bearer {token}",
        "Tus-Resumable": "1.0.0",
        "Upload-Length": "400",
        "Upload-Metadata": metadata,
    }
    return httpx.post(f"{url}/keys/uploads", headers=headers).headers["Location"].rsplit("/", 1)[1]


def _sent(
    url: str,
    requests: Iterator[Request],
    names: dict[str, str],
    slow: int,
    token: str,
    rng: np.random.Generator,
) -> dict[str, Any]:
    port = httpx.URL(url).port or 0
    dripping, start = Slow(port, slow, token), time.monotonic()
    statuses: collections.Counter[int] = collections.Counter()
    kinds: collections.Counter[str] = collections.Counter()
    leaks = refused = 0
    with httpx.Client(base_url=url, timeout=60) as http:
        for request in requests:
            kinds[request.kind] += 1
            try:
                answer = http.request(
                    request.method,
                    request.route,
                    headers=[
                        (k.encode(), v.encode("latin-1", "replace")) for k, v in request.headers.items()
                    ],
                    content=request.content,
                )
            except (httpx.HTTPError, ValueError):
                refused += 1  # what the client's or the server's HTTP takes for none
                continue
            statuses[answer.status_code] += 1
            if (
                request.kind in ("theirs", "token")
                and names["job"] in answer.text
                and answer.status_code < 400
            ):
                leaks += 1
    broken_http(port, rng, 200)
    dripping.close()
    return {
        "requests": sum(kinds.values()),
        "kinds": dict(kinds),
        "statuses": {str(k): v for k, v in sorted(statuses.items())},
        "not_http": refused,
        "errors_500": statuses[500],
        "leaks": leaks,
        "slow_connections": slow,
        "broken_connections": 200,
        "seconds": round(time.monotonic() - start, 1),
    }


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--slow", type=int, default=50)
    parser.add_argument("--seed", type=int)


if __name__ == "__main__":
    common.main("hostile", measure, options)
