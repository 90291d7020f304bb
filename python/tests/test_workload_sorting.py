"""Sorting on ciphertexts: against the simulation after every round, and what a program must withstand."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from conftest import device_names, open_context, toy

import crenel
from crenel import ckks, workloads
from crenel.errors import SerializationError
from crenel.workloads import checkpoint
from crenel.workloads.sorting import EncryptedValues, MaskStore, Recordings, circuit, clear, running
from crenel.workloads.sorting.encrypted import EncryptedMachine
from crenel.workloads.stages import Stopwatch

COUNT = 13  # padded to 16


class World:
    def __init__(self, count: int, device: str = "cpu", **options) -> None:
        self.context = open_context(toy("toy-boot40"), device)
        self.client = self.context.keygen()
        self.plan = workloads.Sorting(self.context.params, count, **options)
        self.keys = self.plan.keys(self.client)
        self.ev = self.context.evaluator(self.keys)

    def spaced(self, rng) -> np.ndarray:
        """Numbers whose gaps the comparator resolves."""
        return rng.permutation(np.linspace(0, 1, self.plan.count)) * rng.uniform(0.9, 1)


@pytest.fixture(scope="module")
def four():
    return World(COUNT, payload=1)


@pytest.fixture
def rng():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


def compared(world: World, values, payload, **run):
    """A run whose every round is compared with the simulation: the largest errors that it predicts are those
    that are there, within a factor of eight, since a dozen slots have one each."""
    clear = world.plan.simulate(values, payload)
    predicted = world.plan.simulate(values, payload, noise=world.plan.noise())
    seen = []

    def look(done, state):
        seen.append(done)
        for place, column in enumerate(state.columns):
            exact = clear.rounds[done - 1][place]
            error = np.abs(world.client.decrypt(column) - exact).max()
            expected = np.abs(predicted.rounds[done - 1][place] - exact).max()
            print(f"round {done} column {place}: 2^{np.log2(error):.1f}, expected 2^{np.log2(expected):.1f}")
            assert expected / 8 < error < 8 * expected

    x = world.plan.encrypt(world.client, values, payload)
    out = world.plan.run(world.ev, x, on_round=look, **run)
    assert seen == list(range(1, len(world.plan.rounds) + 1))
    return clear, out


def test_every_round_is_that_of_the_simulation(four, rng):
    values, payload = rng.random(COUNT), rng.random(COUNT)
    watch = Stopwatch()
    clear, out = compared(four, values, [payload], stages=watch)
    sorted_values = four.plan.decrypt(four.client, out)
    assert np.abs(sorted_values - clear.values).max() < 2**-16
    assert np.abs(sorted_values - np.sort(values)).max() < 8 * four.plan.report.expected_error
    assert watch.counts["bootstrap"] <= four.plan.report.bootstraps
    assert {"differences", "comparison", "exchange"} < set(watch.seconds)


def test_errors_of_ties_do_not_reach_the_numbers():
    """Where numbers are equal a comparator multiplies errors by thousands, their imaginary parts as well.
    These must be gone before x and the signs share a bootstrap as x + i s."""
    world = World(16)
    x = world.plan.encrypt(world.client, np.full(16, 0.5))
    seen = []

    class Enough(Exception):
        pass

    def look(done, state):
        seen.append(np.abs(world.client.decrypt(state.columns[0])).max())
        raise Enough

    with pytest.raises(Enough):
        world.plan.run(world.ev, x, on_round=look)
    assert seen[0] < 2**-23


@pytest.mark.parametrize("real", [frozenset(), frozenset({0, 1})])
def test_imaginary_errors_are_those_of_the_simulation(real, rng):
    """Of the signs of ties, where slopes of the factors make the most of them, before the last factor."""
    world = World(64, radix=2)
    slots, params = world.plan.slots, world.context.params
    factors = replace(world.plan.comparator, factors=world.plan.comparator.factors[:3], real=real)
    level = params.normal_top_level
    assert level >= factors.levels + circuit.TAIL[2]  # no bootstrap in between
    boot = world.context.bootstrapper(world.keys, world.plan.bootstrap)
    machines = (
        EncryptedMachine(world.ev, boot, MaskStore()),
        clear.ClearMachine(boot.levels.output, world.plan.noise(1)),
    )
    found = []
    for machine in machines:
        if isinstance(machine, clear.ClearMachine):
            x, s = (machine.vector(np.zeros(slots), level) for _ in range(2))
        else:
            x, s = (world.ev(world.client.encrypt(np.zeros(slots, complex), level=level)) for _ in range(2))
        _, signs = circuit.compare(machine, x, s, factors, 2)
        slots_of = signs.values if machine is machines[1] else world.client.decrypt(signs)
        found.append(float(np.sqrt(np.mean(np.imag(slots_of) ** 2))))
    print(f"imaginary errors 2^{np.log2(found[0]):.1f}, expected 2^{np.log2(found[1]):.1f}")
    assert found[1] / 8 < found[0] < 8 * found[1]


def test_radix_2_descending_and_the_papers_form(rng):
    world = World(8, variant="paper", descending=True)
    assert world.plan.radix == 2
    values = world.spaced(rng)
    _, out = compared(world, values, [])
    assert (
        np.abs(out.decrypt(world.client) - np.sort(values)[::-1]).max() < 8 * world.plan.report.expected_error
    )
    with pytest.raises(ckks.StateError, match="descending already"):
        world.plan.run(world.ev, out)


def test_numbers_and_results_travel_as_bytes(four, rng):
    values = four.spaced(rng)
    x = four.plan.encrypt(four.client, values, [np.arange(COUNT)], payload_high=COUNT)
    received = EncryptedValues.from_bytes(four.context, x.to_bytes())
    assert received.scales == x.scales and received.order == "unsorted" and received.tolerance == np.inf
    out = four.plan.run(four.ev, received)
    sent = out.to_bytes()
    back = EncryptedValues.from_bytes(four.context, sent)
    assert (back.decrypt(four.client) == out.decrypt(four.client)).all()
    assert (back.decrypt_payload(four.client) == out.decrypt_payload(four.client)).all()
    ev = four.context.evaluator(workloads.sorting_keys(four.client, COUNT, payload=1))
    middle = workloads.median(workloads.encrypt_indexed(four.client, values).bound_to(ev))
    found = EncryptedValues.from_bytes(four.context, middle.to_bytes())
    assert found.decrypt(four.client) == middle.decrypt(four.client)
    for damaged in (b"", sent[:-1], sent[:-1] + bytes([sent[-1] ^ 1])):
        with pytest.raises(SerializationError):
            EncryptedValues.from_bytes(four.context, damaged)
    for wrong in (
        {"size": 2 * out.size}, {"count": 0}, {"order": "mixed"}, {"places": (out.slots,)}, {"places": ()},
        {"scales": out.scales[:1]}, {"tolerance": -1.0}, {"terms": 0}, {"columns": out.columns[:1]},
    ):  # fmt: skip
        with pytest.raises(SerializationError, match="not theirs"):
            EncryptedValues.from_bytes(four.context, replace(out, **wrong).to_bytes())


def test_calls(four, rng):
    client = four.client
    ev = four.context.evaluator(workloads.sorting_keys(client, COUNT, payload=1))
    values = four.spaced(rng)
    x = workloads.encrypt_indexed(client, 10 * values - 5, low=-5, high=5).bound_to(ev)
    ranks = workloads.argsort(x, descending=True)
    assert np.array_equal(workloads.decrypt_indices(client, ranks), np.argsort(-values))
    assert np.abs(ranks.decrypt(client) - np.sort(10 * values - 5)[::-1]).max() < 2**-9
    best = workloads.top_k(x, 3)
    assert best.decrypt(client).shape == (3,)
    assert np.abs(best.decrypt(client) - (10 * np.sort(values)[:-4:-1] - 5)).max() < 2**-9
    assert np.array_equal(workloads.decrypt_indices(client, best), np.argsort(-values)[:3])
    second = workloads.kth(x, 2, largest=False)
    assert np.abs(second.decrypt(client) - (10 * np.sort(values)[1] - 5)).max() < 2**-9


@pytest.mark.parametrize("count", [7, 8])
def test_median(count, rng):
    world = World(count)
    values = world.spaced(rng)
    ev = world.context.evaluator(workloads.sorting_keys(world.client, count))
    x = workloads.encrypt_values(world.client, values).bound_to(ev)
    middle = workloads.median(x).decrypt(world.client)
    assert middle.shape == (1,) and abs(middle[0] - np.median(values)) < 2**-10


def test_indices_of_ties_are_seen(four):
    values = np.r_[np.full(2, 0.5), np.linspace(0, 0.4, COUNT - 2)]
    x = workloads.encrypt_indexed(four.client, values).bound_to(four.ev)
    out = workloads.argsort(x)
    assert np.abs(out.decrypt(four.client) - np.sort(values)).max() < 2**-10
    with pytest.raises(ckks.StateError, match="ties") as caught:
        workloads.decrypt_indices(four.client, out)
    assert caught.value.fields == {"index": COUNT - 2, "count": 2}


def test_results_that_mean_nothing_are_refused(four, rng):
    """Numbers beyond the range, which only a broken client can encrypt, make the polynomials explode."""
    x = four.plan.encrypt(four.client, four.spaced(rng), [np.zeros(COUNT)])
    wild = four.client.encrypt(np.tile(rng.uniform(-2, 2, 16), 2), slots=32)
    out = four.plan.run(four.ev, replace(x, columns=(wild, x.columns[1])))
    with pytest.raises(crenel.errors.DivergenceError) as caught:
        out.decrypt(four.client)
    assert caught.value.fields["what"] == "slot" and caught.value.fields["count"] >= 1
    with pytest.raises(crenel.errors.DivergenceError):
        out.decrypt_payload(four.client)
    # Numbers that nobody sorted
    unsorted = replace(x, order="ascending", tolerance=2**-9)
    with pytest.raises(crenel.errors.DivergenceError, match="out of order"):
        unsorted.decrypt(four.client)


def test_other_programs_keys_and_lengths_are_refused(four, rng):
    x = four.plan.encrypt(four.client, four.spaced(rng), [np.zeros(COUNT)])
    for other in (
        workloads.Sorting(four.context.params, COUNT),
        workloads.Sorting(four.context.params, COUNT - 1, payload=1),
        workloads.Sorting(four.context.params, COUNT, payload=1, radix=2),
    ):
        with pytest.raises(ckks.StateError) as caught:
            other.run(four.ev, x)
        assert caught.value.fields["found"] != caught.value.fields["expected"]
    with pytest.raises(ckks.StateError, match="bound_to"):
        workloads.sort(x)
    with pytest.raises(ckks.StateError, match="encrypt_indexed"):
        workloads.argsort(x.bound_to(four.ev))
    zeros = np.zeros(COUNT)
    for values, payload in (
        (zeros[1:], [zeros]),
        (zeros, []),
        (zeros, [np.zeros(COUNT + 1)]),
        (np.full(COUNT, np.nan), [zeros]),
    ):
        with pytest.raises(ckks.ParameterError):
            four.plan.encrypt(four.client, values, payload)
    few = four.client.evaluation_keys(rotations=[1], bootstrap=four.plan.bootstrap)
    with pytest.raises(ckks.KeyMissingError):
        four.plan.run(four.context.evaluator(few), x)


def test_keys_are_for_the_levels_that_are_needed(four, rng):
    plan, client = four.plan, four.client
    assert four.keys.nbytes == plan.key_bytes() == plan.report.key_bytes
    assert plan.key_bytes() < plan.params.key_bytes(rotations=list(plan.rotations), bootstrap=plan.bootstrap)
    x = plan.encrypt(client, four.spaced(rng), [rng.random(COUNT)])
    highest = plan.demand.needs.relinearisation_level
    refused = 0
    for step, level in plan.rotations.items():
        assert four.keys.level_of(step) >= level
        lower = plan.rotations | {step: level - 1}
        keys = client.evaluation_keys(rotations=lower, bootstrap=plan.bootstrap, max_level=highest)
        alike = [other for other in keys.rotations if (other - step) % plan.slots == 0]
        if any(keys.level_of(other) >= level for other in alike):  # the bootstrap's own
            continue
        with pytest.raises(ckks.KeyMissingError, match=f"serves levels up to {level - 1}"):
            plan.run(four.context.evaluator(keys), x)
        refused += 1
    assert refused > 5


@pytest.mark.parametrize("options", [{"top": 3}, {"radix": 2, "payload": 2}, {"top": 5, "descending": True}])
def test_exact_keys_suffice(options, rng):
    world = World(COUNT, **options)
    values = world.spaced(rng)
    x = world.plan.encrypt(world.client, values, [values] * world.plan.payload)
    order = np.sort(values)[:: -1 if world.plan.descending else 1][: world.plan.top]
    assert np.abs(world.plan.run(world.ev, x).decrypt(world.client) - order).max() < 2**-10


@pytest.mark.parametrize("device", [name for name in device_names() if name != "ref"])
@pytest.mark.parametrize("radix", [2, 4])
def test_recorded_rounds_have_the_same_bits(device, radix, rng):
    world = World(COUNT, device, radix=radix, payload=1)
    x = world.plan.encrypt(world.client, world.spaced(rng), [rng.random(COUNT)])

    def bits(out):
        return [c.to_bytes() for c in out.columns]

    eager = world.plan.run(world.ev, x)
    assert bits(world.plan.run(world.ev, x, graph=True)) == bits(eager)
    kept, watch = Recordings(), Stopwatch()
    assert bits(world.plan.run(world.ev, x, graph=kept, stages=watch)) == bits(eager)
    recorded, replays = world.plan.report.recordings
    assert len(kept) == recorded < replays
    assert "comparison" in watch.seconds and watch.counts["exchange"] == len(world.plan.rounds)
    # Another order is other masks, and nothing else.
    down = workloads.Sorting(world.context.params, COUNT, radix=radix, payload=1, descending=True)
    assert bits(down.run(world.ev, x, graph=kept)) == bits(down.run(world.ev, x))
    assert len(kept) == recorded
    with pytest.raises(ckks.StateError, match="another evaluator"):
        world.plan.run(world.context.evaluator(world.keys), x, graph=kept)


def test_recorded_and_eager_runs_share_checkpoints(four, rng, tmp_path):
    x = four.plan.encrypt(four.client, four.spaced(rng), [rng.random(COUNT)])

    class Stop(Exception):
        pass

    def stop(done, state):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        four.plan.run(four.ev, x, checkpoint=tmp_path / "sort", on_round=stop, graph=True)
    again = four.plan.run(four.ev, x, checkpoint=tmp_path / "sort")
    whole = four.plan.run(four.ev, x)
    assert [c.to_bytes() for c in again.columns] == [c.to_bytes() for c in whole.columns]


def test_other_parameters_are_refused(four):
    other = workloads.Sorting(toy("toy-boot35"), COUNT, payload=1)
    values = np.linspace(0, 1, COUNT)
    x = four.plan.encrypt(four.client, values, [values])
    for call in (
        lambda: other.keys(four.client),
        lambda: other.encrypt(four.client, values, [values]),
        lambda: other.run(four.ev, x),
    ):
        with pytest.raises(ckks.StateError, match="the plan's are"):
            call()


def test_a_stopped_run_goes_on_bit_identically(four, rng, tmp_path):
    x = four.plan.encrypt(four.client, four.spaced(rng), [rng.random(COUNT)])
    masks = MaskStore()
    whole = four.plan.run(four.ev, x, masks=masks)
    known = len(masks)
    path = tmp_path / "sort"

    class Stop(Exception):
        pass

    def stop(done, total, what):
        assert (total, what) == (len(four.plan.rounds), "rounds of sorting")
        if done == 3:
            raise Stop

    with pytest.raises(Stop):
        four.plan.run(four.ev, x, checkpoint=path, progress=stop, masks=masks)
    rounds = []
    again = four.plan.run(
        four.ev, x, checkpoint=path, masks=masks, on_round=lambda done, _: rounds.append(done)
    )
    assert rounds == list(range(4, len(four.plan.rounds) + 1))
    assert [c.to_bytes() for c in again.columns] == [c.to_bytes() for c in whole.columns]
    assert len(masks) == known > 0  # nothing is encoded twice
    other = four.plan.encrypt(four.client, four.spaced(rng), [np.zeros(COUNT)])
    with pytest.raises(ckks.StateError, match="another data"):
        four.plan.run(four.ev, other, checkpoint=path)
    down = workloads.Sorting(four.context.params, COUNT, payload=1, descending=True)
    with pytest.raises(ckks.StateError, match="another program"):
        down.run(four.ev, x, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ckks.SerializationError):
        four.plan.run(four.ev, x, checkpoint=path)


def test_a_killed_process_leaves_a_checkpoint(tmp_path):
    """SIGKILL after the second round; another process reads the file and ends the work."""
    code = textwrap.dedent("""
        import sys, os, signal, warnings, pathlib
        warnings.simplefilter("ignore")
        import numpy as np
        from crenel import ckks, workloads
        folder = pathlib.Path(sys.argv[1])
        context = ckks.Context(ckks.preset("toy-boot40", allow_insecure=True), "cpu")
        plan = workloads.Sorting(context.params, 8)
        values = np.linspace(1, 0, 8)
        if sys.argv[2] == "first":
            client = context.keygen()
            (folder / "secret").write_bytes(client.export_secret_key())
            plan.keys(client).save(folder / "keys")
            column = plan.encrypt(client, values)
            (folder / "data").write_bytes(column.columns[0].to_bytes())
        client = context.client_from_secret_key((folder / "secret").read_bytes())
        x = plan.encrypt(client, values)
        from dataclasses import replace
        x = replace(x, columns=(context.ciphertext_from_bytes((folder / "data").read_bytes()),))
        ev = context.evaluator(context.load_evaluation_keys(folder / "keys"))
        def look(done, state):
            print(done, flush=True)
            if sys.argv[2] == "first" and done == 3: os.kill(os.getpid(), signal.SIGKILL)
        out = plan.run(ev, x, checkpoint=folder / "state", on_round=look)
        assert np.abs(out.decrypt(client) - np.sort(values)).max() < 1e-3
    """)

    def run(which: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, str(tmp_path), which]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ)

    first = run("first")
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = run("second")
    assert second.returncode == 0, second.stderr
    assert second.stdout.split() == ["4"]  # of four rounds


@pytest.mark.parametrize("count", [1, 2])
def test_the_smallest_counts(rng, count):
    world = World(count)
    values = rng.random(count)
    out = world.plan.run(world.ev, world.plan.encrypt(world.client, values))
    np.testing.assert_allclose(world.plan.decrypt(world.client, out), np.sort(values), atol=1e-4)


def test_the_state_of_a_sort_is_not_sorted_anew(four, rng):
    x = four.plan.encrypt(four.client, rng.random(COUNT), [np.zeros(COUNT)])
    seen = []

    def stop(done, state):
        seen.append(state)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        four.plan.run(four.ev, x, on_round=stop)
    with pytest.raises(crenel.StateError, match="after some rounds"):
        four.plan.run(four.ev, seen[0])


def test_checkpoints_that_no_run_has_written(four, rng, tmp_path):
    """Checksums are not signatures: what they are of is looked at, too."""
    x = four.plan.encrypt(four.client, rng.random(COUNT), [np.zeros(COUNT)])
    belongs, path = running.belonging(four.plan, x), tmp_path / "s"
    good = {f"column {place}": column for place, column in enumerate(x.columns)}
    short = four.client.encrypt(np.zeros(4), slots=4)
    for progress, parts in (
        *[({"rounds": r}, good) for r in ("x", -1, 0, 10**6, 1.5, True)],
        ({}, good),
        ({"rounds": 1}, {"column 0": x.columns[0]}),
        ({"rounds": 1}, {"column 0": x.columns[0], "b": x.columns[1]}),
        ({"rounds": 1}, {"column 0": x.columns[0], "column 1": short}),
    ):
        checkpoint.save(path, "sort", belongs, progress, parts)
        with pytest.raises(crenel.SerializationError, match="expected 1 to"):
            four.plan.run(four.ev, x, checkpoint=path)
