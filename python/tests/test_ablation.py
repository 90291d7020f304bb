"""Optimisations: each can be turned off, changes what a GPU does, and keeps results; and their ladders."""

import json
import pickle

import numpy as np
import pytest
from conftest import open_context, toy
from needed import needs

import crenel
from crenel import ablation, ablation_algorithm, ckks
from crenel._crenel import default_tuning
from crenel.cli import main
from crenel.tuning import tunables, tuning_of

NAMES = list(crenel.Optimisations.meanings())
SMALL, CHAIN = "toy-leveled-n13-s40", "toy-boot40"
SERIES = [0.1, -0.2, 0.3, 0.4, 0.0, -0.1, 0.05, 0.02]
DIAGONALS = (0, 1, 2, 3, 5, 8, 9, 13)


@pytest.fixture
def fresh() -> np.random.Generator:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


@pytest.fixture
def dry_device() -> str:
    try:
        return crenel.Device("cuda:dry").name
    except crenel.DeviceError as error:
        assert "built without CUDA" in str(error)
        pytest.skip(str(error))


def test_a_set_of_switches():
    everything = crenel.Optimisations()
    assert everything.off == [] and repr(everything) == "crenel.Optimisations()"
    assert crenel.Optimisations.none().off == NAMES and len(NAMES) == len(set(NAMES)) > 20
    for name in NAMES:
        without = crenel.Optimisations(**{name: False})
        assert without.off == [name] and not getattr(without, name) and getattr(everything, name)
        assert without == everything.replace(**{name: False}) != everything
        assert hash(without) != hash(everything)
        assert without.replace(**{name: True}) == everything
        assert pickle.loads(pickle.dumps(without)) == without
    with pytest.raises(crenel.ParameterError, match=r'"magic", expected one of tensor, '):
        crenel.Optimisations(magic=False)
    with pytest.raises(TypeError, match="expected a bool, got int"):
        crenel.Optimisations(tensor=0)
    with pytest.raises(AttributeError):
        everything.tensor = False


def test_a_device_has_them():
    device = crenel.Device("cpu", crenel.Optimisations(graphs=False))
    assert device.optimisations.off == ["graphs"]
    device.optimisations = crenel.Optimisations()
    assert device.optimisations == crenel.Optimisations() == crenel.Device("ref").optimisations


class World:
    """Every operation that a switch is about, on a device."""

    def __init__(self, device, rng, params=None):
        self.context = open_context(params or toy(CHAIN), device)
        self.device = self.context.device
        slots = self.context.params.slots
        level = self.context.params.normal_top_level
        client = self.client = self.context.keygen()
        diagonals = {k: rng.uniform(-0.2, 0.2, slots) for k in DIAGONALS}
        self.transforms = [
            self.context.linear_transform(diagonals, level=level, baby_steps=4, keys=keys)
            for keys in ("hoisted", "minimal")
        ]
        steps = {1, 2, *(step for each in self.transforms for step in each.rotations)}
        self.ev = self.context.evaluator(client.evaluation_keys(rotations=sorted(steps)))
        self.a, self.b = (client.encrypt(rng.uniform(-1, 1, slots), level=level) for _ in range(2))

    def run(self):
        ev, a = self.ev, self.a
        product = ev.multiply(a, self.b)
        graph = ckks.Graph(ev, ev.rescale, product)
        return [
            product,
            graph(product),
            ev.relinearise(ev.multiply_lazy(a, self.b)),
            ev.rotate(a, 1),
            ev.rotate_sum(a, [0, 1, 2]),
            ev.polynomial(a, SERIES, basis="chebyshev", interval=(-2, 2)),
            *(ev.linear_transform(transform, a) for transform in self.transforms),
        ]

    def under(self, optimisations):
        before, self.device.optimisations = self.device.optimisations, optimisations
        try:
            return self.run()
        finally:
            self.device.optimisations = before


def digests(results):
    return [result.to_bytes() for result in results]


def test_results_without_them(fresh):
    world = World("cpu", fresh)
    expected = world.run()
    bits = digests(expected)
    for name in NAMES:
        found = world.under(crenel.Optimisations(**{name: False}))
        if name in ablation.INEXACT:
            for one, other in zip(found, expected, strict=True):
                assert np.abs(world.client.decrypt(one) - world.client.decrypt(other)).max() < 2**-15
        else:
            assert digests(found) == bits, name
    every = crenel.Optimisations.none().replace(merged_rescale=True)
    assert digests(world.under(every)) == bits


