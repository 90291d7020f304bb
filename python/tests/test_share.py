"""Results for others: bounds by the circuit's own function, shares, what is refused."""

import numpy as np
import pytest
from conftest import open_context

import crenel
from crenel import ckks


@pytest.fixture(scope="module")
def roomy(device):
    """A secure set with room for noise, and keys."""
    context = open_context(ckks.Params(log_n=13, scale_bits=50, depth=1), device)
    return context, context.keygen()


@pytest.fixture
def model(world):
    return ckks.ErrorModel(world.params)


def circuit(ev, x, y):
    """Everything that an evaluator and its operands share with the model."""
    x, y = ev(x), ev(y)
    total = (x * y + 0.5).rotate(1) - 2 * x.conjugate()
    total = total / 4 + np.linspace(-1, 1, 16) * y - [0.25, 0.5]
    total = sum([total, *x.rotate_many([1, 2])]) + (-x) ** 2 + 1j * y.sum(8)
    explicit = ev.rescale(ev.multiply(x.ciphertext, y.ciphertext))
    explicit = ev.add(explicit, ev.adjust_level(x.ciphertext, explicit.level))
    explicit = ev.sum_slots(ev.sub(ev.negate(explicit), 0.125), 4)
    fit = ev.chebyshev(np.tanh, -2, 2, 5)
    return total + explicit + fit(x).rotate_sum([0, 1]) + y.polynomial([0.1, 0, 0.2])


def clear(x, y):
    t = (np.roll(x * y + 0.5, -1) - 2 * x) / 4
    v, w = np.zeros((2, len(x)))
    v[:16], w[:2] = np.linspace(-1, 1, 16), [0.25, 0.5]
    t = t + v * y - w + np.roll(x, -1) + np.roll(x, -2)
    t = t + x**2 + 1j * sum(np.roll(y, -k) for k in range(8))
    e = sum(np.roll(-(x * y + x) - 0.125, -k) for k in range(4))
    fit = np.polynomial.chebyshev.Chebyshev.interpolate(np.tanh, 5, domain=[-2, 2])
    f = fit(x)
    return t + e + f + np.roll(f, -1) + 0.1 + 0.2 * y**2


@pytest.mark.parametrize("kind", ["uniform", "constant", "one slot"])
def test_one_function_runs_on_ciphertexts_and_bounds(world, model, kind):
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    rng = np.random.default_rng(seed)
    x, y = {
        "uniform": rng.uniform(-1, 1, (2, world.slots)),
        "constant": np.full((2, world.slots), -1.0),
        "one slot": np.eye(world.slots)[[0, 7]],
    }[kind]
    bound = circuit(model, model.input(max_abs=1, real=True), model.input(max_abs=1, real=True))
    found = circuit(world.ev, *(world.client.encrypt(v) for v in (x, y)))
    assert (found.level, found.slots, found.real) == (bound.level, bound.slots, bound.real)
    assert found.scale == pytest.approx(bound.scale, rel=1e-12)
    error = np.abs(world.client.decrypt(found) - clear(x, y))
    assert np.sqrt((error**2).mean()) <= bound.rms <= bound.max and error.max() <= bound.max
    assert bound.rms / np.sqrt((error**2).mean()) < 2**9
    assert np.abs(clear(x, y)).max() <= bound.message
    assert 0 < bound.failure < 2**-100 and bound.variance > 0 and bound.components == 2


def test_encoded_vectors_and_transforms_are_modelled(world, model, rng):
    x = rng.uniform(-1, 1, world.slots)
    p = world.context.encode(x)
    b = model.input(max_abs=1.0, real=True)
    for use in (lambda ev, a: ev.multiply(a, p), lambda ev, a: ev.add(a, p), lambda ev, a: ev(a) + p):
        found, bound = use(world.ev, world.client.encrypt(x)), use(model, b)
        assert found.scale == pytest.approx(bound.scale) and found.level == bound.level
    t = world.context.linear_transform({0: x, 1: x[::-1].copy(), 3: np.full(world.slots, 0.5)})
    ev = world.context.evaluator(world.client.evaluation_keys(rotations=t.rotations))
    want = x * x + x[::-1] * np.roll(x, -1) + 0.5 * np.roll(x, -3)
    for found, bound in (
        (t(ev, world.client.encrypt(x)), t(model, b)),
        (ev.linear_transform(t, world.client.encrypt(x)), model.linear_transform(t, b)),
    ):
        assert (found.level, found.scale) == (bound.level, bound.scale)
        error = np.abs(world.client.decrypt(found) - want)
        assert np.sqrt((error**2).mean()) < bound.rms and error.max() < bound.max
        assert bound.rms / np.sqrt((error**2).mean()) < 2**7


