#!/usr/bin/env python3
"""Known-answer vectors for the kernels, from Python integers alone (no code shared with the library).

Everything is evaluated from its definition: polynomials by Horner's rule at powers of psi, base
conversion as one big centred integer, division as one exact integer division, ChaCha20 from RFC 8439.
Small cases are written in full, large ones as SHA-256 of the little-endian words.

    python3 generate.py            # writes *.txt beside this file
    python3 generate.py --check    # exits 1 when a file differs

Format: `case NAME`, then lines `key value ...`, then `end`. Vectors are [batch][component][limb][N].
"""

import hashlib
import pathlib
import sys
from functools import cache

HERE = pathlib.Path(__file__).parent

# --- a reproducible source of inputs: splitmix64 ---------------------------------------------------
MASK64 = (1 << 64) - 1


class SplitMix:
    def __init__(self, state):
        self.state = state & MASK64

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK64
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
        return z ^ (z >> 31)


def random_limbs(seed, primes, n):
    """Limb l, coefficient i = next() mod q_l, in that order."""
    source = SplitMix(seed)
    return [[source.next() % q for _ in range(n)] for q in primes]


# --- ring ------------------------------------------------------------------------------------------
def reverse_bits(i, bits):
    return int(format(i, f"0{bits}b")[::-1], 2) if bits else 0


