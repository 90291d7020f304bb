"""tus, verb by verb: literal requests and answers."""

from __future__ import annotations

import numpy as np
import pytest
from service_world import CHUNK, TUS, World, checksum, made, metadata, problem, sha

DATA = bytes(range(200))  # no key file: what it is comes later


def test_options(world: World):
    answer = world.http.options("/keys/uploads")
    assert answer.status_code == 204
    assert answer.headers["tus-version"] == answer.headers["tus-resumable"] == "1.0.0"
    assert answer.headers["tus-extension"] == "creation,checksum,termination,expiration"
    assert answer.headers["tus-checksum-algorithm"] == "sha256"
    assert answer.headers["tus-max-size"] == str(world.settings.key_bytes)


def test_create_head_patch_delete(world: World):
    place = world.begin(DATA)
    assert place.startswith("/keys/uploads/")
    stands = world.ask("HEAD", place, headers=TUS)
    assert (stands.status_code, stands.headers["upload-offset"], stands.headers["upload-length"]) == (
        200,
        "0",
        "200",
    )
    assert stands.headers["cache-control"] == "no-store" and "upload-expires" in stands.headers
    answer = world.patch(place, 0, DATA[:70])
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, "70")
    assert "crenel-key" not in answer.headers
    assert world.ask("HEAD", place, headers=TUS).headers["upload-offset"] == "70"
    assert world.patch(place, 70, DATA[70:], **{"Upload-Checksum": checksum(DATA[70:])}).headers[
        "crenel-key"
    ] == sha(DATA)
    finished = world.ask("HEAD", place, headers=TUS)
    assert (finished.headers["upload-offset"], finished.headers["crenel-key"]) == ("200", sha(DATA))
    assert world.ask("DELETE", place, headers=TUS).status_code == 204
    assert world.ask("HEAD", place, headers=TUS).status_code == 404
    assert world.ask("GET", f"/keys/{sha(DATA)}").json()["bytes"] == 200  # the file outlives its upload


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Upload-Length": "10", "Upload-Metadata": ""}, 400, "ParameterError"),
        ({"Upload-Length": "10", "Upload-Metadata": metadata("xyz")}, 400, "ParameterError"),
        ({"Upload-Length": "10", "Upload-Metadata": "program !"}, 400, "ParameterError"),
        ({"Upload-Length": "0", "Upload-Metadata": metadata(DATA)}, 400, "ParameterError"),
        ({"Upload-Length": "-1", "Upload-Metadata": metadata(DATA)}, 400, "ParameterError"),
        ({"Upload-Length": "ten", "Upload-Metadata": metadata(DATA)}, 400, "ParameterError"),
        ({"Upload-Length": str(2**63), "Upload-Metadata": metadata(DATA)}, 400, "ParameterError"),
        ({"Upload-Metadata": metadata(DATA)}, 400, "ParameterError"),
        ({"Upload-Length": "10"}, 400, "ParameterError"),
        ({"Upload-Length": "10", "Upload-Metadata": metadata(DATA, program="0" * 64)}, 404, "NotFoundError"),
        ({"Upload-Length": str(2**40), "Upload-Metadata": metadata(DATA)}, 413, "LimitError"),
    ],
)
def test_creations_that_are_refused(world: World, headers, status, code):
    problem(world.ask("POST", "/keys/uploads", headers=TUS | headers), status, code)


def test_patches_that_are_refused(world: World):
    place = world.begin(DATA)
    assert world.patch(place, 0, DATA[:50]).status_code == 204
    found = problem(world.patch(place, 0, DATA[:50]), 409, "StateError")
    assert found["fields"]["offset"] == 50
    problem(world.patch(place, 60, DATA[60:]), 409, "StateError")
    problem(world.patch(place, 50, DATA + DATA), 413, "LimitError")
    problem(
        world.patch(place, 50, DATA[50:], **{"Upload-Checksum": checksum(b"other")}),
        460,
        "SerializationError",
    )
    problem(world.patch(place, 50, DATA[50:], **{"Upload-Checksum": "md5 aaaa"}), 400, "ParameterError")
    problem(world.patch(place, 50, DATA[50:], **{"Content-Type": "text/plain"}), 415, "ParameterError")
    problem(world.ask("PATCH", place, headers={"Upload-Offset": "50"}, content=b"x"), 412, "ParameterError")
    problem(world.ask("PATCH", place, headers=CHUNK, content=b"x"), 400, "ParameterError")
    assert world.ask("HEAD", place, headers=TUS).headers["upload-offset"] == "50"
    assert world.patch(place, 50, DATA[50:]).headers["crenel-key"] == sha(DATA)


