"""Client and server exchange bytes: parameters, keys, ciphertexts. The server holds no secret."""

import numpy as np

from crenel import ckks

ROTATIONS = [1, 2, 3]  # public knowledge: what the server's computation needs


def serve(params_bytes: bytes, key_bytes: bytes, request: bytes) -> bytes:
    """A moving average over four neighbours. Everything that arrives is checked before use."""
    context = ckks.Context(ckks.Params.from_bytes(params_bytes), device="auto")
    ev = context.evaluator(context.evaluation_keys_from_bytes(key_bytes))
    x = ev(context.ciphertext_from_bytes(request))
    return (x.rotate_sum([0, *ROTATIONS]) / 4).to_bytes()


params = ckks.Params(log_n=13, scale_bits=30, depth=1)
context = ckks.Context(params, device="cpu")
client = context.keygen()
keys = client.evaluation_keys(rotations=ROTATIONS, relinearisation=False)

x = np.random.default_rng(1).normal(size=params.slots)
request = client.encrypt(x).to_bytes()
reply = serve(params.to_bytes(), keys.to_bytes(), request)
print(f"keys {len(keys.to_bytes())} bytes, request {len(request)} bytes, reply {len(reply)} bytes")

expected = sum(np.roll(x, -k) for k in range(4)) / 4
# Exact, for the client's own eyes; what it would show to others: example 06.
error = np.abs(client.decrypt(context.ciphertext_from_bytes(reply)) - expected).max()
print(f"largest error 2^{np.log2(error):.1f}")
assert error < 2**-10

try:  # damaged bytes are refused, with what and where
    context.ciphertext_from_bytes(request[:-1])
except ckks.SerializationError as refusal:
    print(f"refused: {refusal}")
else:
    raise AssertionError("damaged bytes were accepted")
