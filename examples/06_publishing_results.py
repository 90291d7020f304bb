"""Anyone encrypts with the public key; results are published only with noise flooding."""

import numpy as np

from crenel import ckks

# Flooding needs room: noise 2^15 times larger than the error it hides (SECURITY.md).
params = ckks.Params(log_n=14, scale_bits=50, depth=1)
context = ckks.Context(params, device="auto")
client = context.keygen()
public_key = context.public_key_from_bytes(client.public_key().to_bytes())

# Three parties encrypt, somebody without any key adds.
parties = np.random.default_rng(1).uniform(0, 1, (3, 8))
ciphertexts = [public_key.encrypt(values, slots=8) for values in parties]
ev = context.evaluator()
total = ev.add(ev.add(*ciphertexts[:2]), ciphertexts[2])

# The error of a public-key encryption in coefficient units, measured once on a message that is known.
trial = public_key.encrypt(np.zeros(params.slots))
noise_std = client.decrypt(trial).std() * trial.scale * np.sqrt(2 / params.ring_dim)
flooding = ckks.Flooding(noise_std=np.sqrt(3) * noise_std, queries=1)  # three of them were added
published = client.decrypt(total, flooding=flooding)

exact = client.decrypt(total)
print(f"error kept private   2^{np.log2(np.abs(exact - parties.sum(axis=0)).max()):.1f}")
print(f"error when published 2^{np.log2(np.abs(published - parties.sum(axis=0)).max()):.1f}")
assert np.abs(published - parties.sum(axis=0)).max() < 2**-10
