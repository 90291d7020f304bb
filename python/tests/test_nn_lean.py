"""Programs with less memory: weights encoded by layer, one kind of bootstrap, few places for zeros."""

import numpy as np
import pytest
from nn_world import quiet_compile, rng, small_cnn, toy, weights  # noqa: F811, F401

from crenel import ckks, nn
from crenel.errors import ParameterError
from crenel.nn.blocks import shift_transform
from crenel.nn.counting import places
from crenel.nn.layout import Layout
from crenel.nn.linear import SlotTransform
from crenel.nn.plan import Boot, Refresh
from crenel.nn.sequences import Attend, Scores
from crenel.nn.sizes import plaintext_bytes


def bits(tensor):
    return [c.to_bytes() for c in tensor.ciphertexts]


def test_staged_weights_are_the_same_bits_in_less_memory(rng):  # noqa: F811
    samples = rng.standard_normal((60, 1, 8, 8))
    program = quiet_compile(small_cnn(rng), samples, params=toy(), degree=7, batch=2, device="cpu")
    spec, demand = program.client, program.demand
    client = spec.keygen("cpu")
    keys = client.evaluation_keys(spec)
    assert 0 < demand.layer_bytes < demand.plaintext_bytes
    assert f"{demand.layer_bytes / 2**20:.1f} MiB at once, staged" in program.describe()
    sent = client.encrypt(samples[:2], spec)
    whole = bits(program.bind(keys).run(sent))
    program.forget()  # a loaded program has no matrices either
    server = program.bind(keys, staged=True)
    assert server.encoded.nbytes == 0
    seen = []
    for _ in range(2):
        found = server.run(sent, watch=lambda number, made: seen.append(server.encoded.nbytes))
        assert bits(found) == whole
    assert 0 < max(seen) <= demand.layer_bytes
    with pytest.raises(ParameterError, match="a recording of staged weights"):
        server.run(sent, graph=True)


def test_outlines_count_what_matrices_need(rng):  # noqa: F811
    samples = rng.standard_normal((60, 1, 8, 8))
    program = quiet_compile(small_cnn(rng), samples, params=toy(), degree=7, batch=2, device="cpu")
    again = nn.Program.from_bytes(program.to_bytes(), allow_insecure=True)
    assert vars(again.demand) == vars(program.demand)  # of the one by matrices, of the other by outlines
    for k, matrix in again.transforms.items():
        assert matrix.offsets == program.transforms[k].offsets
        np.testing.assert_array_equal(matrix.bias, program.transforms[k].bias)
    program.forget()
    assert vars(program.demand) == vars(again.demand)


def test_one_kind_of_bootstrap_serves_vectors_of_all_sizes(rng):  # noqa: F811
    """A network whose vectors shrink: kinds of several sizes, or one."""
    sizes = (64, 16, 8, 4)
    layers = [nn.Linear(weights(rng, b, a)) for a, b in zip(sizes, sizes[1:], strict=False)]
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())])
    x = rng.uniform(-1, 1, (60, 64))
    options = {"params": toy("toy-boot35"), "activation": "minimax", "composite": "15,15,15", "device": "cpu"}
    usual, lean = (quiet_compile(model, x, lean=flag, **options) for flag in (False, True))
    (kind,) = lean.demand.bootstraps
    assert kind.slots == max(boot.slots for boot in usual.demand.bootstraps) and kind.vectors == 1
    assert lean.demand.key_bytes <= usual.demand.key_bytes
    refreshes = [step for step in lean.plan.steps if isinstance(step, Refresh)]
    assert {lean.plan.values[step.out].layout.slots for step in refreshes} != {kind.slots}
    spec = lean.client
    client = spec.keygen("cpu")
    server = lean.bind(client.evaluation_keys(spec), staged=True)
    found = client.decrypt(server.run(client.encrypt(x[:1], spec)), spec)
    noise = max(lean.expected.noise, 1e-12)
    assert np.abs(found - lean.simulate(x[:1], noise=False)).max() < 16 * noise
    assert Boot(kind.slots, target=kind.target) == kind


@pytest.mark.parametrize("babies", [0, 4])
@pytest.mark.parametrize("kind", [Scores, Attend])
def test_shifts_have_places_for_what_is_there(rng, kind, babies):  # noqa: F811
    """Every output has diagonals of its own, so that most of one grid would be zeros: eight outputs share
    one. Alone, an output has the same bits."""
    params, tokens, heads, width, level = toy("toy-leveled-n14-s40"), 16, 2, 16, 2
    wide = Layout.of((tokens, tokens * heads), params.slots)
    matrix = shift_transform(kind(1, width), wide, babies)
    assert matrix.ends == (1, width) and matrix.diagonals < 2 * width
    context = ckks.Context(params, "cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys(rotations=matrix.rotations()))
    made = {"level": level, "slots": matrix.slots, "baby_steps": matrix.slots}
    together = ckks.BlockTransform(context, matrix.full(), **made)
    apart = [ckks.BlockTransform(context, [row], **made) for row in matrix.full()]
    assert sum(part.plaintext_bytes for part in apart) <= together.plaintext_bytes
    each = plaintext_bytes(params, level, period=tokens, extended=True)
    assert together.plaintext_bytes == places(matrix, len(matrix.offsets), 1) * each
    assert together.plaintext_bytes <= 8 * matrix.diagonals * each
    x = client.encrypt(rng.uniform(-1, 1, matrix.slots), level=level, slots=matrix.slots)
    whole = [found.to_bytes() for found in together(ev, [x])]
    assert whole == [part(ev, [x])[0].to_bytes() for part in apart]


def test_places_of_a_dense_matrix_are_a_grid(rng):  # noqa: F811
    block = dict.fromkeys(range(16), np.ones(16))
    dense = SlotTransform([[block]] * 16, 16, 1, np.zeros((16, 16)))
    assert places(dense, 4, 4) == 256 and places(dense, 16, 1) == 256
