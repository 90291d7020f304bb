"""Programs under encryption: what runs is what was simulated, within the model of errors."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import device_names, open_context
from nn_digits import TRAINING, convolutional, dense, digits
from nn_world import quiet_compile, rng, same_bits, small_cnn, toy, weights  # noqa: F401

from crenel import ckks, nn
from crenel.errors import KeyMissingError, ParameterError, SerializationError, StateError, UnsupportedError
from crenel.nn.cost import CostModel
from crenel.nn.plan import Transform

DEVICES = [name for name in device_names() if name != "ref"]


def usable(device: str) -> str:
    """The device, or a skip."""
    open_context(toy(), device)
    return device


def ran(program, samples, device):
    """Under encryption, and how far from the plan in the clear, over the noise that the model expects."""
    spec = program.client
    client = spec.keygen(device)
    server = program.bind(client.evaluation_keys(spec))
    found = client.decrypt(server.run(client.encrypt(samples, spec)), spec)
    clear = program.simulate(samples, noise=False)
    drawn = program.simulate(np.repeat(samples, 16, axis=0)) - np.repeat(clear, 16, axis=0)
    noise = np.sqrt(np.mean(drawn**2))
    return found, np.sqrt(np.mean((found - clear) ** 2)) / noise


@pytest.mark.parametrize("device", DEVICES)
def test_every_kind_of_step_under_encryption(rng, device):  # noqa: F811
    samples = rng.standard_normal((60, 1, 8, 8))
    program = quiet_compile(small_cnn(rng), samples, params=toy(), degree=15, batch=3, device=usable(device))
    found, ratio = ran(program, samples[:3], device)
    assert found.shape == (3, 10)
    assert 0.1 < ratio < 4.0


@pytest.mark.parametrize("device", DEVICES)
def test_composite_activations_and_several_ciphertexts(rng, device):  # noqa: F811
    """A gated series, and planes that one ciphertext does not hold."""
    model = nn.Sequential(
        nn.Linear(weights(rng, 6, 6), weights(rng, 6)), nn.ReLU(), nn.Linear(weights(rng, 2, 6))
    )
    samples = rng.standard_normal((60, 6))
    program = quiet_compile(
        model, samples, params=toy(), activation="minimax", batch=4, device=usable(device)
    )
    found, ratio = ran(program, samples[:4], device)
    assert 0.1 < ratio < 4.0
    assert np.abs(found - model(samples[:4])).max() < 2.0**-6 * np.abs(model(samples)).max()
    wide = nn.Sequential(
        nn.Conv2d(weights(rng, 12, 1, 3, 3), weights(rng, 12), padding=1), nn.Square(), nn.GlobalAvgPool()
    )
    samples = rng.standard_normal((20, 1, 16, 16))
    program = quiet_compile(wide, samples, params=toy("toy-leveled-n14-s40"), batch=1, device=device)
    found, ratio = ran(program, samples[:1], device)
    assert found.shape == (1, 12) and 0.1 < ratio < 4.0


@pytest.mark.parametrize("device", DEVICES)
def test_errors_behind_composites_do_not_grow_with_their_slopes(rng, device):  # noqa: F811
    """A sign of degree 15 x 15 x 27 is 38,000 times as steep at 0 as elsewhere. There its gate has nothing to
    multiply: errors of a chain of ReLU stay those of one, in the model as on ciphertexts."""
    layers = [part for _ in range(3) for part in (nn.Linear(weights(rng, 8, 8)), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(weights(rng, 3, 8)))
    samples = rng.standard_normal((60, 8))
    params, composite = toy("toy-boot35"), "15,15,27"
    program = quiet_compile(
        model, samples, params=params, activation="minimax", composite=composite, batch=4,
        device=usable(device),
    )  # fmt: skip
    found, ratio = ran(program, samples[:4], device)
    assert 0.03 < ratio < 4.0
    size = np.abs(model(samples)).max()
    assert (
        program.expected.noise < 2.0**-14 * size and np.abs(found - model(samples[:4])).max() < 2.0**-7 * size
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("network", ["dense", "square", "relu"])
def test_digits_keep_their_classes(device, network):
    images, labels = digits()
    model = dense() if network == "dense" else convolutional(network == "square")
    x = images.reshape(-1, 64) if network == "dense" else images
    program = quiet_compile(model, x[:300], params=toy(), batch=8, device=usable(device))
    exact, simulated = model(x[TRAINING:]), program.simulate(x[TRAINING:])
    assert np.mean(exact.argmax(axis=1) == labels[TRAINING:]) > 0.85
    assert np.mean(exact.argmax(axis=1) == simulated.argmax(axis=1)) > 0.97
    assert program.expected.agreement > 0.9
    found, ratio = ran(program, x[TRAINING : TRAINING + 8], device)
    assert 0.1 < ratio < 4.0
    np.testing.assert_array_equal(found.argmax(axis=1), simulated[:8].argmax(axis=1))


def test_devices_compute_the_same_bits(rng):  # noqa: F811
    """`ref`, the specification, on a network that it computes in seconds."""
    model = nn.Sequential(
        nn.Linear(weights(rng, 4, 3), weights(rng, 4)), nn.Tanh(), nn.Linear(weights(rng, 2, 4))
    )
    samples = rng.standard_normal((30, 3))
    program = quiet_compile(model, samples, params=toy("toy-leveled-n14-s40"), degree=3, device="cpu")
    found = same_bits(program, samples[0])
    np.testing.assert_allclose(found, program.simulate(samples[:1], noise=False)[0], atol=1e-6)


def test_what_is_described_is_what_is_made(rng):  # noqa: F811
    samples = rng.standard_normal((60, 1, 8, 8))
    program = quiet_compile(small_cnn(rng), samples, params=toy(), degree=7, batch=2, device="cpu")
    spec = program.client
    keys = spec.keygen("cpu").evaluation_keys(spec)
    assert keys.nbytes == program.demand.key_bytes
    assert sorted(keys.rotations) == sorted(program.demand.rotations)
    server = program.bind(keys)
    diagonals = server.encoded.nbytes
    assert diagonals <= program.demand.plaintext_bytes < 1.3 * diagonals
    text = program.describe()
    for part in ("toy-leveled-n16-s40", f"{program.plan.input_level} of 33", "rotations", "expected error"):
        assert part in text


def test_times_of_a_packaged_table_stand_in_where_it_has_none(rng):  # noqa: F811
    params = ckks.preset("boot35")
    model = nn.Sequential(nn.Linear(weights(rng, 4, 4)), nn.Square(), nn.Linear(weights(rng, 3, 4)))
    costs = CostModel.packaged(params, "NVIDIA H200")
    samples = rng.standard_normal((30, 4))
    with pytest.raises(UnsupportedError, match="no time of add at") as found:
        quiet_compile(model, samples, params=params, costs=costs)
    assert found.value.fields["batch"] == 1
    program = quiet_compile(model, samples, params=params, costs=costs.with_stand_ins())
    one = costs.with_stand_ins().us("rotation", params, 2) / 1e3
    assert program.expected.milliseconds > one > 0.0
    assert f"about {program.expected.milliseconds:.4g} ms a run" in program.describe()
    assert nn.Program.from_bytes(program.to_bytes()).expected == program.expected


def test_what_is_expected_is_of_all_samples(rng):  # noqa: F811
    """Sorted samples: the first ones are small, and a degree that is enough for them fails the others."""
    samples = np.sort(rng.uniform(-1.0, 1.0, 200))[:, None] ** np.array([1.0, 3.0])
    samples *= np.linspace(0.01, 1.0, 200)[:, None]
    model = nn.Sequential(nn.Linear(8.0 * np.eye(2)), nn.ReLU())
    program = quiet_compile(model, samples, params=toy(), degree=3, device="cpu")
    expected, exact = program.expected, model(samples)
    error = np.sqrt(np.mean((program.simulate(samples, noise=False) - exact) ** 2))
    assert expected.largest == np.abs(exact).max()
    assert expected.judged == 32 and 0.6 < expected.approximation / error < 1.6
    assert f"{expected.agreement:.2%} of 32 samples have the exact network's largest" in program.describe()
    single = quiet_compile(nn.Sequential(nn.Linear([[1.0, 0.5]])), samples[:20], params=toy(), device="cpu")
    assert single.expected.judged == 20
    text = single.describe()
    assert "agreement         1.0000 = 1 - the error of 20 samples relative to the output" in text
    assert "largest output" not in text


def test_batches_and_single_samples(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 3, 5), weights(rng, 3)))
    samples = rng.standard_normal((30, 5))
    program = quiet_compile(model, samples, params=toy("toy-leveled-n14-s40"), batch=4, device="cpu")
    spec = program.client
    client = spec.keygen("cpu")
    server = program.bind(client.evaluation_keys(spec))
    for given in (samples[0], samples[:1], samples[:4]):
        found = client.decrypt(server.run(client.encrypt(given, spec)), spec)
        np.testing.assert_allclose(found, model(np.atleast_2d(given)).reshape(found.shape), atol=1e-6)
    with pytest.raises(ParameterError, match=r"samples of shape \(5, 5\), expected \(5,\), or 1 to 4"):
        client.encrypt(samples[:5], spec)


def test_inputs_out_of_range_are_refused_by_the_client(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 3, 5)))
    samples = rng.uniform(-1, 1, (30, 5))
    program = quiet_compile(model, samples, params=toy("toy-leveled-n14-s40"), batch=2, device="cpu")
    spec = program.client
    client = spec.keygen("cpu")
    wrong = samples[:2].copy()
    wrong[1, 3] = -3.0
    with pytest.raises(ParameterError, match=r"the number at \[3\] of sample 1 is not within") as found:
        client.encrypt(wrong, spec)
    assert found.value.fields["index"] == [1, 3]
    wrong[0, 2] = np.nan
    with pytest.raises(ParameterError, match=r"the number at \[2\] of sample 0 .*2 numbers"):
        client.encrypt(wrong, spec)


def test_keys_and_tensors_of_another_program_are_refused(rng):  # noqa: F811
    samples = rng.standard_normal((30, 5))
    one, other = (
        quiet_compile(
            nn.Sequential(nn.Linear(weights(rng, 7, 5)), nn.Square()),
            samples,
            params=toy("toy-leveled-n14-s40"),
            device="cpu",
        )
        for _ in range(2)
    )
    client = one.client.keygen("cpu")
    keys = client.evaluation_keys(one.client)
    tensor = client.encrypt(samples[0], other.client)
    with pytest.raises(StateError, match="an encrypted tensor of program"):
        one.bind(keys).run(tensor)
    with pytest.raises(StateError, match="an encrypted tensor of program"):
        client.decrypt(tensor, one.client)
    few = client.ckks_client.evaluation_keys(rotations=[1], relinearisation=False)
    with pytest.raises(KeyMissingError, match="relinearisation to level 1") as found:
        one.bind(few)
    assert set(found.value.fields["rotations"]) == set(one.demand.rotations) - {1}
    elsewhere = quiet_compile(nn.Square(), samples, params=toy(), device="cpu")
    for other in (keys, keys.to_bytes()):
        with pytest.raises(StateError, match="keys of parameters"):
            elsewhere.bind(other)
    with pytest.raises(SerializationError):
        one.bind(b"no keys")
    with pytest.raises(StateError, match="a client of parameters"):
        client.encrypt(samples[0], elsewhere.client)


def test_a_server_refuses_more_samples_than_compiled_for(rng):  # noqa: F811
    """Even of a client that changed its file."""
    samples = rng.standard_normal((30, 5))
    model = nn.Sequential(nn.Linear(weights(rng, 3, 5)))
    program = quiet_compile(model, samples, params=toy("toy-leveled-n14-s40"), batch=2, device="cpu")
    client = program.client.keygen("cpu")
    server = program.bind(client.evaluation_keys(program.client))
    with pytest.raises(StateError, match="5 samples in 3 rows, expected 1 of .* at most 2 samples"):
        server.run(client.encrypt(samples[:5], replace(program.client, batch=9)))


def test_inputs_are_no_results_even_where_their_ciphertexts_are_alike(rng):  # noqa: F811
    """4 numbers in, 4 out, one level: packing and slots are the same."""
    samples = rng.standard_normal((30, 4))
    program = quiet_compile(
        nn.Linear(weights(rng, 4, 4)), samples, params=toy("toy-leveled-n14-s40"), batch=2, device="cpu"
    )
    spec = program.client
    client = spec.keygen("cpu")
    sent = client.encrypt(samples[:2], spec)
    with pytest.raises(StateError, match="an input that a client encrypted, expected the program's result"):
        client.decrypt(client.tensor_from_bytes(sent.to_bytes()), spec)
    server = program.bind(client.evaluation_keys(spec))
    found = client.decrypt(client.tensor_from_bytes(server.run(sent).to_bytes()), spec)
    assert found.shape == (2, 4)
    named = replace(sent, result=True)
    with pytest.raises(StateError, match="a result that a server returned, expected the program's input"):
        server.run(named)


def test_a_sum_of_operands_of_very_different_size(rng):  # noqa: F811
    """One transform of operands as they lie."""
    model = nn.Sequential(
        nn.Linear(weights(rng, 4, 3)),
        nn.Residual(nn.Sequential(nn.Linear(1e-6 * weights(rng, 4, 4)), nn.Tanh())),
    )
    samples = rng.standard_normal((40, 3))
    program = quiet_compile(model, samples, params=toy(), degree=3, device="cpu")
    assert any(isinstance(s, Transform) and not any(s.chains) for s in program.plan.steps)
    found, _ = ran(program, samples[:1], "cpu")
    np.testing.assert_allclose(found, model(samples[:1]), atol=1e-3)


def test_tensors_of_other_parameters_are_refused_as_such(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 4, 3)))
    samples = rng.standard_normal((40, 3))
    programs = [
        quiet_compile(model, samples, params=toy(name), device="cpu")
        for name in ("toy-leveled-n14-s40", "toy-leveled-n13-s40")
    ]
    clients = [program.client.keygen("cpu") for program in programs]
    sent = clients[1].encrypt(samples[0], programs[1].client)
    server = programs[0].bind(clients[0].evaluation_keys(programs[0].client))
    level, (given,) = programs[0].plan.input_level, sent.ciphertexts
    other = clients[1].ckks_client.encrypt(np.zeros(given.slots), level=level, slots=given.slots)
    forged = replace(sent, program=programs[0].fingerprint, ciphertexts=(other,))
    with pytest.raises(StateError, match="param"):
        server.run(forged)


def test_errors_come_to_light_where_a_vector_gains_slots(rng):  # noqa: F811
    """4 slots of 1024, two products, then 512: what the copies averaged away is there again, as expected."""
    spread = np.zeros((512, 4))
    spread[np.arange(512), rng.integers(0, 4, 512)] = 1.0
    model = nn.Sequential(
        nn.Linear(np.eye(4)), nn.Square(), nn.Polynomial([0.0, 0.0, 0.0, 1.0]), nn.Linear(spread)
    )
    samples = rng.uniform(0.5, 1.0, (40, 4))
    program = quiet_compile(model, samples, params=toy("toy-leveled-n14-s40"), batch=8, device="cpu")
    spec = program.client
    client = spec.keygen("cpu")
    report = nn.report(program.bind(client.evaluation_keys(spec)), client, samples[:8])
    last = report.rows[-1]
    assert 0.4 < last.measured / last.expected < 2.2, str(report)


def test_a_report_names_the_first_step_beyond_the_model(rng):  # noqa: F811
    samples = rng.standard_normal((40, 6))
    model = nn.Sequential(nn.Linear(weights(rng, 6, 6)), nn.Square(), nn.Linear(weights(rng, 3, 6)))
    program = quiet_compile(model, samples, params=toy("toy-leveled-n14-s40"), batch=3, device="cpu")
    spec = program.client
    client = spec.keygen("cpu")
    server = program.bind(client.evaluation_keys(spec))
    report = nn.report(server, client, samples[:3])
    assert [row.origin for row in report.rows] == ["0", "1", "2"]
    assert report.first_unexplained is None, str(report)
    # A server that computes with another constant.
    third = program.plan.steps[2].out
    bias = server.encoded.biases[third]
    slots = program.plan.values[third].layout.slots
    other = server.context.encode(np.full(slots, 1e-3), level=0, slots=slots)
    server.encoded.biases[third] = [other for _ in bias]
    wrong = nn.report(server, client, samples[:3]).first_unexplained
    assert wrong is not None and wrong.origin == "2"
