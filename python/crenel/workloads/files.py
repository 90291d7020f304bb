"""Opening what a user names: an error of the operating system becomes one of the library's."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from crenel.errors import FileError, _file_error


def refused(what: str, path: Path, error: OSError) -> FileError:
    """Of an error of the operating system: "cannot WHAT PATH", of the class that Python has for the cause."""
    number = error.errno or 0
    return _file_error(number)(
        f"cannot {what} {path}: {error.strerror or error}", {"errno": number, "filename": str(path)}
    )


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, to be read. Raises FileError, of the class that Python has for the cause too."""
    try:
        file = path.open("rb")
    except ValueError as error:  # a name with a zero byte, which no file has
        raise _file_error(errno.EINVAL)(
            f"cannot read {str(path)!r}: {error}", {"errno": errno.EINVAL, "filename": str(path)}
        ) from None
    except OSError as error:
        raise refused("read", path, error) from None
    with file:
        yield file