@cache
def smallest_root(q, n):
    """Smallest primitive 2n-th root of unity modulo q."""
    x = 2
    while pow(pow(x, (q - 1) // (2 * n), q), n, q) != q - 1:
        x += 1
    root = pow(x, (q - 1) // (2 * n), q)
    return min(pow(root, k, q) for k in range(1, 2 * n, 2))


def evaluate_all(coefficients, q):
    """Element i = a(psi^(2 brev(i) + 1)); values by divide and conquer on even and odd coefficients."""
    n = len(coefficients)
    bits = n.bit_length() - 1
    psi = smallest_root(q, n)

    if n <= 64:  # straight from the definition
        out = []
        for i in range(n):
            x = pow(psi, 2 * reverse_bits(i, bits) + 1, q)
            value = 0
            for c in reversed(coefficients):
                value = (value * x + c) % q
            out.append(value)
        return out

    def halves(a, root):
        """[a(root^(2k+1)) for k in 0..len(a)-1], root a primitive 2 len(a)-th root."""
        m = len(a)
        if m == 1:
            return [a[0] % q]
        even = halves(a[0::2], root * root % q)
        odd = halves(a[1::2], root * root % q)
        out = []
        x = root
        step = root * root % q
        for k in range(m):
            out.append((even[k % (m // 2)] + x * odd[k % (m // 2)]) % q)
            x = x * step % q
        return out

    natural = halves(list(coefficients), psi)
    return [natural[reverse_bits(i, bits)] for i in range(n)]


def interpolate_all(values, q):
    """Inverse of evaluate_all: a_j = n^-1 sum_k a(psi^(2k+1)) psi^(-j(2k+1))."""
    n = len(values)
    bits = n.bit_length() - 1
    psi_inv = pow(smallest_root(q, n), -1, q)
    natural = [values[reverse_bits(k, bits)] for k in range(n)]
    n_inv = pow(n, -1, q)
    out = []
    for j in range(n):
        x = pow(psi_inv, j, q)
        step = x * x % q
        total = 0
        for v in natural:
            total += v * x
            x = x * step % q
        out.append(total * n_inv % q)
    return out


def automorphism(coefficients, element, q):
    n = len(coefficients)
    out = [0] * n
    for i, c in enumerate(coefficients):
        e = i * element % (2 * n)
        out[e % n] = c if e < n else (-c) % q
    return out


# --- rns ---------------------------------------------------------------------------------------------
def centred(x, q):
    x %= q
    return x - q if x > (q - 1) // 2 else x


def product(values):
    result = 1
    for v in values:
        result *= v
    return result


def convert(residues, source, destination, factor=1):
    """One coefficient: the integer sum of y_j D/d_j, modulo the destination; and the integer."""
    d_all = product(source)
    total = 0
    for x, d in zip(residues, source, strict=False):
        hat = d_all // d
        total += centred(x * factor * pow(hat, -1, d), d) * hat
    return [total % p for p in destination], total


def quotient(residues, source, factor=1):
    """The multiple of D that a division takes off: sum_j y_j / d_j, by reciprocals, rounded."""
    if len(source) == 1:
        return 0
    shift = min(56, 30 + min(source).bit_length())
    total = 1 << (shift - 1)
    for x, d in zip(residues, source, strict=False):
        hat = product(source) // d
        total += centred(x * factor * pow(hat, -1, d), d) * ((1 << shift) // d)
    return total >> shift


def base_convert(limbs, source, destination):
    n = len(limbs[0])
    columns = [convert([limb[k] for limb in limbs], source, destination)[0] for k in range(n)]
    return [[columns[k][i] for k in range(n)] for i in range(len(destination))]


def crt(residues, primes):
    q_all = product(primes)
    return (
        sum(r * (q_all // q) * pow(q_all // q, -1, q) for r, q in zip(residues, primes, strict=False)) % q_all
    )


def divide(limbs, source, destination):
    """Coefficient form: y = (A x - rounded remainder of A x) / B, an exact division of integers."""
    n = len(limbs[0])
    dropped = [q for q in source if q not in destination]
    added = [q for q in destination if q not in source]
    a, b = product(added), product(dropped)
    modulus = product(source) * a
    columns = []
    for k in range(n):
        x = crt([limb[k] for limb in limbs], source)
        _, r = convert([x % d for d in dropped], dropped, [], a)
        r -= quotient([x % d for d in dropped], dropped, a) * b
        assert abs(r) <= b * 0.5001
        assert (a * x - r) % b == 0
        y = (a * x - r) // b
        assert modulus % product(destination) == 0
        columns.append([y % p for p in destination])
    return [[columns[k][i] for k in range(n)] for i in range(len(destination))]


# --- ChaCha20 ------------------------------------------------------------------------------------------
def chacha_block(key, counter, nonce):
    """64 bytes; key 32 bytes, nonce 12 bytes (RFC 8439, 2.3)."""

    def word(b, i):
        return int.from_bytes(b[4 * i : 4 * i + 4], "little")

    initial = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    initial += [word(key, i) for i in range(8)] + [counter] + [word(nonce, i) for i in range(3)]
    s = list(initial)

    def rotate(x, r):
        return ((x << r) | (x >> (32 - r))) & 0xFFFFFFFF

    def quarter(a, b, c, d):
        for x, y, z, r in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            s[z] = rotate(s[z] ^ s[x], r)

    for _ in range(10):
        for k in range(4):
            quarter(k, 4 + k, 8 + k, 12 + k)
        for k in range(4):
            quarter(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
    return b"".join(((x + y) & 0xFFFFFFFF).to_bytes(4, "little") for x, y in zip(s, initial, strict=False))


def keystream(key, purpose, serial, first, count):
    nonce = purpose.to_bytes(4, "little") + serial.to_bytes(8, "little")
    return b"".join(chacha_block(key, first + i, nonce) for i in range(count))


def sample_uniform(key, purpose, serial, ids, primes, n):
    out = []
    for p, q in zip(ids, primes, strict=False):
        stream = keystream(key, purpose, serial, p * (n // 4), n // 4)
        out.append([int.from_bytes(stream[16 * i : 16 * i + 16], "little") % q for i in range(n)])
    return out


def sample_ternary(key, purpose, serial, n):
    stream = int.from_bytes(keystream(key, purpose, serial, 0, (n + 255) // 256), "little")
    return [(stream >> (2 * i) & 1) - (stream >> (2 * i + 1) & 1) for i in range(n)]


def sample_error(key, purpose, serial, n):
    stream = keystream(key, purpose, serial, 0, (n + 7) // 8)
    out = []
    for i in range(n):
        x = int.from_bytes(stream[8 * i : 8 * i + 8], "little")
        out.append(bin(x & 0x1FFFFF).count("1") - bin((x >> 21) & 0x1FFFFF).count("1"))
    return out


# --- files ---------------------------------------------------------------------------------------------
TINY = 786433
TERMINAL = [31326209, 35389441, 30539777]
MAIN = [1095761921, 1040842753, 1070727169, 1091043329, 526123009, 533463041]
SPECIAL = [2147352577, 2146959361, 2146041857, 2144468993]


class File:
    def __init__(self, name):
        self.name, self.lines = name, ["# generated by generate.py"]

    def case(self, name, **fields):
        self.lines.append(f"case {name}")
        for key, value in fields.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            self.lines.append(" ".join([key] + [str(v) for v in values]))
        self.lines.append("end")


def flat(limbs):
    return [x for limb in limbs for x in limb]


def digest(limbs):
    return hashlib.sha256(b"".join(x.to_bytes(4, "little") for x in flat(limbs))).hexdigest()


def ntt_file():
    f = File("ntt")
    for n, primes in ((4, [TINY]), (16, [TINY, SPECIAL[0]]), (32, [TERMINAL[0], MAIN[0]])):
        a = random_limbs(n, primes, n)
        out = [evaluate_all(x, q) for x, q in zip(a, primes, strict=False)]
        assert [interpolate_all(x, q) for x, q in zip(out, primes, strict=False)] == a
        f.case(f"small_{n}", n=n, primes=primes, input=flat(a), output=flat(out))
    for n, primes in ((1024, [TERMINAL[1], MAIN[1], SPECIAL[1]]), (4096, [SPECIAL[0], TINY])):
        out = [evaluate_all(x, q) for x, q in zip(random_limbs(n, primes, n), primes, strict=False)]
        f.case(f"large_{n}", n=n, primes=primes, seed=n, output_sha256=digest(out))
    return f


def automorphism_file():
    f = File("automorphism")
    for n, elements in ((8, (1, 3, 5, 7, 9, 11, 13, 15)), (16, (5, 25, 31, 17)), (1024, (5, 2047, 1171))):
        primes = [MAIN[2], SPECIAL[2]]
        a = random_limbs(7 * n, primes, n)
        for e in elements:
            out = [automorphism(x, e, q) for x, q in zip(a, primes, strict=False)]
            outputs = {"output": flat(out)} if n <= 16 else {"output_sha256": digest(out)}
            # Evaluation form: the transform of the result is what the permutation must give.
            evaluated = [evaluate_all(x, q) for x, q in zip(out, primes, strict=False)]
            f.case(
                f"n{n}_e{e}",
                n=n,
                primes=primes,
                seed=7 * n,
                element=e,
                **outputs,
                eval_output_sha256=digest(evaluated),
            )
    return f


def base_convert_file():
    f = File("base_convert")
    cases = [
        ("two_to_one", 4, [TINY, TERMINAL[0]], [MAIN[0]]),
        ("special_to_main", 8, SPECIAL, MAIN[:3]),
        ("main_to_narrow", 8, MAIN, [TINY] + TERMINAL),
        ("one", 8, [SPECIAL[0]], [TINY, SPECIAL[1]]),
    ]
    for name, n, source, destination in cases:
        a = random_limbs(n + len(source), source, n)
        for j, q in enumerate(source):  # edges of centring in the first coefficients
            hat = product(source) // q
            for k, y in enumerate((0, (q - 1) // 2, -(q - 1) // 2)):
                a[j][k] = y * hat % q
        f.case(
            name,
            n=n,
            source=source,
            destination=destination,
            input=flat(a),
            output=flat(base_convert(a, source, destination)),
        )
    a = random_limbs(99, SPECIAL + MAIN[:4], 1024)
    f.case(
        "large",
        n=1024,
        source=SPECIAL + MAIN[:4],
        destination=MAIN[4:] + TERMINAL,
        seed=99,
        output_sha256=digest(base_convert(a, SPECIAL + MAIN[:4], MAIN[4:] + TERMINAL)),
    )
    return f


def divide_file():
    f = File("divide")
    cases = [
        ("mod_down", MAIN[:3] + SPECIAL[:2], MAIN[:3]),
        ("rescale", TERMINAL[:1] + MAIN[:4], TERMINAL[:1] + MAIN[:2]),
        ("rational", MAIN[:4], TERMINAL[:2] + MAIN[:3]),
        ("merged", TERMINAL[:1] + MAIN[:4] + SPECIAL, TERMINAL[1:2] + TERMINAL[:1] + MAIN[:3]),
        ("drop_front", TERMINAL[:2] + MAIN[:2], MAIN[:2]),
    ]
    for name, source, destination in cases:
        for n in (8, 1024):
            a = random_limbs(n + len(source), source, n)
            out = divide(a, source, destination)
            evaluated = [evaluate_all(x, q) for x, q in zip(out, destination, strict=False)]
            full = {"output": flat(evaluated)} if n == 8 else {}
            f.case(
                f"{name}_{n}",
                n=n,
                source=source,
                destination=destination,
                seed=n + len(source),
                output_sha256=digest(evaluated),
                **full,
            )
    return f


def key_switch_file():
    """ModUp of every digit, then the product with a key: evaluation form throughout."""
    f = File("key_switch")
    chain = TERMINAL[:2] + MAIN[:5] + SPECIAL[:3]
    q_count, alpha = 7, 3
    for n, begin, end in ((8, 0, 7), (8, 1, 5), (8, 4, 6), (1024, 2, 7), (1024, 0, 1), (1024, 3, 7)):
        window, special = chain[begin:end], chain[q_count:]
        output = window + special
        a = random_limbs(n + begin, window, n)  # coefficient form
        digits = []
        position = begin
        while position < end:
            stop = min(end, (position // alpha + 1) * alpha)
            source = chain[position:stop]
            others = [q for q in output if q not in source]
            extended = dict(
                zip(others, base_convert(a[position - begin : stop - begin], source, others), strict=False)
            )
            for i in range(position, stop):
                extended[chain[i]] = a[i - begin]
            digits.append([evaluate_all(extended[q], q) for q in output])
            position = stop
        first = begin // alpha
        total_digits = -(-q_count // alpha)
        key_source = SplitMix(5 * n)
        key = [
            [[[key_source.next() % q for _ in range(n)] for q in chain] for _ in range(2)]
            for _ in range(total_digits)
        ]
        result = []
        for c in range(2):
            for q in output:
                row = chain.index(q)
                column = output.index(q)
                result.append(
                    [
                        sum(digits[d][column][i] * key[first + d][c][row][i] for d in range(len(digits))) % q
                        for i in range(n)
                    ]
                )
        f.case(
            f"n{n}_{begin}_{end}",
            n=n,
            primes=chain,
            q_count=q_count,
            alpha=alpha,
            window_begin=begin,
            window_end=end,
            seed=n + begin,
            key_seed=5 * n,
            digits=len(digits),
            mod_up_sha256=digest([limb for digit in digits for limb in digit]),
            key_multiply_sha256=digest(result),
        )
    return f


def sampler_file():
    f = File("samplers")
    key = bytes(range(1, 33))
    primes = [TINY, TERMINAL[0], MAIN[0], SPECIAL[0]]
    n, ids = 16, [1, 3]
    for purpose, serial in ((1, 0), (3, 0x123456789ABCDEF)):
        limbs = sample_uniform(key, purpose, serial, ids, [primes[i] for i in ids], n)
        f.case(
            f"uniform_{purpose}",
            n=n,
            primes=primes,
            ids=ids,
            purpose=purpose,
            serial=serial,
            key=key.hex(),
            output=flat(limbs),
        )
    n = 1024
    limbs = sample_uniform(key, 100, 2**32 - 1, range(4), primes, n)
    f.case(
        "uniform_large",
        n=n,
        primes=primes,
        ids=[0, 1, 2, 3],
        purpose=100,
        serial=2**32 - 1,
        key=key.hex(),
        output_sha256=digest(limbs),
    )
    f.case(
        "ternary",
        n=n,
        purpose=2,
        serial=77,
        key=key.hex(),
        primes=[MAIN[0]],
        values=sample_ternary(key, 2, 77, n),
    )
    f.case(
        "error",
        n=n,
        purpose=3,
        serial=78,
        key=key.hex(),
        primes=[MAIN[0]],
        values=sample_error(key, 3, 78, n),
    )
    return f


def main():
    stale = []
    for make in (ntt_file, automorphism_file, base_convert_file, divide_file, key_switch_file, sampler_file):
        f = make()
        path = HERE / f"{f.name}.txt"
        text = "\n".join(f.lines) + "\n"
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text() != text:
                stale.append(path.name)
        else:
            path.write_text(text)
            print(path.name, len(text), "bytes")
    if stale:
        sys.exit("differ from what generate.py makes: " + ", ".join(stale))


if __name__ == "__main__":
    main()
