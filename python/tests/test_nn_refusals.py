"""What an ill-meaning or careless user hands in: typed errors, before any work."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401

from crenel import container, nn
from crenel.errors import ParameterError, SerializationError, StateError, UnsupportedError
from crenel.nn import archive
from crenel.nn.headroom import HEADROOM

SMALL = "toy-leveled-n14-s40"


@pytest.mark.parametrize(
    "values",
    [
        [[1j, 2.0]],
        np.ones((2, 2), dtype=complex),
        [["a", "b"]],
        [[1.0, 2.0], [1.0]],
        [[object(), 1.0]],
        np.ma.masked_array(np.ones((2, 2)), mask=np.eye(2)),
        [np.ma.masked_array([1.0, 2.0], mask=[True, False]), [1.0, 2.0]],
    ],
    ids=["complex list", "complex", "text", "ragged", "objects", "masked", "masked in a list"],
)
def test_what_is_no_array_of_real_numbers_is_refused(rng, values):  # noqa: F811
    """NumPy would cut off imaginary parts and read behind masks."""
    program = quiet_compile(nn.Square(), rng.standard_normal((30, 2)), params=toy(SMALL), batch=2)
    spec = program.client
    client = spec.keygen("cpu")
    for take in (
        nn.Linear,
        nn.Square(),
        lambda x: quiet_compile(nn.Square(), x, params=toy(SMALL)),
        program.simulate,
        lambda x: client.encrypt(x, spec),
    ):
        with pytest.raises(ParameterError, match="expected (an array of real numbers|numbers in all)"):
            take(values)


def test_numpy_integers_are_integers(rng):  # noqa: F811
    x = rng.standard_normal((2, 1, 6, 6))
    weight = weights(rng, 1, 1, 2, 2)
    np.testing.assert_array_equal(nn.Conv2d(weight, stride=np.int64(2))(x), nn.Conv2d(weight, stride=2)(x))
    assert nn.AvgPool2d([2, np.int32(1)]).kernel == (2, 1)
    for wrong in (2.0, None, "2", True, (1, 2, 3), 0):
        with pytest.raises(ParameterError, match="stride"):
            nn.Conv2d(weight, stride=wrong)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"params": "boot35"}, "expected ckks.Params"),
        ({"params": None}, "expected ckks.Params"),
        ({"margin": "2"}, "margin"),
        ({"agreement": "all"}, "agreement"),
        ({"degree": 3.5}, "degree 3.5"),
        ({"degree": "15"}, "degree '15'"),
        ({"degree": True}, "degree True"),
        ({"degree": {"1": 3.5}}, "degree 3.5 of 1"),
        ({"degree": {1: 3}}, "degrees for 1: no such activations; there are 1"),
    ],
)
def test_options_of_other_types_are_refused(rng, options, match):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 3, 4)), nn.Tanh())
    with pytest.raises(ParameterError, match=match):
        quiet_compile(model, rng.standard_normal((30, 4)), **{"params": toy(SMALL)} | options)


def test_tensors_that_are_no_input_or_no_result_are_refused(rng):  # noqa: F811
    """A program's own input, its result twice, in part, or as one sample of several: no numbers come out."""
    model = nn.Sequential(nn.Linear(weights(rng, 3, 6), weights(rng, 3)), nn.Square())
    x = rng.standard_normal((30, 6))
    program = quiet_compile(model, x, params=toy(SMALL), batch=2, device="cpu")
    spec = program.client
    client = spec.keygen("cpu")
    server = program.bind(client.evaluation_keys(spec))
    sent = client.encrypt(x[:2], spec)
    made = server.run(sent)
    assert client.decrypt(made, spec).shape == (2, 3)
    wrong = [
        sent,
        replace(made, ciphertexts=()),
        replace(made, ciphertexts=made.ciphertexts * 2),
        replace(made, single=True),
    ]
    for tensor in wrong:
        with pytest.raises(StateError, match="expected the program's result"):
            client.decrypt(tensor, spec)
    with pytest.raises(StateError, match="at most 1 samples"):
        client.decrypt(made, replace(spec, batch=1))
    for tensor in (made, replace(sent, ciphertexts=()), replace(sent, ciphertexts=sent.ciphertexts * 2)):
        with pytest.raises(StateError, match=r"expected 1 of \(2, 16\)"):
            server.run(tensor)
    for take in (server.run, lambda tensor: client.decrypt(tensor, spec)):
        with pytest.raises(ParameterError, match="bytes, expected an EncryptedTensor"):
            take(sent.to_bytes())


