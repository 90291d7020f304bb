"""Files edited, with checksums that are right: what comes out is what the edit makes of them."""

import hashlib
import json
import struct


def parts(data: bytes) -> tuple[dict, bytes]:
    """Header and payload."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def assembled(header: dict, payload: bytes) -> bytes:
    """The file of both."""
    meta = header["__metadata__"]
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            meta[f"sha256:{name}"] = hashlib.sha256(payload[begin:end]).hexdigest()
    meta["header_sha256"] = "0" * 64
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256(text).hexdigest()
    text = text.replace(b'"header_sha256":"' + b"0" * 64, b'"header_sha256":"' + digest.encode())
    return struct.pack("<Q", len(text)) + text + payload


def resealed(data: bytes, key: str, value: str) -> bytes:
    """The file with another value of this metadata."""
    header, payload = parts(data)
    assert key in header["__metadata__"]
    header["__metadata__"][key] = value
    return assembled(header, payload)
