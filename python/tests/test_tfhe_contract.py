"""A script that users were promised, word by word, on the best device."""

import subprocess
import sys

SCRIPT = """\
import numpy as np
from crenel import tfhe
context = tfhe.Context(tfhe.preset("bool128"), device="auto")
client  = context.keygen()
ev      = context.evaluator(client.evaluation_keys())
rng = np.random.default_rng(1)
x, y, s = rng.integers(0, 2, (3, 1000)).astype(bool)
a, b, c = (client.encrypt(v) for v in (x, y, s))
assert (client.decrypt(ev.nand(a, b)) == ~(x & y)).all()
assert (client.decrypt(ev.mux(c, a, b)) == np.where(s, x, y)).all()
assert (client.decrypt(ev.xor(ev.and_(a, b), c)) == ((x & y) ^ s)).all()
ictx = tfhe.Context(tfhe.preset("lut4-128"), device="auto"); ic = ictx.keygen(); iev = ictx.evaluator(ic.evaluation_keys())
u, v = rng.integers(0, 256, (2, 64), dtype=np.uint8)
eu, ew = ic.encrypt(u), ic.encrypt(v)                      # dtype decides the width: uint8
assert (ic.decrypt(iev.add(eu, ew)) == u + v).all() and (ic.decrypt(iev.less(eu, ew)) == (u < v)).all()
m = rng.integers(0, 16, 64, dtype=np.uint8)
assert (ic.decrypt(iev.lut(ic.encrypt(m, bits=4), lambda t: (t * t + 1) % 16)) == (m * m + 1) % 16).all()
print(context.params.p_fail_log2, context.params.security_bits)
"""  # noqa: E501


def test_contract():
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    failure, security = map(float, done.stdout.split())
    assert failure <= -128 and security >= 128
