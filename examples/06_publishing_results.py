"""Anyone encrypts with the public key; what is published comes from decrypt_to_share."""

import numpy as np

from crenel import ckks

# Noise 2^15 and more times larger than the error it hides needs room (SECURITY.md).
params = ckks.Params(log_n=14, scale_bits=50, depth=1)
context = ckks.Context(params, device="auto")
client = context.keygen()
public_key = context.public_key_from_bytes(client.public_key().to_bytes())


def total(ev, a, b, c):
    """The circuit, of ciphertexts and of their error bounds."""
    return ev(a) + ev(b) + ev(c)


# Three parties encrypt, somebody without any key adds.
parties = np.random.default_rng(1).uniform(0, 1, (3, 8))
result = total(context.evaluator(), *(public_key.encrypt(values, slots=8) for values in parties))

# What the key holder knows: parameters, circuit, and that nobody's values exceed 1.
model = ckks.ErrorModel(params)
one = model.input(max_abs=1.0, real=True, slots=8, encryption="public_key")
share = client.decrypt_to_share(result, total(model, one, one, one), statistical_bits=40, queries=10)

exact = client.decrypt(result)  # for the key holder's own eyes
print(f"error kept private   2^{np.log2(np.abs(exact - parties.sum(axis=0)).max()):.1f}")
print(f"error when published 2^{np.log2(np.abs(share.values - parties.sum(axis=0)).max()):.1f}")
print(f"bits that remain     {share.precision_bits:.1f} of messages up to 3")
assert np.abs(share.values - parties.sum(axis=0)).max() < 16 * share.noise_std < 2**-3