def test_a_file_of_another_hash_is_gone(world: World):
    headers = TUS | {"Upload-Length": "200", "Upload-Metadata": metadata("0" * 64)}
    place = world.ask("POST", "/keys/uploads", headers=headers).headers["location"]
    problem(world.patch(place, 0, DATA), 422, "SerializationError")
    assert world.ask("HEAD", place, headers=TUS).status_code == 404
    assert world.ask("GET", "/keys").json() == {"keys": []}
    assert not list((world.folder / "data").rglob("uploads/*"))  # no chunk stays


def test_limits_of_a_tenant(world: World):
    world.restart(uploads=2, stored_key_bytes=500)
    world.begin(DATA)
    world.begin(DATA)
    headers = TUS | {"Upload-Length": "200", "Upload-Metadata": metadata(DATA)}
    problem(world.ask("POST", "/keys/uploads", headers=headers), 429, "LimitError")
    assert world.ask("POST", "/keys/uploads", "bob", headers=headers).status_code == 201
    world.restart(uploads=9)
    problem(world.ask("POST", "/keys/uploads", headers=headers), 429, "LimitError")  # 600 bytes


def test_uploads_end_by_themselves(world: World):
    world.restart(upload_ttl=1.0)
    place = world.begin(DATA)
    world.patch(place, 0, DATA[:10])
    blobs = world.folder / "data" / "uploads"
    assert len(list(blobs.iterdir())) == 1
    late = world.service.uploads
    import crenel.serve.uploads as module

    now = module.time.time
    try:
        module.time.time = lambda: now() + 10  # type: ignore[assignment]
        assert world.ask("HEAD", place, headers=TUS).status_code == 404
        assert late.expire() == 1
    finally:
        module.time.time = now  # type: ignore[assignment]
    assert not list(blobs.iterdir())


def test_cut_at_random_points_it_resumes_to_the_same_file(world: World, request):
    """Connections that break within the body: what arrived stays, but where a checksum was to prove it."""
    seed = int(np.random.default_rng().integers(2**32))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    data = rng.bytes(3 << 20)
    place, offset = world.begin(data), 0
    for cut in sorted(rng.integers(1, len(data), 20).tolist()):
        if cut <= offset:
            continue

        def broken(stop=cut, start=offset):
            for k in range(start, stop, 100_000):
                yield data[k : min(stop, k + 100_000)]
            raise ConnectionError("cut")

        proven = bool(rng.integers(2))
        more = {"Upload-Checksum": checksum(data[offset:])} if proven else {}
        _cut(world, place, offset, broken(), more)
        stands = int(world.ask("HEAD", place, headers=TUS).headers["upload-offset"])
        assert stands == (offset if proven else cut)
        offset = stands
    answer = world.patch(place, offset, data[offset:], **{"Upload-Checksum": checksum(data[offset:])})
    assert answer.headers["crenel-key"] == sha(data)
    assert world.service.blobs.read(f"keys/{sha(data)}") == data


def _cut(world: World, place: str, offset: int, pieces, more: dict[str, str]) -> None:
    """A PATCH whose connection breaks where the pieces end: the ASGI server says http.disconnect then."""
    import anyio

    headers = (
        CHUNK | {"Upload-Offset": str(offset), "Authorization": f"Bearer {world.tokens['alice']}"} | more
    )
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "PATCH", "path": place,
        "raw_path": place.encode(), "root_path": "", "scheme": "http", "query_string": b"",
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip

    async def receive():
        try:
            return {"type": "http.request", "body": next(pieces), "more_body": True}
        except ConnectionError:
            return {"type": "http.disconnect"}

    async def send(message):
        pass

    anyio.run(world.http.app, scope, receive, send)


def test_two_senders_of_one_chunk(world: World):
    """One wins; the other is told where the upload stands, and nothing is there twice."""
    uploads, tenant = world.service.uploads, world.service.auth.tenant(f"Bearer {world.tokens['alice']}")
    place = world.begin(DATA)
    found = uploads.expect(tenant, place.rsplit("/", 1)[1], 0)
    for name in ("first", "second"):
        world.service.blobs.write(f"uploads/{found.id}/{name}", [DATA])
    assert uploads.append(tenant, found, f"uploads/{found.id}/first", 200).finished
    with pytest.raises(Exception, match="another request"):
        uploads.append(tenant, found, f"uploads/{found.id}/second", 200)
    assert world.service.blobs.read(f"keys/{sha(DATA)}") == DATA


def test_finishing_goes_on_where_a_server_died(world: World, monkeypatch):
    place = world.begin(DATA)
    monkeypatch.setattr(
        type(world.service.uploads), "finish", lambda self, tenant, upload: self.get(tenant, upload)
    )
    assert "crenel-key" not in world.patch(place, 0, DATA).headers
    monkeypatch.undo()
    world.restart()
    assert world.ask("HEAD", place, headers=TUS).headers["crenel-key"] == sha(DATA)
    assert made().program.fingerprint == world.ask("GET", f"/keys/{sha(DATA)}").json()["program"]