def _step(document, k):
    return document["plan"]["steps"][k]


def _value(document, k):
    return document["plan"]["values"][k]


def _huge_padding(document):
    """A convolution whose result is beyond any memory, and one behind it that looks at a corner of it."""
    first = _step(document, 0)["chains"][0][0]
    kernel = {"array": first["bias"]["array"], "shape": [1, 1, 1, 1]}
    big = 1 << 30
    conv = {
        "op": "conv2d", "weight": kernel, "bias": {**kernel, "shape": [1]}, "stride": [1, 1],
        "padding": [big, big], "dilation": [1, 1], "groups": 1,
    }  # fmt: skip
    corner = {**conv, "padding": [0, 0], "stride": [2 * big + 9, 2 * big + 9]}
    _step(document, 0)["chains"] = [[conv, corner]]
    _value(document, 0)["layout"] |= {"shape": [1, 2, 2], "size": [1, 2, 2], "plane": [2, 2]}
    _value(document, 1)["layout"] |= {"shape": [1], "size": [1, 1, 1]}


def _empty_sum(document):
    plan = document["plan"]
    plan["steps"].append({"step": "sum", "inputs": [], "out": len(plan["values"]), "level": 0})
    plan["output"] = len(plan["values"])
    plan["values"].append(_value(document, 3))


FORGERIES = {
    "another result's shape": lambda d: d["plan"].update(output_shape=[7]),
    "a square of another bound": lambda d: _value(d, 2).update(bound=2.0 * _value(d, 2)["bound"]),
    "a square in other slots": lambda d: _value(d, 2)["layout"].update(gap=[1, 1], plane=[8, 8]),
    "several capacities": lambda d: _value(d, 3)["layout"].update(capacity=1),
    "a matrix as bias": lambda d: _step(d, 0)["chains"][0][0]["bias"].update(shape=[1, 1]),
    "a weight as bias": lambda d: _step(d, 0)["chains"][0][0].update(
        bias=_step(d, 0)["chains"][0][0]["weight"]
    ),
    "a sum of nothing": _empty_sum,
    "huge tensors within a step": _huge_padding,
    "errors that are no numbers": lambda d: d.update(expected=[1e999] * 4 + [None]),
}


@pytest.mark.parametrize("name", list(FORGERIES))
def test_forged_programs_are_refused_when_they_are_loaded(rng, monkeypatch, name):  # noqa: F811
    """With right checksums, and everything of its type: what cannot run is no program."""
    model = nn.Sequential(nn.Linear([[1.0, 2.0]], [0.5]), nn.Square(), nn.Linear(weights(rng, 2, 1)))
    program = quiet_compile(model, rng.standard_normal((30, 2)), params=toy(SMALL), device="cpu")
    document, parts = archive.unpacked(program.to_bytes(), "program")
    FORGERIES[name](document)
    lax = json.dumps
    monkeypatch.setattr(container.json, "dumps", lambda value, **_: lax(value, sort_keys=True))
    data = archive.packed("program", document, parts)
    with pytest.raises(SerializationError):
        nn.Program.from_bytes(data, allow_insecure=True)


@pytest.mark.parametrize(
    "forged",
    [
        {"rotations": [[1, 99]]}, {"rotations": [[10**30, 1]]}, {"relinearisation": 99},
        {"relinearisation": -1}, {"input_level": 99}, {"output_shape": [1 << 39, 1 << 26]},
    ],
    ids=str,
)  # fmt: skip
def test_forged_clients_files_are_refused_when_they_are_loaded(rng, forged):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 3, 4)), nn.Square())
    spec = quiet_compile(model, rng.standard_normal((30, 4)), params=toy(SMALL)).client
    document, _ = archive.unpacked(spec.to_bytes(), "client")
    with pytest.raises(SerializationError):
        nn.ClientSpec.from_bytes(archive.packed("client", document | forged, {}), allow_insecure=True)


