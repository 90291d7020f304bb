"""The Boolean circuits of the demo, in the clear: S-boxes against tables, ciphers against test vectors."""

import numpy as np
import pytest

from crenel.workloads.ciphers import aes, present, sboxes
from crenel.workloads.ciphers.circuit import Bits, Clear, concatenate, count_gates, evaluate, rotate


def all_inputs(bits: int) -> list[Bits]:
    values = np.arange(1 << bits)
    return [Bits.of((values >> i & 1).astype(bool)) for i in range(bits)]


def table_of(outputs: list[Bits]) -> list[int]:
    arrays = evaluate(outputs, Clear())
    return sum(a.astype(int) << i for i, a in enumerate(arrays)).tolist()


def aes_table() -> list[int]:
    """SubBytes by its definition: inversion by search, then the affine map bit by bit (FIPS-197, 5.1.1)."""

    def times(a: int, b: int) -> int:
        product = 0
        for i in range(8):
            product ^= (a << i) * (b >> i & 1)
        for i in range(14, 7, -1):
            product ^= (0x11B << (i - 8)) * (product >> i & 1)
        return product

    table = []
    for x in range(256):
        inverse = next((y for y in range(256) if times(x, y) == 1), 0)
        bit = [inverse >> i & 1 for i in range(8)]
        out = [
            bit[i] ^ bit[(i + 4) % 8] ^ bit[(i + 5) % 8] ^ bit[(i + 6) % 8] ^ bit[(i + 7) % 8]
            for i in range(8)
        ]
        table.append(sum(b << i for i, b in enumerate(out)) ^ 0x63)
    return table


def test_aes_sbox():
    expected = aes_table()
    assert (expected[0], expected[0x53], expected[0xFF]) == (0x63, 0xED, 0x16)  # FIPS-197, figure 7
    outputs = sboxes.aes_sbox(all_inputs(8))
    assert count_gates(outputs) == 120 * 256
    assert table_of(outputs) == expected


def test_present_sbox():
    outputs = sboxes.present_sbox(all_inputs(4))
    assert count_gates(outputs) == 15 * 16
    assert table_of(outputs) == list(sboxes.PRESENT_TABLE)


def test_aes_vectors(rng):
    """FIPS-197, appendices B and C.1, side by side with blocks of their own keys."""
    keys = [aes.TEST_KEY, bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")]
    texts = [aes.TEST_PLAINTEXT, bytes.fromhex("3243f6a8885a308d313198a2e0370734")]
    done = []
    planes = [aes.to_bits(x).reshape(8, -1) for x in (texts, keys)]
    result = aes.encrypt(list(planes[0]), list(planes[1]), Clear(), done.append)
    found = aes.from_bits(np.array(result))
    assert found == [aes.TEST_CIPHERTEXT, bytes.fromhex("3925841d02dc09fbdc118597196a0b32")]
    assert sum(done) == aes.gate_count(2) == 2 * aes.gate_count()


def test_present_vectors():
    """The four vectors of the cipher's paper, appendix I."""
    zeros, ones = bytes(8), b"\xff" * 8
    texts, keys = [zeros, zeros, ones, ones], [bytes(10), b"\xff" * 10, bytes(10), b"\xff" * 10]
    bits = [present.to_bits(x).reshape(-1) for x in (texts, keys)]
    done = []
    result = present.encrypt(*bits, Clear(), done.append)
    found = [block.hex() for block in present.from_bits(result.reshape(64, -1))]
    assert found == ["5579c1387b228445", "e72c46c0f5945049", "a112ffc72f68417b", "3333dcd3213210d2"]
    assert sum(done) == present.gate_count(4) == 4 * present.gate_count()


def test_blocks_survive_the_layouts(rng):
    for cipher, size in ((aes, 16), (present, 8), (present, 10)):
        blocks = [rng.bytes(size) for _ in range(5)]
        assert cipher.from_bits(cipher.to_bits(blocks)) == blocks


def test_gates_of_a_level_are_one_call():
    calls = []

    class Counting(Clear):
        def gate(self, kind, a, b):
            calls.append((kind, len(a)))
            return super().gate(kind, a, b)

    x, y = (Bits.of(np.array(v, dtype=bool)) for v in ([0, 0, 1, 1], [0, 1, 0, 1]))
    both, either = x & y, x | y
    one = either & ~both
    found = evaluate([one, rotate(concatenate([one[:2], both]), 1)], Clear())
    np.testing.assert_array_equal(found[0], [0, 1, 1, 0])
    np.testing.assert_array_equal(found[1], [1, 0, 0, 0, 1, 0])

    a, b = (Bits.of(np.array(v, dtype=bool)) for v in ([0, 1], [1, 1]))
    evaluate([(a & b) ^ (a | b), (~a & b) ^ b], Counting())
    assert calls == [("and", 4), ("or", 2), ("xor", 4)]
    assert count_gates([one]) == 0  # computed already


@pytest.mark.parametrize(
    "wrong", [lambda b: b & b[:1], lambda b: b[::2], lambda b: b[2:2], lambda b: b[3:]], ids="abcd"
)
def test_mistakes_are_refused(wrong):
    with pytest.raises(ValueError):
        wrong(Bits.of(np.zeros(3, dtype=bool)))
