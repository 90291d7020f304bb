"""What `GET /programs/{program}` says of packing is enough to pack by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from service_world import World, made

from crenel.serve.programs import _packing


def test_the_packing_says_where_samples_that_share_slots_lie(world: World):
    """By `packing` alone, as a client of another language would: the slots that the library packs."""
    m = made()
    found = world.ask("GET", f"/programs/{m.program.fingerprint}").json()["packing"]["input"]
    layout = m.spec.input
    assert found["images"] == layout.images
    samples = np.random.default_rng(3).normal(size=(3, *layout.shape))
    for images in (1, 2, 4):
        several = _packing(replace(layout, images=images))
        rows = -(-len(samples) // images)
        slots = np.zeros((several["ciphertexts"], rows, several["slots"]))
        for n in range(rows * images):
            for element, place in enumerate(several["positions"]):
                ciphertext, slot = divmod(place, several["slots"])
                value = samples[min(n, len(samples) - 1)].reshape(-1)[element]
                slots[ciphertext, n // images, slot + n % images] = value
        assert np.array_equal(slots, replace(layout, images=images).pack(samples))
