"""Bootstraps to low levels: fewer primes all the way, smaller keys, the errors of the model; and what fewer
slots save with SlotToCoeff first. N = 2^11: precision is that of the toy set."""

import json
import secrets

import numpy as np
import pytest
from conftest import Boot, open_context

import crenel
from crenel import boot_levels, ckks
from crenel.cli import main

# Levels whose primes EvalMod may stand on, by the ladder of boot40: no terminal primes, no digit left out.
BASES = {11: None, 10: 13, 7: 10, 4: 7, 0: 7}
SLACK = 8.0  # the largest of 2^10 noises above the expected largest: once in 2^60 bootstraps


@pytest.fixture(scope="module")
def world(boot_world) -> Boot:
    return boot_world


@pytest.fixture
def fresh() -> np.random.Generator:
    seed = secrets.randbits(32)
    print("seed", seed)
    return np.random.default_rng(seed)


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(-1, 1, n) + 1j * rng.uniform(-1, 1, n)


@pytest.mark.parametrize("target", sorted(BASES))
def test_the_keys_of_every_level_serve(world, fresh, target):
    boot = world.context.bootstrapper(world.keys, target_level=target)
    report = boot.report()
    assert boot.levels.output == target and boot.levels.short_base == BASES[target]
    less = report.full_eval_mod_limbs - report.eval_mod_limbs
    assert less == report.full_raised_limbs - report.raised_limbs
    assert (less > 0) == (BASES[target] is not None) == ("over those of level" in boot.describe())
    _, error = world.refreshed(boot, uniform(fresh, world.slots))
    assert error < SLACK * report.expected_error
    assert report.workspace_bytes <= world.boot.report().workspace_bytes


def test_the_errors_are_those_without(world, fresh):
    """The same roundings at the same scales: only the primes are fewer."""
    short = world.context.bootstrapper(world.keys, target_level=7)
    full = world.context.bootstrapper(world.keys, target_level=7, short_raise=False)
    assert (short.levels.short_base, full.levels.short_base) == (10, None)
    assert short.report().expected_error == pytest.approx(full.report().expected_error, rel=1e-9)
    x = uniform(fresh, world.slots)
    found = []
    for boot in (short, full):
        result, error = world.refreshed(boot, x)
        assert error < SLACK * boot.report().expected_error
        found.append(np.sqrt(np.mean(np.abs(world.client.decrypt(result) - x) ** 2)))
    assert found[0] / found[1] == pytest.approx(1, abs=0.35)


def test_keys_for_one_target_are_smaller(world, fresh, tmp_path):
    options = ckks.BootstrapOptions(target_level=4)
    keys = world.client.evaluation_keys(bootstrap=options)
    assert keys.nbytes < 0.8 * world.keys.nbytes
    assert keys.nbytes == world.params.key_bytes(bootstrap=options)
    boot = world.context.bootstrapper(keys, options)
    x = uniform(fresh, world.slots)
    low = world.client.encrypt(x, level=0)
    result = boot(low)
    assert world.error(result, x) < SLACK * boot.report().expected_error
    # Files and staging keep what they are.
    keys.save(tmp_path / "keys")
    for other in (world.context.load_evaluation_keys(tmp_path / "keys"), keys.staged(keys.nbytes - 1)):
        again = boot(low, evaluator=world.context.evaluator(other))
        assert again.to_bytes() == result.to_bytes()
    # They do not serve a higher target, and say what would.
    with pytest.raises(ckks.KeyMissingError, match="levels up to 7 and a bootstrap to these") as caught:
        world.context.bootstrapper(keys, target_level=7)
    assert "target_level=7" in str(caught.value)
    with pytest.raises(ckks.KeyMissingError):
        world.context.bootstrapper(keys)


