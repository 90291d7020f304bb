"""Encrypted integers and look-up tables: a sealed-bid auction with a reserve price and a fee by brackets.

The server learns neither the bids nor who wins. The set toy-lut4 is INSECURE and finishes at once; "lut4-128"
is the same for real use.
"""

import warnings

import numpy as np

from crenel import tfhe

RESERVE = 1000
warnings.simplefilter("ignore", tfhe.InsecureParametersWarning)
context = tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device="auto")
client = context.keygen()
keys = client.evaluation_keys()

# Eight auctions of four bidders each; the type decides the width.
rng = np.random.default_rng(1)
bids = rng.integers(0, 5000, (4, 8), dtype=np.uint16)
request = client.encrypt(bids).to_bytes()

# The server: bytes in, bytes out.
ev = context.evaluator(context.evaluation_keys_from_bytes(keys.to_bytes()))
received = context.integers_from_bytes(request)
best = ev.max(ev.max(received[0], received[1]), ev.max(received[2], received[3]))
sold = ev.greater_equal(best, RESERVE)
price = ev.select(sold, best, 0)
reply = price.to_bytes(), sold.to_bytes()

found = client.decrypt(context.integers_from_bytes(reply[0]))
print("highest bids", bids.max(axis=0), "sold for", found)
expected = np.where(bids.max(axis=0) >= RESERVE, bids.max(axis=0), 0)
assert (found == expected).all()
assert (client.decrypt(context.ciphertext_from_bytes(reply[1])) == (expected > 0)).all()

# Any function of a message of 4 bits is one bootstrap: the fee of each bracket of prices.
brackets = np.minimum(expected // 512, 15)
fee = ev.lut(client.encrypt(brackets, bits=4), lambda bracket: 0 if bracket < 2 else 2 + bracket // 3)
assert (client.decrypt(fee) == np.where(brackets < 2, 0, 2 + brackets // 3)).all()
