"""Private token transfers: balances and amounts are encrypted, and nobody can spend what they have not.

A server keeps the balances of accounts (64 bits) and applies transfers one after the other. Who pays whom is
public; how much, what everyone has, and whether a transfer went through are not: one whose amount exceeds the
balance moves 0. At the end an auditor learns that nothing was made or lost, and which account has most.
The set toy-lut4 is INSECURE and finishes at once; "lut4-128" is the same for real use.

    python 12_token_transfer.py [bits]      # 4 to 256, even; 64 by default
"""

import sys
import time
import warnings

import numpy as np

from crenel import tfhe

bits = int(sys.argv[1]) if len(sys.argv) > 1 else 64
if bits < 4:
    sys.exit(f"bits = {bits}, expected 4 or more: what five accounts have must fit one")
token = tfhe.IntegerType(bits)
warnings.simplefilter("ignore", tfhe.InsecureParametersWarning)
context = tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device="auto")
client = context.keygen()
keys = client.evaluation_keys()

# Five accounts; the third transfer asks for more than there is.
rng = np.random.default_rng(7)
clear = [int.from_bytes(rng.bytes(32), "little") % (token.high // 8) + 1 for _ in range(5)]
transfers = [(0, 1, clear[0] // 3), (1, 4, clear[1]), (2, 3, clear[2] + 1), (3, 0, clear[3]), (4, 2, 1)]
sent = [client.encrypt([amount], dtype=token).to_bytes() for _, _, amount in transfers]

# The server: bytes in, bytes out.
ev = context.evaluator(context.evaluation_keys_from_bytes(keys.to_bytes()))
start_of_all = client.encrypt(clear, dtype=token)
balances = [ev(start_of_all)[i : i + 1] for i in range(len(clear))]
start = time.perf_counter()
for (payer, payee, _), request in zip(transfers, sent, strict=True):
    asked = context.integers_from_bytes(request)
    moved = ev.select(balances[payer] >= asked, asked, 0)  # all of it or nothing
    balances[payer] = balances[payer] - moved
    balances[payee] = balances[payee] + moved
elapsed = time.perf_counter() - start
after = tfhe.concatenate([b.unbound for b in balances])
richest = ev.argmax(after)
conserved = ev.equal(ev.sum(after), ev.sum(start_of_all))

# The same in the clear.
expected = list(clear)
for payer, payee, amount in transfers:
    paid = amount if expected[payer] >= amount else 0
    expected[payer] -= paid
    expected[payee] += paid
found = client.decrypt(after)
print(f"{len(transfers)} transfers of uint{bits} in {elapsed:.2f} s on {context.device.name}: {found}")
assert found.tolist() == expected
assert bool(client.decrypt(conserved))
assert int(client.decrypt(richest)) == int(np.argmax(expected))
