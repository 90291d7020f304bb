"""Every route of the OpenAPI document with another tenant's token: absent and forbidden look alike."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from service_world import TUS, World, made, metadata, problem, sha

import crenel.serve
from crenel import errors
from crenel.serve.errors import TABLE

SERVE = Path(crenel.serve.__file__).parent
OPEN = {"/protocol", "/healthz", "/readyz", "/metrics", "/guests"}
"""Routes that have no tenant."""


@pytest.fixture
def full(world: World):
    """Alice has one of everything."""
    m = made()
    key = world.ready(m.keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    world.work()
    return world, {
        "program": m.program.fingerprint,
        "key": key,
        "job": job,
        "upload": world.begin(m.keys[1])[-32:],
    }


def cases(names: dict[str, str]) -> dict[tuple[str, str], tuple[dict, int]]:
    """Of each route with a tenant: what Bob sends, and what he gets."""
    body = {
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": "bob",
        "Crenel-Program": names["program"],
    }
    chunk = TUS | {"Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"}
    create = TUS | {"Upload-Length": "10", "Upload-Metadata": metadata("0" * 64)}
    return {
        ("get", "/programs"): ({}, 200),
        ("get", "/programs/{program}"): ({}, 200),
        ("get", "/programs/{program}/client"): ({}, 200),
        ("options", "/keys/uploads"): ({}, 204),
        ("post", "/keys/uploads"): ({"headers": create}, 201),
        ("head", "/keys/uploads/{upload}"): ({"headers": TUS}, 404),
        ("patch", "/keys/uploads/{upload}"): ({"headers": chunk, "content": b"x"}, 404),
        ("delete", "/keys/uploads/{upload}"): ({"headers": TUS}, 404),
        ("get", "/keys"): ({}, 200),
        ("get", "/keys/{key}"): ({}, 404),
        ("delete", "/keys/{key}"): ({}, 404),
        ("post", "/jobs"): ({"headers": body | {"Crenel-Key": names["key"]}, "content": made().sent[0]}, 409),
        ("get", "/jobs"): ({}, 200),
        ("get", "/jobs/{job}"): ({}, 404),
        ("get", "/jobs/{job}/events"): ({}, 404),
        ("get", "/jobs/{job}/result"): ({}, 404),
        ("post", "/jobs/{job}/cancel"): ({}, 404),
        ("delete", "/jobs/{job}"): ({}, 404),
    }


def routes(world: World) -> set[tuple[str, str]]:
    document = world.http.get("/openapi.json").json()
    return {(verb, path) for path, found in document["paths"].items() for verb in found}


def test_every_route_has_a_case(full):
    world, names = full
    assert {r for r in routes(world) if r[1] not in OPEN} == set(cases(names))


def test_another_tenant_reaches_nothing(full):
    world, names = full
    before = [world.ask("GET", f"/{kind}").json() for kind in ("keys", "jobs")]
    for (verb, path), (given, status) in cases(names).items():
        answer = world.ask(verb, path.format(**names), "bob", **given)
        assert answer.status_code == status, (verb, path, answer.text)
        shown = answer.text + str(answer.headers)
        hidden = [names["key"], names["job"], names["upload"], sha(made().answer)]
        if path != "/jobs":  # its error names the key that was asked for
            assert not any(name in shown for name in hidden), (verb, path)
        absent = {name: "0" * len(value) for name, value in names.items()} | {"program": names["program"]}
        if status == 404:  # as what is not there at all
            other = world.ask(verb, path.format(**absent), "bob", **given)
            assert (other.status_code, other.content) == (status, answer.content), (verb, path)
    assert [world.ask("GET", f"/{kind}").json() for kind in ("keys", "jobs")] == before
    assert world.ask("GET", f"/jobs/{names['job']}/result").content == made().answer


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer x", "Basic YTpi", "Bearer " + "x" * 5000]
)
def test_without_a_token_of_the_service_there_is_nothing(full, header):
    world, names = full
    world.restart(refusals_per_second=1000.0)
    for (verb, path), (given, _) in cases(names).items():
        if (verb, path) == ("options", "/keys/uploads"):
            continue
        headers = dict(given.get("headers", {})) | ({} if header is None else {"Authorization": header})
        answer = world.http.request(verb, path.format(**names), headers=headers, content=given.get("content"))
        if verb == "head":
            assert answer.status_code == 401
        else:
            problem(answer, 401, "AuthenticationError")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_guessing_tokens_is_slowed(world: World):
    world.restart(refusals_per_second=0.1)
    codes = [world.http.get("/jobs", headers={"Authorization": f"Bearer {k}"}).status_code for k in range(5)]
    assert codes == [401, 401, 429, 429, 429]


def test_revoked_and_expired_tokens(world: World, monkeypatch):
    auth = world.service.auth
    more = auth.token("alice", ttl=100)
    assert world.http.get("/jobs", headers={"Authorization": f"Bearer {more}"}).status_code == 200
    from crenel.serve import auth as module

    now = module.time.time
    monkeypatch.setattr(module.time, "time", lambda: now() + 200)
    assert world.http.get("/jobs", headers={"Authorization": f"Bearer {more}"}).status_code == 401
    assert world.ask("GET", "/jobs").status_code == 200
    assert auth.expire() == 1
    assert auth.revoke("alice") == 1 and world.ask("GET", "/jobs").status_code == 401
    raw = (world.folder / "data" / "service.sqlite").read_bytes()
    assert world.tokens["bob"].encode() not in raw and b"crenel_" not in raw  # hashes only


def test_guests(world: World, monkeypatch):
    problem(world.http.post("/guests"), 404, "NotFoundError")
    world.restart(guests=2)
    found = [world.http.post("/guests").json() for _ in range(2)]
    problem(world.http.post("/guests"), 429, "LimitError")
    world.tokens |= {f["tenant"]: f["token"] for f in found}
    assert world.ask("GET", "/jobs", found[0]["tenant"]).status_code == 200
    from crenel.serve import auth as module

    now = module.time.time
    monkeypatch.setattr(module.time, "time", lambda: now() + world.settings.guest_ttl + 1)
    assert world.ask("GET", "/jobs", found[0]["tenant"]).status_code == 401
    world.service.auth.expire()
    assert set(world.service.auth.names()) == {"alice", "bob"}


def test_only_auth_makes_a_tenant():
    for file in SERVE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Tenant":
                assert file.name == "auth.py", file


def test_the_server_cannot_decrypt():
    """No file of the service names a client or a secret key, but for that which clients encrypt by, too: no
    other file calls what in it takes one."""
    holders = {"sealed", "opened", "Holder"}
    for file in SERVE.glob("*.py"):
        if file.name == "forms.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None)
            banned = {"Client", "keygen", "decrypt", "client_from_secret_key", "export_secret_key"}
            assert name not in banned, (file, name)
            assert getattr(node, "attr", None) not in holders, (file, name)


def test_only_two_modules_know_ray():
    package = SERVE.parent
    knowing = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "ray" for name in names):
                knowing.add(str(file.relative_to(package)))
    assert knowing <= {"serve/deployment.py", "distributed.py"}


def test_every_error_of_the_library_has_a_row():
    kinds = {k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.CrenelError)}
    assert kinds == set(TABLE)
    assert all(400 <= row.status < 600 and row.title for row in TABLE.values())


def test_logs_name_only_what_is_allowed():
    from crenel.serve.observe import FIELDS

    for file in SERVE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "log":
                assert {k.arg for k in node.keywords} <= FIELDS, (file, node.lineno)
