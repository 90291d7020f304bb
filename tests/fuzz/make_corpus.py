"""Writes the hostile files of tests/fuzz/corpus, each a few hundred bytes; standard library only."""

import pathlib
import struct

META = b'"__metadata__":{"format":"crenel","format_version":"2","kind":"ciphertext"}'


def container(header: bytes, payload: bytes = b"") -> bytes:
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + payload


def entry(name: bytes, begin: bytes, end: bytes, dtype: bytes = b"U8", shape: bytes = b"[8]") -> bytes:
    return b'"%s":{"dtype":"%s","shape":%s,"data_offsets":[%s,%s]}' % (name, dtype, shape, begin, end)


def tensors(*entries: bytes, payload: bytes = bytes(16)) -> bytes:
    return container(b"{" + b",".join((META, *entries)) + b"}", payload)


def keys(*extra: bytes, tensor: bytes) -> bytes:
    """Evaluation keys of the wire parameters; the fuzzer's entry fills in the checksums."""
    zero = b"0" * 64
    fields = (
        b'"digits":"3","format":"crenel","format_version":"2","header_sha256":"%s"' % zero,
        b'"kind":"evaluation_keys","library_version":"0.1.0"',
        b'"params_id":"740238a5403456c8b12d34d0348a98f0","secret_key_id":"%s"'
        % bytes(range(16)).hex().encode(),
        b'"sha256:%s":"%s"' % (tensor, zero),
    )
    meta = b'"__metadata__":{%s}' % b",".join((*fields, *extra))
    return container(b"{" + meta + b"," + entry(tensor, b"0", b"0", b"U32", b"[1,0,1024]") + b"}")


BIG = b"18446744073709551615"
WEIGHT = b'"encapsulation_weight":"32"'
FILES = {
    "empty": b"",
    "short-length": b"\0" * 7,
    "zero-length": bytes(8),
    "length-max": b"\xff" * 8 + b"{}",
    "length-wraps": struct.pack("<Q", 2**64 - 8) + b"{}      ",
    "length-2-63": struct.pack("<Q", 2**63) + b"{}      ",
    "length-beyond-file": struct.pack("<Q", 4096) + b"{}      ",
    "length-odd": struct.pack("<Q", 2) + b"{}",
    "deep-arrays": container(b"[" * 4096),
    "deep-objects": container(b'{"a":' * 512),
    "deep-shape": container(b'{"a":{"shape":' + b"[" * 512),
    "not-utf8": container(b'{"__metadata__":{"format":"cren\xffl"}}'),
    "utf8-surrogate": container(b'{"__metadata__":{"format":"\xed\xa0\x80"}}'),
    "utf8-overlong": container(b'{"__metadata__":{"format":"\xc0\x80"}}'),
    "escape-half-pair": container(b'{"__metadata__":{"format":"\\ud800"}}'),
    "escape-nul-name": container(b'{"__metadata__":{"\\u0000":"\\u0000"}}'),
    "control-character": container(b'{"__metadata__":{"a":"\x01"}}'),
    "no-metadata": container(b"{}"),
    "metadata-twice": container(b"{" + META + b"," + META + b"}"),
    "metadata-number": container(b'{"__metadata__":{"format":1}}'),
    "metadata-list": container(b'{"__metadata__":[]}'),
    "future-version": container(b'{"__metadata__":{"format":"crenel","format_version":"3"}}'),
    "past-version": container(b'{"__metadata__":{"format":"crenel","format_version":"1"}}'),
    "other-format": container(b'{"__metadata__":{"format":"pt"}}'),
    "after-end": container(b"{" + META + b"}x"),
    "newline-padding": container(b"{" + META + b"}\n"),
    "duplicate-tensor": tensors(entry(b"a", b"0", b"8"), entry(b"a", b"8", b"16")),
    "duplicate-escaped": tensors(entry(b"a", b"0", b"8"), entry(b"\\u0061", b"8", b"16")),
    "overlap": tensors(entry(b"a", b"0", b"8"), entry(b"b", b"4", b"12")),
    "same-range": tensors(entry(b"a", b"0", b"8"), entry(b"b", b"0", b"8")),
    "hole": tensors(entry(b"a", b"0", b"8"), entry(b"b", b"9", b"17"), payload=bytes(17)),
    "reversed-range": tensors(entry(b"a", b"8", b"0")),
    "negative-offset": tensors(entry(b"a", b"-8", b"0")),
    "huge-offset": tensors(entry(b"a", BIG, BIG)),
    "offset-overflow": tensors(entry(b"a", b"0", b"18446744073709551616")),
    "offset-wraps": tensors(entry(b"a", b"18446744073709551608", b"0")),
    "fraction": tensors(entry(b"a", b"0.0", b"8e0")),
    "leading-zero": tensors(entry(b"a", b"00", b"08")),
    "shape-overflow": tensors(entry(b"a", b"0", b"0", b"U64", b"[%s,%s]" % (BIG, BIG))),
    "shape-wraps-to-zero": tensors(entry(b"a", b"0", b"0", b"U32", b"[4294967296,1073741824]")),
    "shape-nested": tensors(entry(b"a", b"0", b"8", b"U8", b"[[8]]")),
    "shape-rank-9": tensors(entry(b"a", b"0", b"8", b"U8", b"[1,1,1,1,1,1,1,1,8]")),
    "dtype-unknown": tensors(entry(b"a", b"0", b"8", b"F64", b"[1]")),
    "dtype-twice": tensors(b'"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}'),
    "entry-empty": tensors(b'"a":{}'),
    "entry-extra": tensors(b'"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1}'),
    "three-offsets": tensors(b'"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8,8]}'),
    "trailing-bytes": tensors(entry(b"a", b"0", b"8")),
    "truncated-payload": tensors(entry(b"a", b"0", b"8"), payload=bytes(7)),
    "trailing-comma": container(b"{" + META + b",}"),
    "single-quotes": container(b"{'__metadata__':{}}"),
    "comment": container(b"{/**/" + META + b"}"),
    "byte-order-mark": container(b"\xef\xbb\xbf{" + META + b"}"),
    "literal-null": tensors(b'"a":null'),
    "encapsulation-empty": keys(WEIGHT, tensor=b"encapsulation/dense_to_sparse/b"),
    "encapsulation-half": keys(WEIGHT, tensor=b"encapsulation/sparse_to_dense/b"),
    "encapsulation-no-weight": keys(tensor=b"encapsulation/dense_to_sparse/b"),
    "encapsulation-weight-only": keys(WEIGHT, tensor=b"relinearisation/b"),
}


def main() -> None:
    folder = pathlib.Path(__file__).parent / "corpus"
    folder.mkdir(exist_ok=True)
    for name, data in FILES.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
