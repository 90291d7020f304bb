"""Key files on their way to a service: in chunks with checksums, from where an earlier upload stopped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, TypeAlias

from crenel.errors import NotFoundError, SerializationError, StateError
from crenel.progress_bar import Bar, Callback

if TYPE_CHECKING:
    import httpx

TUS = "1.0.0"
CHUNK = 4 << 20
SENDING = "sending keys"
Place: TypeAlias = tuple[str, str, "str | None"]  # program, hash of the keys, hash of those they replace


def hash_of(file: IO[bytes]) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in iter(lambda: file.read(1 << 20), b""):
        digest.update(piece)
    return digest.hexdigest()


class Upload:
    """A key file on its way in chunks, each with its checksum.

    Parameters
    ----------
    request : `crenel.client.Service.request`
    file, size, what : the keys
    most : bytes of a chunk, as the service says
    places : of uploads that have not ended
    """

    def __init__(
        self,
        request: Callable[..., httpx.Response],
        file: IO[bytes],
        size: int,
        what: Place,
        most: int,
        places: dict[Place, str],
    ) -> None:
        self._request, self._file, self._size, self._what, self._places = request, file, size, what, places
        program, key, replaces = what
        names = {"program": program, "sha256": key} | ({"replaces": replaces} if replaces else {})
        self._metadata = ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in names.items())
        self._chunk = min(CHUNK, most)

    def send(self, told: Callback | None) -> None:
        """All of it; from where an earlier one stopped."""
        if told:
            told(0, self._size, SENDING)
        place, offset = self._place()
        while offset < self._size:
            if told and offset:
                told(offset, self._size, SENDING)
            offset = self._next(place, offset)
        self._places.pop(self._what, None)

    def _place(self) -> tuple[str, int]:
        """Of an upload that was begun, where it stands; else of a new one."""
        headers = {"Tus-Resumable": TUS}
        if known := self._places.get(self._what):
            try:
                answer = self._request("HEAD", known, headers=headers)
                return known, int(answer.headers["Upload-Offset"])
            except NotFoundError:  # its time was over, or its bytes had another hash
                del self._places[self._what]
        headers |= {"Upload-Length": str(self._size), "Upload-Metadata": self._metadata}
        place: str = self._request("POST", "/keys/uploads", headers=headers).headers["Location"]
        self._places[self._what] = place
        return place, 0

    def _next(self, place: str, offset: int) -> int:
        self._file.seek(offset)
        data = self._file.read(min(self._chunk, self._size - offset))
        if not data:  # the service would wait for the rest for ever
            raise SerializationError(
                f"the key file ends before byte {offset}, expected {self._size} bytes: it was changed while "
                "it was sent",
                {"found": self._file.seek(0, 2), "expected": self._size},
            )
        headers = {
            "Tus-Resumable": TUS, "Upload-Offset": str(offset),
            "Content-Type": "application/offset+octet-stream",
            "Upload-Checksum": f"sha256 {base64.b64encode(hashlib.sha256(data).digest()).decode()}",
        }  # fmt: skip
        try:
            answer = self._request("PATCH", place, content=data, headers=headers)
        except StateError:  # the answer to an earlier try was lost: the service knows where it stands
            answer = self._request("HEAD", place, headers={"Tus-Resumable": TUS})
        return int(answer.headers["Upload-Offset"])


@contextmanager
def telling(progress: bool | Callback) -> Iterator[Callback | None]:
    """Whom the block tells how far it is; a bar ends with it."""
    if not (isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be a bool or a function, got {type(progress).__name__}")
    if progress is not True:
        yield progress or None
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()