@pytest.mark.parametrize(
    ("size", "options", "match"),
    [
        (1e-320, {}, "input: values within"),
        (1e-70, {}, "1: values within .* expected a bound from"),
        (1e70, {}, "1: samples lead to values beyond"),
        (1e200, {}, "input: samples lead to values beyond"),
        (1.0, {"margin": 1e300}, "input: values within"),
    ],
)
def test_numbers_whose_squares_leave_float64_are_refused_by_name(rng, size, options, match):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 3, 4)), nn.Square())
    x = size * rng.standard_normal((30, 4))
    with pytest.raises(ParameterError, match=match):
        quiet_compile(model, x, params=toy(SMALL), **options)


def test_a_polynomial_that_leaves_float64_on_its_range_is_refused_by_name(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 3, 4)), nn.Polynomial([0.0] * 100 + [1e-300]))
    x = 1e3 * rng.standard_normal((30, 4))
    with pytest.raises(ParameterError, match="1: the polynomial goes beyond|1: samples lead"):
        quiet_compile(model, x, params=toy(), margin=1e6)


def test_an_agreement_out_of_reach_is_said(rng):  # noqa: F811
    """The second output is what a polynomial of ReLU errs by: no degree decides as ReLU does."""
    model = nn.Sequential(nn.Linear(np.eye(4)), nn.ReLU(), nn.Linear([[1, 1e-9, 0, 0], [1, 0, 0, 0]]))
    x = rng.standard_normal((100, 4))
    with pytest.warns(nn.AgreementWarning, match="0.99 was asked for"):
        nn.compile(model, x, params=toy())
    with warnings.catch_warnings():
        warnings.simplefilter("error", nn.AgreementWarning)
        nn.compile(model, x, params=toy(), degree=3)  # asked for, as it is


def test_silent_layers_fit_without_a_word(rng):  # noqa: F811
    """A layer that is zero on all samples has a histogram of one point."""
    model = nn.Sequential(nn.Linear(np.zeros((3, 4))), nn.ReLU())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        quiet_compile(model, rng.standard_normal((30, 4)), params=toy(), degree=7)


def large_at_zero():
    """Takes 0.3 + [-1/8, 1/8] to itself, and 0 to -5.5."""
    chebyshev = 4 * np.polynomial.Polynomial([-2.4, 8]) ** 3 - 3 * np.polynomial.Polynomial([-2.4, 8])
    return nn.Polynomial((chebyshev / 8 + 0.3).coef)


@pytest.mark.parametrize("size", [5, 8])
@pytest.mark.parametrize("before", ["nothing", "layer", "sum"])
def test_slots_without_elements_do_not_spoil_a_result(rng, size, before):  # noqa: F811
    """Polynomials of values around 0.3 that are large at 0: five elements leave three slots of eight empty,
    where zeros would make the second polynomial overflow, and every slot with it."""
    parts = {
        "nothing": [],
        "layer": [nn.Linear(np.eye(size))],
        "sum": [nn.Residual(nn.Linear(-0.5 * np.eye(size), np.full(size, 0.15)))],
    }
    model = nn.Sequential(*parts[before], large_at_zero(), large_at_zero(), nn.Linear(weights(rng, 2, size)))
    x = 0.3 + rng.uniform(-1, 1, (30, size)) / 8
    program = quiet_compile(model, x, params=toy("toy-leveled-n16-s40"), device="cpu", batch=3)
    program = nn.Program.from_bytes(program.to_bytes(), "cpu", allow_insecure=True)
    assert ("slots without an element hold" in program.explain()) == (size == 5)
    assert any(value.fill for value in program.plan.values) == (size == 5)
    spec = program.client
    client = spec.keygen("cpu")
    run = program.bind(client.evaluation_keys(spec)).run(client.encrypt(x[:3], spec))
    np.testing.assert_allclose(client.decrypt(run, spec), model(x[:3]), atol=1e-4)