def test_keys_for_two_targets(world, fresh):
    """The union serves both, and has the higher one's keys: those for aligned levels are beside them."""
    both = [ckks.BootstrapOptions(target_level=t, slots=64) for t in (4, 10)]
    keys = world.client.evaluation_keys(bootstrap=both)
    high = world.client.evaluation_keys(bootstrap=both[1])
    assert keys.rotations == high.rotations and keys.nbytes >= high.nbytes
    assert [keys.level_of(k) for k in keys.rotations] == [high.level_of(k) for k in high.rotations]
    x = uniform(fresh, 64)
    for options in both:
        _, error = world.refreshed(world.context.bootstrapper(keys, options), x)
        assert error < SLACK * world.context.bootstrapper(keys, options).report().expected_error


@pytest.mark.parametrize(
    "options",
    [
        {"target_level": 3, "arcsine_degree": 3, "slots": 32},
        {"target_level": 4, "keys": "minimal", "slots": 32},
        {"target_level": 6, "message": "real", "over_mod_raise": False, "slots": 32},
        {"target_level": 9, "order": "slot_to_coeff_first", "slots": 32},
        {"target_level": 2, "slots": 16, "pack": 4},
    ],
)
def test_with_the_other_options(world, fresh, options):
    boot = world.made(**options)
    assert boot.levels.short_base is not None
    n = options["slots"]
    x = fresh.uniform(-1, 1, n) if options.get("message") == "real" else uniform(fresh, n)
    if "pack" in options:
        (found,) = boot([world.client.encrypt(x, level=0, slots=n)])
        error = world.error(found, x)
    else:
        _, error = world.refreshed(boot, x)
    assert error < SLACK * max(boot.report().expected_error, boot.report().worst_error)


def test_the_same_bits_as_the_reference(world, fresh, tmp_path):
    options = ckks.BootstrapOptions(slots=2, target_level=4)
    boot = world.context.bootstrapper(world.client.evaluation_keys(bootstrap=options), options)
    world.client.evaluation_keys(bootstrap=options).save(tmp_path / "keys")
    low = world.client.encrypt(uniform(fresh, 2), level=0, slots=2)
    found = []
    for context in (world.context, open_context(world.params, "ref")):
        keys = context.load_evaluation_keys(tmp_path / "keys")
        here = context.bootstrapper(keys, options)
        found.append(here(context.ciphertext_from_bytes(low.to_bytes())).to_bytes())
    assert found[0] == found[1]
    assert boot.levels.short_base == 7


def test_slot_to_coeff_first_with_fewer_slots(world, fresh):
    """Real and imaginary parts go through EvalMod in one ciphertext, and are joined with the last rescale."""
    few = world.made(slots=64, order="slot_to_coeff_first")
    all_slots = world.context.bootstrapper(options=ckks.BootstrapOptions(order="slot_to_coeff_first"))
    assert few.levels.output == all_slots.levels.output == 15
    assert few.report().workspace_bytes < 0.7 * all_slots.report().workspace_bytes
    x = uniform(fresh, 64)
    x /= np.maximum(1, np.abs(x))
    _, error = world.refreshed(few, x)
    assert error < 3 * few.report().worst_error


def test_a_batch_takes_what_is_stated_and_gives_it_back(world, fresh):
    boot = world.context.bootstrapper(world.keys, target_level=4)
    low = world.client.encrypt(fresh.uniform(-1, 1, (3, world.slots)), level=0)
    device = world.context.device
    device.trim()
    held = device.pools().in_use
    world.context.reset_peak()
    before = world.context.bytes_in_use
    result = boot.eager(low)
    taken = world.context.peak_bytes - before
    assert 0 < taken <= 3 * boot.report().workspace_bytes + result.nbytes
    device.trim()
    assert device.pools().idle == 0 and device.pools().in_use - held <= result.nbytes * 2


