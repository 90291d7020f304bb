"""One large key file, its connection cut at random points: does it resume to the same bytes?

python bench/service/upload.py --gib 1 --cuts 20 --json bench/results/service-upload.json
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import operator
import os
import tempfile
import time
from pathlib import Path

import common
import httpx
import numpy as np

from crenel import ckks
from crenel.serve import Function, running

PIECE = 1 << 20


def measure(given: argparse.Namespace) -> dict:
    seed = int(np.random.default_rng().integers(2**32)) if given.seed is None else given.seed
    rng = np.random.default_rng(seed)
    size = int(given.gib * (1 << 30))
    served = _program(size)
    with tempfile.TemporaryDirectory() as folder:
        path, digest = Path(folder) / "keys", hashlib.sha256()
        with path.open("wb") as file:
            for k in range(0, size, PIECE):
                piece = rng.bytes(min(PIECE, size - k))
                digest.update(piece)
                file.write(piece)
        settings = common.settings(folder, chunk_bytes=size)
        with running([served], settings) as service, httpx.Client(base_url=service.url, timeout=120) as http:
            http.headers["Authorization"] = f"Bearer {service.token}"
            http.headers["Tus-Resumable"] = "1.0.0"
            found = _sent(http, path, size, served.program, digest.hexdigest(), rng, given.cuts)
            stored = hashlib.sha256()
            for piece in service.service.blobs.pieces(f"keys/{digest.hexdigest()}"):
                stored.update(piece)
            server = common.resident_bytes(os.getpid())
    return found | {
        "seed": seed,
        "bytes": size,
        "equal_hash": stored.hexdigest() == digest.hexdigest(),
        "server_and_client_resident_bytes": server,
    }


def _program(size: int) -> Function:
    """One whose keys may be as large: no larger file is taken."""
    params = ckks.preset("leveled-n14-s40")
    most = params.slots - 1
    steps = min(most, 1 + 2 * size // params.key_bytes(relinearisation=False, rotations=[1]))
    never = operator.is_  # called with no job: what is sent are no keys
    return Function("wide", params, never, rotations=tuple(range(1, steps + 1)))


def _sent(
    http: httpx.Client, path: Path, size: int, program: str, sha256: str, rng: np.random.Generator, cuts: int
) -> dict:
    names = {"program": program, "sha256": sha256}
    metadata = ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in names.items())
    made = http.post("/keys/uploads", headers={"Upload-Length": str(size), "Upload-Metadata": metadata})
    place, offset, start, kept, again = made.headers["Location"], 0, time.monotonic(), [], 0
    stops = [*sorted(rng.integers(1, size, cuts).tolist()), size]
    for stop in stops:
        if stop <= offset:
            continue
        headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)}
        headers["Content-Length"] = str(size - offset)
        with contextlib.suppress(httpx.TransportError, ConnectionError):
            http.patch(place, headers=headers, content=_until(path, offset, stop, stop < size))
        end = time.monotonic() + 5
        while True:  # the server writes what arrived before it notices the cut
            stands = int(http.head(place).headers["Upload-Offset"])
            if stands > offset or time.monotonic() > end:
                break
            time.sleep(0.05)
        kept.append(stands)
        again += max(0, stop - stands)
        offset = stands
    assert offset == size
    return {
        "cuts": cuts,
        "seconds": round(time.monotonic() - start, 2),
        "sent_again_bytes": again,
        "stood_at": kept,
    }


def _until(path: Path, start: int, stop: int, cut: bool):
    with path.open("rb") as file:
        file.seek(start)
        while start < stop:
            piece = file.read(min(PIECE, stop - start))
            start += len(piece)
            yield piece
    if cut:
        raise ConnectionError("cut")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int)


if __name__ == "__main__":
    common.main("upload", measure, options)