def test_a_bootstrap_is_modelled(boot_world):
    model = ckks.ErrorModel(boot_world.params)
    boot = boot_world.boot
    a = model.input(max_abs=1.0, level=boot.levels.input)
    bound = boot(a)
    for values in (np.ones(boot_world.slots), np.linspace(-1, 1, boot_world.slots)):
        found, _ = boot_world.refreshed(boot, values)
        assert (found.level, found.scale) == (bound.level, pytest.approx(bound.scale))
        error = np.abs(boot_world.client.decrypt(found) - values)
        assert np.sqrt((error**2).mean()) < bound.rms and error.max() < bound.max
    assert bound.failure > a.failure
    with pytest.raises(ckks.StateError):
        boot(model.input(max_abs=2.0**boot.options.message_ratio, level=boot.levels.input))
    with pytest.raises(ckks.UnsupportedError):
        boot_world.made(iterations=2)(a)


def test_what_has_no_model_is_refused(world, model):
    a = model.input(max_abs=1.0)
    for use in (lambda: model.context, lambda: model.fancy(a), lambda: a.fancy()):
        with pytest.raises(ckks.UnsupportedError) as caught:
            use()
        assert caught.value.fields["operation"]
    with pytest.raises(ckks.UnsupportedError):
        model.rescale(model.square_lazy(a))
    for use in (lambda: a + world.client.encrypt([1.0]), lambda: a / a, lambda: a * world.ev):
        with pytest.raises((TypeError, ckks.ParameterError)):
            use()
    with pytest.raises(ZeroDivisionError):
        a / 0
    for bad in ({"max_abs": 0}, {"max_abs": np.inf}, {"max_abs": 1, "slots": 3}, {"max_abs": 1, "level": 99}):
        with pytest.raises(ckks.ParameterError):
            model.input(**bad)
    assert not hasattr(model, "__array__") and "ErrorModel" in repr(model) and "ErrorBound" in repr(a)


def test_a_share_says_what_remains(roomy, rng):
    context, client = roomy
    client = context.keygen()
    x = rng.uniform(-1, 1, 4)
    bound = ckks.ErrorModel(context.params).input(max_abs=1.0, real=True, slots=4)
    c = client.encrypt(x, slots=4)
    share = client.decrypt_to_share(c, bound, statistical_bits=40, queries=3)
    assert isinstance(share, ckks.Share) and share.values.dtype == np.float64
    assert np.abs(share.values - x).max() < 16 * share.noise_std
    assert (np.mod(share.values, share.grid) == 0).all()
    assert share.precision_bits == pytest.approx(-np.log2(share.noise_std))
    assert (share.statistical_bits, share.queries, share.given) == (40, 3, 1)
    assert share.error_rms == bound.rms and share.bits_lost > 20
    batch = client.encrypt(np.stack([x, x]), slots=4)
    assert client.decrypt_to_share(batch, bound, statistical_bits=40, queries=3).values.shape == (2, 4)
    with pytest.raises(ckks.StateError) as caught:
        client.decrypt_to_share(c, bound, statistical_bits=40, queries=3)
    assert caught.value.fields["shares"] == 3
    again = context.client_from_secret_key(client.export_secret_key())
    again.add_to_share_account(*client.share_account)
    with pytest.raises(ckks.StateError):
        again.decrypt_to_share(c, bound, statistical_bits=40, queries=3)


def test_refused_shares(world, model):
    client = world.context.keygen()
    c = client.encrypt([0.5])
    bound = model.input(max_abs=1.0)

    def refused(kind, ciphertext, bound, field, **sharing):
        with pytest.raises(kind) as caught:
            client.decrypt_to_share(ciphertext, bound, **{"statistical_bits": 30, "queries": 1, **sharing})
        assert field in caught.value.fields

    refused(ckks.ParameterError, c, bound, "statistical_bits", statistical_bits=29)
    refused(ckks.ParameterError, c, bound, "queries", queries=0)
    refused(ckks.ParameterError, c, bound, "precision_bits", statistical_bits=64)
    refused(ckks.StateError, client.encrypt([0.5], level=1), bound, "level")
    refused(ckks.StateError, client.encrypt([0.5], slots=4), bound, "slots")
    assert client.share_account == (0, 0.0)
    refused(ckks.StateError, client.encrypt(np.full(world.slots, 9.0)), bound, "expected")
    with pytest.raises(TypeError):
        client.decrypt_to_share(c, bound)
    with pytest.raises(TypeError):
        client.decrypt(c, flooding=1.0)
    assert not hasattr(ckks, "Flooding")


def test_a_decrypted_plaintext_is_gated(world):
    p = world.client.decrypt_to_plaintext(world.client.encrypt([0.5]))
    for use in (
        p.to_bytes,
        lambda: world.client.encrypt(p),
        lambda: world.ev.add(world.client.encrypt([1.0]), p),
    ):
        with pytest.raises(ckks.StateError):
            use()
    assert len(p.to_bytes(allow_exact=True)) > 0
    with pytest.raises(TypeError):
        __import__("pickle").dumps(p)
    assert world.context.encode([1.0]).to_bytes()  # an encoded one is as ever
    assert issubclass(ckks.StateError, crenel.errors.CrenelError)