def test_slots_that_nothing_suits_are_refused(rng):  # noqa: F811
    """Elements of two kinds, of each of which the polynomial makes the same: of their mean it makes a lot."""
    x = rng.choice([-1.0, 1.0], (30, 5)) * (1 + rng.uniform(-1, 1, (30, 5)) / 64)
    peak = nn.Polynomial((30 * (1 - np.polynomial.Polynomial([0, 0, 1])) ** 3).coef)
    model = nn.Sequential(nn.Linear(np.eye(5)), peak, nn.Polynomial([0.0, 0.0, 0.0, 1e8]))
    with pytest.raises(UnsupportedError, match="^1: slots, .* elements are in 5 of 8 slots"):
        quiet_compile(model, x, params=toy("toy-leveled-n16-s40"))


def test_what_leaves_first_is_named_and_not_what_it_leads_to(rng):  # noqa: F811
    """Slots that overflow become nan in elements two polynomials later; and a polynomial of degree 15 is
    computed by T_8, which may leave before what it makes does."""
    x = rng.choice([-1.0, 1.0], (30, 5)) * (1 + rng.uniform(-1, 1, (30, 5)) / 64)
    peak = nn.Polynomial((30 * (1 - np.polynomial.Polynomial([0, 0, 1])) ** 3).coef)
    steep = [nn.Polynomial([0.0] * 15 + [scale]) for scale in (1e45, 1.0)]
    model = nn.Sequential(nn.Linear(np.eye(5)), peak, *steep, nn.Linear(weights(rng, 3, 5)))
    with pytest.raises(UnsupportedError, match="^[12]: slots, or what is computed on the way") as error:
        quiet_compile(model, x, params=toy("toy-leveled-n16-s40"))
    assert np.isfinite(error.value.fields["largest"]) and error.value.fields["largest"] > HEADROOM


def test_forged_fills_are_refused(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(np.eye(5)), nn.Square())
    plan = quiet_compile(model, rng.standard_normal((30, 5)), params=toy(), device="cpu").plan
    for number, fill in ((1, 1.5), (1, float("nan")), (2, 0.5)):
        values = [replace(v, fill=fill) if k == number else v for k, v in enumerate(plan.values)]
        with pytest.raises(StateError, match="filled slots"):
            replace(plan, values=tuple(values)).verify("load")


def test_simulate_says_where_samples_leave_the_range(rng):  # noqa: F811
    """Within the input's range, beyond an inner one: differences that calibration saw as nearly zero. The
    plan in the clear has the network's result, an encrypted run has nonsense."""
    model = nn.Sequential(nn.Linear([[1.0, -1.0], [1.0, -1.0]]), nn.Square())
    x = np.outer(rng.uniform(-1, 1, 30), [1, 1]) + 1e-5 * rng.standard_normal((30, 2))
    program = quiet_compile(model, x, params=toy(SMALL), device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error", nn.CalibrationWarning)
        program.simulate(x)
    with pytest.warns(nn.CalibrationWarning, match="0: these samples leave the range"):
        program.simulate([[0.3, -0.3]])
    with pytest.warns(nn.CalibrationWarning, match="input: these samples leave the range"):
        program.simulate(3.0 * x)


def test_what_does_not_fit_the_modulus_is_named(rng):  # noqa: F811
    """Weights that cancel on the samples; a polynomial that explodes within its range."""
    x = np.outer(rng.uniform(-1, 1, 30), [1, 1]) + 1e-13 * rng.standard_normal((30, 2))
    cancelling = nn.Sequential(nn.Square(), nn.Linear([[1.0, -1.0]]))
    with pytest.raises(ParameterError, match="^1: weights up to"):
        quiet_compile(cancelling, x, params=toy(SMALL), device="cpu")
    explodes = nn.Polynomial(np.polynomial.chebyshev.cheb2poly(np.eye(31)[30]))
    model = nn.Sequential(nn.Linear(np.eye(2)), explodes)
    with pytest.raises((StateError, UnsupportedError), match="^1: "):
        quiet_compile(model, rng.uniform(-1, 1, (30, 2)), params=toy())