def test_a_real_vector_is_half_of_its_coefficients(world, fresh):
    """One ciphertext through EvalMod, the keys of any bootstrap; an imaginary part goes as it always did."""
    options = {"message": "real", "message_ratio": 6}
    half = world.context.bootstrapper(world.keys, **options)
    both = world.context.bootstrapper(world.keys, **options, real_symmetry=False)
    assert half.report().real_symmetry and not both.report().real_symmetry
    assert "symmetric" in half.describe() and "symmetric" not in both.describe()
    assert half.options.real_symmetry and not both.options.real_symmetry
    assert half.report().message == "real" and "slots uniform in [-1, 1] (" in half.describe()
    assert half.report().workspace_bytes < 0.7 * both.report().workspace_bytes
    assert half.report().plaintext_bytes > both.report().plaintext_bytes
    x = uniform(fresh, world.slots)
    for boot in (half, both):
        result = boot(world.client.encrypt(x, level=0))
        error = np.abs(world.client.decrypt(result) - x.real).max()
        assert error < SLACK * boot.report().expected_error
    # The largest ratio has no bit left to make the message symmetric with.
    assert not world.context.bootstrapper(world.keys, message="real", message_ratio=10).report().real_symmetry


@pytest.mark.filterwarnings("ignore::crenel.ckks.InsecureParametersWarning")
def test_a_real_vector_costs_half_of_eval_mod():
    try:
        context = ckks.Context(ckks.preset("toy-boot35", allow_insecure=True), crenel.Device("cuda:dry"))
    except crenel.DeviceError as error:
        assert "built without CUDA" in str(error)
        pytest.skip(str(error))
    rows = boot_levels.measure(
        context.params, context.device,
        boot_levels.Plan(messages=("complex", "real"), symmetry=(True, False)),
        lambda _: None,
    )  # fmt: skip
    whole, half, both = rows
    assert [row["real_symmetry"] for row in rows] == [False, True, False]
    work = [row["stages_us"]["eval_mod"] for row in rows]
    assert work[1] < 0.7 * work[0] == pytest.approx(0.7 * work[2])
    assert half["bytes"] < 0.95 * both["bytes"] and half["key_bytes"] == whole["key_bytes"]


def test_the_bench_of_levels(tmp_path, capsys, monkeypatch):
    path = tmp_path / "levels.json"
    words = ["bench", "levels", "toy-boot40", "--device", "cpu", "--slots", "4", "--runs", "1"]
    assert main([*words, "--targets", "highest,4", "--order", "both", "--compare", "--json", str(path)]) in (
        0,
        None,
    )
    record = json.loads(path.read_text())
    assert (record["kind"], record["suite"], record["params"]) == (
        "crenel-bench",
        "levels",
        "toy-boot40",
    )
    rows = {(row["order"][0], row["target"], row["short_raise"]): row for row in record["results"]}
    assert set(rows) == {(o, *t) for o in "cs" for t in ((None, True), (4, True), (4, False))}
    for o in "cs":
        low, full = rows[o, 4, True], rows[o, 4, False]
        assert low["eval_mod_limbs"] < full["eval_mod_limbs"] == rows[o, None, True]["eval_mod_limbs"]
        assert low["key_bytes"] < full["key_bytes"] and low["workspace_bytes"] < full["workspace_bytes"]
        assert all(row["correct"] and row["runs"] == 2 and not row["failures"] for row in (low, full))
    assert "4, all primes" in capsys.readouterr().out
    real = ["bench", "levels", "toy-boot35", "--device", "cpu", "--runs", "1", "--targets", "highest"]
    assert main([*real, "--message", "both", "--compare"]) in (0, None)
    assert "real, half" in capsys.readouterr().out
    assert main([*real, "--message", "pair"]) == 2 and "expected one of" in capsys.readouterr().err
    monkeypatch.setattr(boot_levels, "SLACK", 2.0**-9)
    assert main([*words, "--targets", "4"]) == 1
    monkeypatch.setattr(boot_levels, "_facts", lambda *_: pytest.fail("a row was made"))
    for targets in ("14", "highest,14"):
        assert main([*words, "--targets", targets]) == 2 and "at most 13" in capsys.readouterr().err
    for wrong in ("\u00b2", "9" * 5000, "", ","):
        assert main([*words, "--targets", wrong]) == 2
        assert "expected numbers or 'highest'" in capsys.readouterr().err
    assert main([*words, "--targets", "low"]) == 2 and "expected numbers" in capsys.readouterr().err