def test_each_changes_what_a_gpu_does(fresh, dry_device):
    # Of N = 2^16: smaller rings have no kernels for some.
    world = World(dry_device, fresh, ckks.preset("boot40"))

    def account(optimisations):
        with crenel.profile(world.context) as found:
            world.under(optimisations)
        return found.records()

    world.run()
    everything = crenel.Optimisations()
    whole = account(everything)
    apart = everything.replace(product_rows=False)  # with it the passes of a key switch make products
    launched = account(apart)
    assert ablation.UNUSED["bootstrap"]["entries_apart"]  # of devices of several parts
    for name in set(NAMES) - {"entries_apart"}:
        product = name in ("tensor_square", "doubling")
        before, found = (apart, launched) if product else (everything, whole)
        assert account(before.replace(**{name: False})) != found, name
    assert account(everything) == whole
    assert len(account(crenel.Optimisations.none())) > 2 * len(whole)


def test_ladders_are_of_known_switches():
    for operation, own in ablation.LADDERS.items():
        for ladder in own:
            before = None
            for rung, wanted in ladder.configurations():
                assert set(rung.adds) <= set(ablation.ALL), (operation, rung.name)
                assert before is None or wanted != before, (ladder.name, rung.name)
                before = wanted
    last = [wanted for _, wanted in ablation.OURS.configurations()][-1]
    assert last == crenel.Optimisations()
    named = [fusion.name for fusion in ablation.FUSIONS]
    assert named == ["Seq.1", "Seq.2", "Seq.3", "Par.1", "Par.2", "Par.3", "Par.4", "Par.5"]
    for fusion in ablation.FUSIONS:
        assert set(fusion.switches) <= set(ablation.ALL) and (fusion.switches or fusion.note)


