"""Many requests at once while a worker is killed every few seconds: is every accepted one answered?

python bench/service/kills.py --requests 1000 --every 10 --json bench/results/service-kills-local.json
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import os
import signal
import tempfile
import time

import common
import httpx

from crenel import client
from crenel.serve import NnProgram, Settings, running


def measure(given: argparse.Namespace) -> dict:
    program, images = common.digits(given.params, 4)
    served = NnProgram("digits", program.to_bytes(), allow_insecure=True)
    spec = program.client
    with tempfile.TemporaryDirectory() as folder:
        settings = common.settings(
            folder,
            jobs=given.requests,
            waiting=10 * given.requests,
            finished_jobs=10 * given.requests,
            burst=100 * given.requests,
            lease_seconds=3.0,
            attempts=given.attempts,
        )
        with _serving(given.engine, served, settings, given.workers) as service:
            tenant = client.connect(service.url, service.token or "")
            session = client.Session(tenant, spec, spec.keygen("cpu"))
            session.send_keys()
            inputs = [
                session.client.encrypt(images[4 * k : 4 * k + 4], spec).to_bytes()
                for k in range(given.inputs)
            ]
            local = program.bind(session.client.evaluation_keys(spec))
            right = [session.client.decrypt(local.run(local.tensor_from_bytes(d)), spec) for d in inputs]
            found = asyncio.run(_all(given, service, session, inputs))
            states = collections.Counter(job["state"] for job in found["jobs"])
            answered = wrong = 0
            results: dict[int, dict[str, bool]] = collections.defaultdict(dict)
            for k, job in enumerate(found["jobs"]):
                if job["state"] == "done":
                    seen, name = results[k % len(inputs)], job["result"]["sha256"]
                    if name not in seen:  # results are compared by their hash, and each one decrypted once
                        data = client.Job(session, job["job"]).encrypted(60)
                        value = session.client.decrypt(session.client.tensor_from_bytes(data), spec)
                        seen[name] = bool(abs(value - right[k % len(inputs)]).max() < 1e-3)
                    answered, wrong = answered + seen[name], wrong + (not seen[name])
            listed = service_jobs(settings)
    errors = collections.Counter(j["error"]["code"] for j in found["jobs"] if j["error"])
    retry = all(j["error"]["retry"] for j in found["jobs"] if j["error"])
    return {
        "accepted": len(found["jobs"]),
        "refused": found["refused"],
        "kills": found["kills"],
        "states": dict(states),
        "right": answered,
        "wrong": wrong,
        "errors": dict(errors),
        "errors_may_retry": retry,
        "jobs_in_database": listed,
        "distinct_results_of_an_input": max(map(len, results.values())),
        "began_more_than_once": sum(j["attempts"] > 1 for j in found["jobs"]),
        "seconds": found["seconds"],
        **common.percentiles(found["times"]),
    }


def service_jobs(settings: Settings) -> int:
    """Rows of the table: one for every accepted request."""
    import sqlalchemy as sql

    from crenel.serve.database import Database, jobs

    database = Database(settings.database_url)
    with database.reading() as connection:
        return int(connection.scalar(sql.select(sql.func.count()).select_from(jobs)) or 0)


def _serving(engine: str, served: NnProgram, settings: Settings, workers: int):
    if engine == "local":
        return running([served], settings, device="cpu", workers=workers)
    from crenel.serve import deployment

    return deployment.running([served], settings, device="cpu", workers=workers, port=18499)


def _pids(service: object) -> list[int]:
    return list(service.workers.pids) if hasattr(service, "workers") else service.worker_pids()  # type: ignore[attr-defined]


async def _kill(service: object, every: float, kills: list[int]) -> None:
    """A worker every so many seconds, one after the other, counted in `kills`."""
    while True:
        await asyncio.sleep(every)
        pids = await asyncio.to_thread(_pids, service)
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids[kills[0] % len(pids)], signal.SIGKILL)
                kills[0] += 1


async def _sent(http: httpx.AsyncClient, name: str, data: bytes, refused: collections.Counter[str]) -> str:
    """The job of a request, which is sent until it is taken."""
    while True:
        try:
            answer = await http.post("/jobs", content=data, headers={"Idempotency-Key": name})
        except httpx.TransportError as error:
            refused[type(error).__name__] += 1
            await asyncio.sleep(1)
            continue
        if answer.status_code in (200, 202):
            return str(answer.json()["job"])
        refused[answer.json()["code"]] += 1
        await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))


async def _ended(http: httpx.AsyncClient, job: str) -> dict:
    """What becomes of a job."""
    while True:
        try:
            found = (await http.get(f"/jobs/{job}", params={"wait": 30})).json()
        except httpx.TransportError:
            await asyncio.sleep(1)
            continue
        if found.get("state") in ("done", "failed", "cancelled"):
            return found
        if "state" not in found:
            await asyncio.sleep(1)


async def _all(given: argparse.Namespace, service, session: client.Session, inputs: list[bytes]) -> dict:
    start, kills = time.monotonic(), [0]
    refused: collections.Counter[str] = collections.Counter()
    headers = {
        "Authorization": f"Bearer {service.token}",
        "Crenel-Program": session.spec.program,
        "Crenel-Key": session.key,
        "Content-Type": "application/octet-stream",
    }
    limits = httpx.Limits(max_connections=given.requests, max_keepalive_connections=given.requests)
    async with httpx.AsyncClient(base_url=service.url, headers=headers, limits=limits, timeout=300) as http:
        times: list[float] = []

        async def one(k: int) -> dict:
            began = time.monotonic()
            found = await _ended(http, await _sent(http, f"request-{k}", inputs[k % len(inputs)], refused))
            times.append(time.monotonic() - began)
            return found

        killing = asyncio.create_task(_kill(service, given.every, kills))
        jobs = await asyncio.gather(*(one(k) for k in range(given.requests)))
        killing.cancel()
    return {
        "jobs": jobs,
        "refused": dict(refused),
        "kills": kills[0],
        "times": times,
        "seconds": round(time.monotonic() - start, 1),
    }


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--every", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--attempts", type=int, default=5)
    parser.add_argument("--params", default="leveled-n13-s28")
    parser.add_argument("--engine", choices=["local", "ray"], default="local")


if __name__ == "__main__":
    common.main("kills", measure, options)
