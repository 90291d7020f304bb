"""Requests that mean harm: none is a mistake of the service, none reaches what is another's."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from service_world import TUS, World, made

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "service"))


def test_hostile_requests(world: World):
    from hostile import requests_of

    seed = int(np.random.default_rng().integers(2**32))
    print("seed", seed)
    world.restart(requests_per_second=1e5, burst=10**6, refusals_per_second=1e5, jobs=1000)
    m = made()
    key = world.ready(m.keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    world.work()
    own = world.ready(m.keys[1], "bob")
    mine = world.begin(b"0" * 400, "bob")[-32:]
    names = {"program": m.program.fingerprint, "key": key, "own": own, "job": job}
    names |= {"upload": "0" * 32, "mine": mine}
    rng = np.random.default_rng(seed)
    for request in requests_of(rng, 350, world.tokens["bob"], names, m.sent[1], m.keys[1]):
        headers = [(k.encode(), v.encode("latin-1", "replace")) for k, v in request.headers.items()]
        answer = world.http.request(request.method, request.route, headers=headers, content=request.content)
        assert answer.status_code < 500 or answer.status_code == 503 and request.route == "/readyz", request
        if request.kind in ("theirs", "token") and answer.status_code < 400:
            assert job not in answer.text and key not in answer.text
    world.work(1000)
    states = {j["state"] for j in world.ask("GET", "/jobs", "bob").json()["jobs"]}
    assert states <= {"failed", "cancelled", "done"}
    for found in world.ask("GET", "/jobs", "bob").json()["jobs"]:
        if found["error"]:
            assert found["error"]["code"] in (
                "SerializationError",
                "StateError",
                "ParameterError",
                "Cancelled",
            ), found
            assert str(world.folder) not in str(found["error"])
    assert world.ask("GET", f"/jobs/{job}/result").content == m.answer
    assert world.ask("HEAD", f"/keys/uploads/{mine}", "bob", headers=TUS).status_code in (200, 404)


def test_fields_of_errors_hold_no_paths_and_no_secrets(world: World):
    from crenel.errors import MissingFileError
    from crenel.serve.errors import Problem

    found = Problem.of(
        MissingFileError("/srv/secret/x is missing", {"filename": "/srv/secret/x", "errno": 2})
    )
    assert "/srv" not in found.to_json() and found.status == 500