def test_bench_ablation_on_the_dry_device(capsys, tmp_path, dry_device):
    needs("demo", "matplotlib")
    file, picture = tmp_path / "ablation.json", tmp_path / "ablation.png"
    arguments = ["bench", "ablation", "--params", "toy-boot40", "--device", "cuda:dry", "--limbs", "24"]
    assert main([*arguments, "--json", str(file), "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    for word in ("Theodosian, Fig. 8a", "Cheddar, Table 8", "+SeqFuse", "each off alone", "Par.5", "Seq.2",
                 "complementary pipelining: no switch", "at the ceilings of one NVIDIA H200",
                 "sums_walk 0: warps", "by the algorithm: complex", "the same bits as the rung before",
                 "launch_overlap: when a launch begins"):  # fmt: skip
        assert word in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(file.read_text())
    assert found["kind"] == "crenel-ablation" and found["provenance"]["device"] == "cuda:dry"
    boot = found["operations"][0]
    assert boot["operation"] == "bootstrap"
    rungs = [row for row in boot["rows"] if row["ladder"] == "crenel"]
    assert rungs[0]["off"] == NAMES and rungs[-1]["off"] == []
    assert rungs[0]["bytes"] > 2 * rungs[-1]["bytes"] and rungs[0]["digest"] is None
    assert rungs[0]["paced_us"] > rungs[0]["bound_us"] > rungs[-1]["bound_us"]
    whole, *own = [row for row in boot["rows"] if row["ladder"] == "without"]
    assert [row["rung"] for row in own] == NAMES and whole["off"] == []
    numbers = [row for row in boot["rows"] if row["ladder"] == "numbers"]
    assert [row["numbers"] for row in numbers] == [{p.name: p.value} for p in ablation.PLAIN]
    assert all(row["launches"] and row["off"] == [] for row in numbers)
    plain, *savings = [row for row in boot["rows"] if row["ladder"] == "algorithm"]
    assert plain["options"]["over_mod_raise"] is False and savings[-1]["options"]["aligned_keys"] is True
    assert plain["bytes"] > savings[-1]["bytes"] and plain["correct"] is None
    assert found["operations"][0]["ceilings_of"] == "NVIDIA H200" and "algorithm" in boot["ladders"]
    assert main([*arguments, "--json", str(file)]) == 2
    assert "expected a new file" in capsys.readouterr().err


def test_bench_ablation_measures_and_compares(capsys, tmp_path):
    file = tmp_path / "ablation.json"
    arguments = ["bench", "ablation", "--params", SMALL, "--device", "cpu", "--operations", "key_switch"]
    assert main([*arguments, "--limbs", "4", "--repeats", "1", "--json", str(file)]) == 0
    assert "us bound" not in capsys.readouterr().out
    rows = json.loads(file.read_text())["operations"][0]["rows"]
    assert all(row["correct"] and row["latency_us"] > 0 and row["repeats"] == 1 for row in rows)
    assert len({row["digest"] for row in rows}) == 1 and all(row["error"] < 2**-15 for row in rows)


def test_bench_ablation_says_what_is_wrong(capsys):
    assert main(["bench", "ablation", "--operations", "sorting"]) == 2
    assert "operation 'sorting', expected some of bootstrap, key_switch" in capsys.readouterr().err
    assert main(["bench", "ablation", "--limbs", "many"]) == 2
    assert "--limbs many" in capsys.readouterr().err


def test_bench_ablation_refuses_models_of_several_gpus(capsys, dry_device):
    assert main(["bench", "ablation", "--device", "cuda:dry:0+1", "--params", "toy-boot40"]) == 2
    assert "cuda:dry:0+1 computes nothing, and bounds are of one GPU's launches" in capsys.readouterr().err


def test_other_bits_are_found():
    """What judges results: other bits of an exact one are wrong, of an inexact one beyond its error too."""

    class Client:
        def decrypt(self, result):
            return np.array([result.value])

    class Result:
        def __init__(self, value):
            self.value = value

        def to_bytes(self):
            return str(self.value).encode()

    class Bench:
        client, expected = Client(), np.array([1.0])

    first = ablation.Measured("", "", [])
    ablation._judge(Bench(), first, Result(1.001), None)
    assert first.correct and first.error == pytest.approx(0.001)
    for value, off, right in (
        (1.001, ["tensor"], True),
        (1.0011, ["tensor"], False),
        (1.0011, ["tensor", "merged_rescale"], True),
        (1.1, ["merged_rescale"], False),
    ):
        found = ablation.Measured("", "", off)
        ablation._judge(Bench(), found, Result(value), first)
        assert found.correct is right, (value, off)


def test_numbers_of_launches_are_rungs_or_say_why_not():
    plain = [each.name for each in ablation.PLAIN]
    assert {*plain, *ablation.NOT_PLAIN} == set(tunables()) and len(plain) == len(set(plain))
    assert not set(plain) & set(ablation.NOT_PLAIN)
    for each in ablation.PLAIN:
        least, most, _ = tunables()[each.name]
        assert least <= each.value <= most and each.note, each.name


def test_numbers_are_at_their_plain_value_while_they_are_measured(dry_device):
    device = crenel.Device(dry_device)
    begun = default_tuning(device)
    assert all(begun[each.name] != each.value for each in ablation.PLAIN)
    bench = ablation.prepare(toy(CHAIN), device, "key_switch", 24, 0)
    seen = []
    work = bench.work

    def watched(*inputs):
        seen.append(tuning_of(device))
        return work(*inputs)

    bench.work = watched
    ablation.ladders(bench, 1, 0.0)
    for each in ablation.PLAIN:
        assert {**begun, each.name: each.value} in seen, each.name
    assert tuning_of(device) == begun and seen[0] == begun
    with pytest.raises(crenel.ParameterError, match="row_polys is 0, expected 1 to 64"):
        ablation.run(bench, crenel.Optimisations(), 1, 0.0, None, {"row_polys": 0})
    assert tuning_of(device) == begun and device.optimisations == crenel.Optimisations()


def test_what_changes_no_launch_says_why(dry_device):
    """Of N = 2^16, whose launches are those that a GPU is measured by."""
    for operation, limbs in (("bootstrap", 0), ("key_switch", 24)):
        bench = ablation.prepare(ckks.preset("boot40"), crenel.Device(dry_device), operation, limbs, 0)
        everything = crenel.Optimisations()
        first = ablation.run(bench, everything, 1, 0.0, None)
        without = {
            name: ablation.run(bench, everything.replace(**{name: False}), 1, 0.0, None) for name in NAMES
        }
        same = {name for name, row in without.items() if row.states() == first.states()}
        assert same == set(ablation.UNUSED[operation]), operation


def test_savings_of_the_algorithm_keep_bits_or_errors(fresh):
    seed = int(fresh.integers(2**32))
    bench = ablation.prepare(toy(CHAIN), crenel.Device("cpu"), "bootstrap", 0, seed)
    rows = ablation_algorithm.ladders(bench, 1, 0.0, seed)
    named = [(case.name, step.name) for case in ablation_algorithm.CASES for step in case.steps]
    assert [(row.ladder, row.rung) for row in rows] == named
    assert all(row.correct and row.latency_us and row.digest and row.expected_error for row in rows)
    by = {row.rung: row for row in rows}
    assert by["+sums in place"].digest == by["+OverModRaise"].digest != by["plain"].digest
    assert by["+keys for aligned levels"].digest != by["+sums in place"].digest
    for row in rows:
        assert row.note.endswith((ablation_algorithm.SAME, ablation_algorithm.WITHIN))
        assert row.error <= ablation_algorithm.SLACK * row.expected_error


def test_other_errors_of_the_algorithm_are_found():
    def measured(digest, error):
        return ablation.Measured("", "", [], digest=digest, error=error)

    before = measured("a", 1e-6)
    for found, other, right in (
        (measured("a", 1e-6), before, True),
        (measured("b", 1e-6), before, False),  # where bits must be the same a small error is no excuse
        (measured("b", 7.9e-6), None, True),
        (measured("b", 8.1e-6), None, False),
        (measured(None, None), None, None),
    ):
        ablation_algorithm.judge(found, other, 1e-6)
        assert found.correct is right
