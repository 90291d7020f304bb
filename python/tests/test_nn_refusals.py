"""What an ill-meaning or careless user hands in: typed errors, before any work."""

from dataclasses import replace

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401

from crenel import nn
from crenel.errors import ParameterError, StateError

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
    ],
    ids=["complex list", "complex", "text", "ragged", "objects", "masked"],
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
        with pytest.raises(ParameterError, match="expected an array of real numbers"):
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
        with pytest.raises(StateError, match=r"expected 1 of \(2, 8\)"):
            server.run(tensor)
    for take in (server.run, lambda tensor: client.decrypt(tensor, spec)):
        with pytest.raises(ParameterError, match="bytes, expected an EncryptedTensor"):
            take(sent.to_bytes())
