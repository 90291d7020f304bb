"""The measurements that figures rest on, small enough to be kept in the repository: profiles-h200.tar.xz.

usage: pack fhecore-sim.tar.gz [--out FILE]

collect.py's tar without logs and without counters that no step reads, each file plain inside one xz stream,
every header alike: the same measurements give the same bytes. `ingest` without a tar takes the committed one,
so that calibration, validation and predictions can be computed again without a GPU.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path

from . import params, profiles

COMMITTED = params.DATA / "profiles-h200.tar.xz"
LIMIT_BYTES = 5_000_000
# What calibrate, validate and compose open; those with .gz are plain in the archive.
FILES = (
    "facts.json", "micro.jsonl", "micro.sass.gz", "micro.usage.txt", "null.csv", "unit-check.json",
    "unit.cases.json", "unit.profile.json.gz", "unit.sass.gz", "unit.usage.txt",
    "kernels.cases.json", "kernels.profile.json.gz", "operations.cases.json", "operations.profile.json.gz",
    "heldout.sass.gz", "heldout.usage.txt", "times.json", "bootstrap.csv.gz", "bootstrap.account.json",
)  # fmt: skip
COUNTERS = ("inst_executed", "memory_l2_theoretical_sectors_global", "memory_l1_wavefronts_shared")


class ArchiveError(ValueError):
    """A tar that lacks a file, or an archive that would be too large; the message names it."""


def content(path: Path) -> bytes:
    """A file as it is kept: unpacked, a profile with the counters by instruction that are read."""
    if path.suffix != ".gz":
        return path.read_bytes()
    with gzip.open(path) as file:
        data = file.read()
    if not path.name.endswith(".profile.json.gz"):
        return data
    profile = json.loads(data)
    for entry in profile["launches"]:
        entry["by_pc"] = {name: rows for name, rows in entry["by_pc"].items() if name in COUNTERS}
    return json.dumps(profile, separators=(",", ":")).encode()


def pack(tar: Path, out: Path, limit: int = LIMIT_BYTES) -> int:
    """Bytes of the archive written. ArchiveError, and nothing written, where a file is missing or the archive
    is larger than `limit`."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="fhecore-") as work:
        folder = profiles.unpack(tar, Path(work))
        missing = [name for name in FILES if not (folder / name).exists()]
        if missing:
            raise ArchiveError(f"{tar}: lacks {', '.join(missing)}: collect again, a step failed")
        with tarfile.open(fileobj=buffer, mode="w:xz", preset=9, format=tarfile.USTAR_FORMAT) as archive:
            for name in FILES:
                data = content(folder / name)
                member = tarfile.TarInfo(name.removesuffix(".gz"))  # no time, no owner
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    size = buffer.getbuffer().nbytes
    if size > limit:
        raise ArchiveError(f"{out}: {size} bytes, expected at most {limit}")
    out.write_bytes(buffer.getvalue())
    return size


def unpack(tar: Path, folder: Path) -> Path:
    """The files of an archive or of collect.py's tar, named and compressed as the readers expect them."""
    profiles.unpack(tar, folder)
    for name in FILES:
        plain = folder / name.removesuffix(".gz")
        if name.endswith(".gz") and plain.exists():
            with gzip.open(folder / name, "wb", compresslevel=1) as file:
                file.write(plain.read_bytes())
            plain.unlink()
    return folder


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.sim pack", description=__doc__.splitlines()[0])
    parser.add_argument("tar", type=Path)
    parser.add_argument("--out", type=Path, default=COMMITTED)
    args = parser.parse_args(arguments)
    try:
        size = pack(args.tar, args.out)
    except ArchiveError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{args.out}: {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
