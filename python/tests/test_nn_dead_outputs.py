"""Networks that are constant in part or as a whole, and ones too deep: what is said of them is so."""

from dataclasses import replace

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401

from crenel import ckks, nn
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.clear import Noise
from crenel.nn.headroom import HEADROOM
from crenel.nn.passes.levels import enough

FACTOR = 8.0  # of the stated error over that of a run, or the other way round
ROUNDED = 2.0**-28  # of the bound: coefficients, of some hundreds, times roundings of constants
RUN = 16


def dead(rng, inputs):  # noqa: F811
    """Two layers, each alive, or in some way dead, and where that ends."""
    modules, size = [], inputs
    for activation in (nn.ReLU, nn.SiLU, nn.GELU, nn.Square, nn.Tanh):
        if rng.random() < 0.6:
            continue
        outputs = int(rng.choice([2, 5, 16]))
        weight, bias = weights(rng, outputs, size), rng.normal(size=outputs) * rng.integers(2)
        how = rng.choice(["alive", "rows", "negative", "columns", "all", "tiny"])
        if how == "rows":
            weight[outputs // 2 :] = bias[outputs // 2 :] = 0.0
        elif how == "negative":  # never above 0 in front of a ReLU
            bias[outputs // 2 :] = -20.0
        elif how == "columns":
            weight[:, 1:] = 0.0
        elif how == "all":
            weight[:] = 0.0
        elif how == "tiny":
            weight *= 1e-4
            bias[:] = 0.0
        print(how, activation.__name__, outputs, bool(bias.any()))
        modules += [nn.Linear(weight, bias), activation()]
        size = outputs
        if len(modules) == 4:
            break
    last = weights(rng, 2, size)
    last[: rng.integers(3)] = 0.0
    print("last", last.any(axis=1))
    return nn.Sequential(*modules, nn.Linear(last, rng.normal(size=2) * rng.integers(2)))


def compiled(rng):  # noqa: F811
    """One that fits, and its samples. Of 370 one leaves values far smaller than what polynomials of degree 7
    err by, and is refused: then the next, and no third one."""
    params = toy("toy-leveled-n16-s40")
    for _ in range(2):
        inputs = int(rng.choice([3, 8, 40]))
        model, x = dead(rng, inputs), rng.normal(size=(60, inputs))
        try:
            return quiet_compile(model, x, params=params, degree=7, batch=RUN, device="cpu"), x
        except (ParameterError, UnsupportedError) as error:
            print(f"refused: {error}")
            assert {"origin", "largest"} <= error.fields.keys()
    pytest.fail("two networks in a row were refused")


@pytest.mark.parametrize("number", range(8))
def test_the_stated_error_is_that_of_a_run(rng, number):  # noqa: F811
    """Within a factor: a matrix of zeros leaves no error, and what constants make of it hardly one."""
    program, x = compiled(rng)
    spec = program.client
    client = spec.keygen(device="cpu")
    server = program.bind(client.evaluation_keys(spec))
    found = client.decrypt(server.run(client.encrypt(x[:RUN], spec)), spec)
    clear = program.simulate(x[:RUN], noise=False)
    measured = float(np.sqrt(np.mean((found - clear) ** 2)))
    stated = program.expected.noise
    floor = ROUNDED * program.plan.values[program.plan.output].bound
    print(f"stated {stated:.3g}, measured {measured:.3g}, floor {floor:.3g}")
    assert stated <= FACTOR * measured + floor and measured <= FACTOR * stated + floor
    assert np.abs(found - clear).max() <= 8 * FACTOR * (stated + floor)


def test_a_layer_whose_values_are_smaller_than_errors_of_polynomials_is_refused(rng):  # noqa: F811
    """A GELU of 1e-6 and of -20: on [-20, 0] a polynomial of degree 7 errs by 0.1, thousands of times the
    bound of what the next layer makes. It is elements that do, and no slots between them."""
    x = 1e-6 * rng.normal(size=(60, 6))
    lower = np.array([0.0, 0.0, -20.0, -20.0])
    model = nn.Sequential(nn.Linear(weights(rng, 4, 6), lower), nn.GELU(), nn.Linear(weights(rng, 4, 4)))
    params = toy("toy-leveled-n16-s40")
    with pytest.raises(UnsupportedError, match="^2: values of the samples, .* Take higher degrees") as error:
        quiet_compile(model, x, params=params, degree=7, device="cpu")
    assert error.value.fields["origin"] == "2" and error.value.fields["largest"] > HEADROOM


@pytest.mark.parametrize(
    ("scale", "says"), [(0.0, "in all of them the output is 0"), (1e-12, "the output is smaller")]
)
def test_a_single_output_that_is_lost_in_errors(rng, scale, says):  # noqa: F811
    """Its agreement is none, and not a number far below 0."""
    model = nn.Sequential(
        nn.Linear(weights(rng, 4, 6)), nn.GELU(), nn.Linear(scale * weights(rng, 1, 4)), nn.GELU()
    )
    params = toy("toy-leveled-n16-s40")
    program = quiet_compile(model, rng.normal(size=(60, 6)), params=params, degree=7, device="cpu")
    if scale:  # a fit on a range so small is a line, and its error as small
        program = replace(program, expected=replace(program.expected, agreement=0.0))
    text = program.describe()
    assert 0.0 <= program.expected.agreement <= 1.0 and "e+1" not in text
    if program.expected.agreement == 0.0:
        assert f"agreement         none: errors of 32 samples are not small beside the output; {says}" in text
    else:
        assert "agreement         1.0000 = " in text


def test_levels_that_are_missing_name_sets_that_have_them(rng):  # noqa: F811
    """Of the same kind, for tests or for real data; with as many levels, or with bootstraps."""
    model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(weights(rng, 5, 5)), nn.ReLU())])
    x = rng.normal(size=(40, 5))
    with pytest.raises(UnsupportedError) as error:
        quiet_compile(model, x, params=toy("toy-leveled-n14-s40"), degree=31, device="cpu")
    needed = error.value.fields["needed"]
    text = str(error.value)
    assert f"needs {needed} levels and the parameters have 6" in text
    names = set(text.split("so many have ")[1].split(";")[0].split(", "))
    assert names == {n for n in ckks.preset_names() if n.startswith("toy-leveled") and top(n) >= needed}
    boots = text.split("that one step takes, have ")[1].split(";")[0].split(", ")
    assert boots == [n for n in ckks.preset_names() if n.startswith("toy-boot")]
    program = quiet_compile(model, x, params=toy(boots[-1]), degree=31, device="cpu")
    assert program.demand.operations["bootstraps"] > 0
    with pytest.raises(
        UnsupportedError, match=r"have leveled-n16-s40, leveled-n16-s50; bootstraps.* boot30, "
    ):
        quiet_compile(model, x, params=ckks.preset("leveled-n14-s40"), degree=31, device="cpu")


def test_steps_that_no_set_holds():
    assert enough(99, 30, True) == (
        "Of sets that come with Crenel no set has so many, and none bootstraps to the 30 of one step"
    )


def test_values_that_errors_drive_out_of_range_are_refused(rng, monkeypatch):  # noqa: F811
    """Of polynomials that grow fast beyond their interval; the layer is named."""
    monkeypatch.setattr(Noise, "of_bootstrap", lambda *_: 1.0)
    model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(weights(rng, 5, 5)), nn.ReLU())])
    with pytest.raises(UnsupportedError, match="with errors of encryption values leave their range") as error:
        quiet_compile(model, rng.normal(size=(40, 5)), params=toy("toy-boot40"), degree=127, device="cpu")
    assert error.value.fields["origin"] in {"0", "1", "2", "3", "4", "5"}


def top(name: str) -> int:
    return toy(name).normal_top_level
