"""Numbers that launches go by: set, searched with a timer that stands in for a GPU, stored and checked."""

import json

import numpy as np
import pytest
from conftest import open_context, toy

import crenel
from crenel import ckks, tuning, tuning_times
from crenel._crenel import default_tuning
from crenel.cli import main
from crenel.tuning import Choice, Tuning, set_tuning, tunables, tuning_of

DEFAULTS = {"part_bytes": 60 << 20, "row_polys": 4, "row_blocks": 2112, "conversion_start": 8}
DEFAULTS |= {"conversion_outputs": 64, "sums_walk": 1, "folded_matrices": 4, "conversion_early": 1}
DEFAULTS |= {"conversion_granule": 8, "conversion_pairs": 1, "passes_early": 1}
DEFAULTS |= {"discard_read": 1}
DEFAULTS |= {"switch_rows": 64, "switch_blocks": 4}
# since files were first written
ADDED = ("sums_walk", "folded_matrices", "conversion_early", "conversion_granule", "conversion_pairs")
ADDED += ("passes_early", "discard_read")
BEFORE = {name: value for name, value in DEFAULTS.items() if name not in ADDED}


@pytest.fixture
def dry():
    try:
        return crenel.Device("cuda:dry")
    except crenel.DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture
def rng():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


def of(device="a GPU", processors=1, **more):
    """A tuning of random right numbers where none are given."""
    return Tuning(device, processors, Choice({**DEFAULTS, **more}, ("held_sources",)))


def test_the_names_here_are_those_of_the_library():
    assert set(tunables()) == set(DEFAULTS)
    assert all(least <= DEFAULTS[name] <= most and text for name, (least, most, text) in tunables().items())
    assert set(tuning.SWITCHES) <= set(crenel.Optimisations.meanings())
    tried = dict(tuning.candidates(DEFAULTS))
    assert set(tried) == {*DEFAULTS, *tuning.SWITCHES}
    for name, values in tried.items():
        if name in DEFAULTS:
            least, most, _ = tunables()[name]
            assert all(least <= value <= most for value in values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([("row_polys", 2)], "a list, expected names and their numbers"),
        ({"row_polys": 2.0}, "tuning of 'row_polys': 2.0, expected whole numbers"),
        ({"row_polys": True}, "True, expected whole numbers"),
        ({"row_polys": "2"}, "'2', expected whole numbers"),
        ({"row_polys": -1}, "-1, expected whole numbers"),
        ({"row_polys": 1 << 64}, "expected whole numbers of 64 bits"),
        ({3: 2}, "tuning of 3: 2, expected whole numbers"),
    ],
)
def test_what_is_no_mapping_of_numbers_is_refused_with_a_typed_error(values, said):
    with pytest.raises(crenel.ParameterError, match=said):
        set_tuning(crenel.Device("cpu"), values)
    with pytest.raises(crenel.ParameterError, match="a str, expected a Device"):
        set_tuning("cpu", {})


def test_other_devices_have_none():
    for name in ("cpu", "ref"):
        with pytest.raises(crenel.UnsupportedError, match=f"device {name} has no tuning, expected a CUDA"):
            tuning_of(crenel.Device(name))
        with pytest.raises(crenel.UnsupportedError):
            set_tuning(crenel.Device(name), {"row_polys": 2})


def test_a_model_has_those_of_its_gpu(dry):
    assert tuning_of(dry) == default_tuning(dry)
    assert tuning_of(dry)["part_bytes"] == (50 << 20) // 4 * 5 and tuning_of(dry)["row_blocks"] == 132 * 16
    set_tuning(dry, {"row_polys": 2})
    assert tuning_of(dry) == {**default_tuning(dry), "row_polys": 2}


def test_parts_of_a_device_go_by_the_same_numbers(dry):
    both = crenel.Device("cuda:dry:0+1")
    assert tuning_of(both) == default_tuning(both) == default_tuning(dry)
    set_tuning(both, {"row_polys": 3})
    assert [tuning_of(part)["row_polys"] for part in both.parts] == [3, 3]
    set_tuning(both.parts[1], {"row_polys": 5})
    with pytest.raises(
        crenel.StateError, match="cuda:dry:0.1 differ in row_polys: 3 of cuda:dry:0, 5 of cuda:dry:1"
    ):
        tuning_of(both)
    with pytest.raises(crenel.ParameterError, match="row_polys is 0"):
        set_tuning(both, {"row_polys": 0})
    assert [tuning_of(part)["row_polys"] for part in both.parts] == [3, 5]
    set_tuning(both, {"row_polys": 4})
    assert tuning_of(both) == {**default_tuning(both), "row_polys": 4}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"row_polys": 0}, "row_polys is 0, expected 1 to 64"),
        ({"row_polys": 65, "switch_rows": 1}, "row_polys is 65, expected 1 to 64"),
        ({"part_bytes": 1}, "part_bytes is 1, expected 524288 to"),
        ({"conversion_outputs": 4}, "expected 8 to 64"),
        ({"speed": 9}, 'tuning of "speed", expected one of part_bytes, row_polys'),
    ],
)
def test_numbers_out_of_range_are_refused_and_change_nothing(dry, values, said):
    before = tuning_of(dry)
    with pytest.raises(crenel.ParameterError, match=said):
        set_tuning(dry, values)
    assert tuning_of(dry) == before


def launches(device):
    """Of a key switch and a rescale on a ring whose polynomials are larger than the least part."""
    context = open_context(toy("toy-boot40"), device)
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    a = client.encrypt(np.zeros((16, context.params.slots)))
    with crenel.profile(context) as account:
        ev.rescale(ev.multiply(a, a))
    return [(r["kernel"], r["limbs"], r["written_bytes"]) for r in account.records()]


def test_parts_are_as_large_as_they_say(dry):
    whole = launches(dry)
    set_tuning(dry, {"part_bytes": 1 << 19})
    parts = launches(dry)
    assert len(parts) > len(whole)
    for kernel in ("base_convert", "column_forward"):
        few = [size for name, _, size in whole if name == kernel]
        many = [size for name, _, size in parts if name == kernel]
        assert len(many) > len(few) and sum(many) == sum(few)  # the same work, in more pieces
    set_tuning(dry, default_tuning(dry))
    assert launches(dry) == whole


def test_bits_do_not_depend_on_them(rng):
    """On a GPU: random numbers, the same ciphertexts."""
    try:
        device = crenel.Device("cuda")
    except crenel.DeviceError as error:
        pytest.skip(str(error))
    context = open_context(toy("toy-boot40"), device)
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys(rotations=[1]))
    a = client.encrypt(rng.uniform(-1, 1, (16, context.params.slots)))

    def results():
        product = ev.multiply(a, a)
        return [c.to_bytes() for c in (product, ev.rescale(product), ev.rotate(a, 1))]

    expected = results()
    for _ in range(12):
        values = {
            n: min(high, int(np.exp(rng.uniform(np.log(max(low, 1)), np.log(high)))))
            for n, (low, high, _) in tunables().items()
        }
        print(values)
        set_tuning(device, values)
        assert results() == expected


class Timer:
    """Stands in for a GPU: every number has a best value, and times grow with the distance from it."""

    def __init__(self, rng, best, noise=0.0):
        self.rng, self.best, self.noise, self.calls = rng, best, noise, 0

    def __call__(self, choice, name):
        self.calls += 1
        cost = sum(abs(np.log2(max(choice.values[n], 0.5) / max(b, 0.5))) for n, b in self.best.items())
        slow = 1.05 ** (cost + len(choice.off))
        return {w: 100 * slow * self.rng.uniform(1, 1 + self.noise) for w in ("a", "b")}


def test_each_number_has_a_workload_that_it_changes(dry, rng):
    """By the account: linear transforms show the walk of sums, conversions alone their start."""
    seed = int(rng.integers(2**32))
    first, alone = tuning_times.operations(dry, "leveled-n16-s40", seed)
    sums = tuning_times.sums(dry, "leveled-n16-s40", seed)
    assert not {*first} & {*alone, *sums}

    def records(bench, values, **off):
        dry.optimisations = crenel.Optimisations(**off)
        set_tuning(dry, {**default_tuning(dry), **values})
        with crenel.profile(bench.context) as account:
            bench.work(*bench.inputs)
        return account.records()

    for bench in sums.values():
        found = records(bench, {})
        assert {"hoisted_sums", "shared_sums"} & {record["kernel"] for record in found}
        assert found != records(bench, {"sums_walk": 0})
    for bench in first.values():
        found = records(bench, {})
        assert not {"hoisted_sums", "shared_sums", "base_convert"} & {record["kernel"] for record in found}
        assert found == records(bench, {"sums_walk": 0}) == records(bench, {"conversion_start": 0})
    for bench in alone.values():
        found = records(bench, {}, convert_columns=False)
        assert "base_convert" in {record["kernel"] for record in found}
        assert found != records(bench, {"conversion_start": 0}, convert_columns=False)


def test_what_is_timed_of_a_number(dry, monkeypatch):
    """Of gates, sums and conversions alone what only these show; of all else what programs run."""
    made = {"operations": ({"a": 1}, {"alone": 2}), "sums": {"sums": 3}, "_gates": {"gates": 4}}
    for name, workloads in made.items():
        monkeypatch.setattr(tuning_times, name, lambda *_, found=workloads: found)
    monkeypatch.setattr(tuning_times.Workloads, "_gate", lambda self, name, run: 1.0)
    seen = []

    def timed(self, benches, wanted):
        seen.append((*benches, wanted.off))
        return dict.fromkeys(benches, 1.0)

    monkeypatch.setattr(tuning_times.Workloads, "_ckks", timed)

    class Gpu:
        name, parts, optimisations = "cuda:0", (), crenel.Optimisations()

    monkeypatch.setattr(Choice, "apply", lambda self, device: None)
    workloads = tuning_times.Workloads(Gpu(), "", "bool128", 1, 0.0, 0)
    choice = Choice(DEFAULTS)
    assert set(workloads.times(choice)) == {"a", "sums", "alone", "gates"}
    assert set(workloads.times(choice, "part_bytes")) == {"a", "sums"}
    assert set(workloads.times(choice, "launch_overlap")) == {"a", "sums"}
    assert set(workloads.times(choice, "sums_walk")) == {"sums"}
    seen.clear()
    assert set(workloads.times(choice, "conversion_start")) == {"alone"}
    assert seen == [("alone", ["convert_columns"])]
    assert set(workloads.times(choice, "switch_rows")) == {"gates"}


def test_the_search_finds_what_is_best(rng):
    every = dict(tuning.candidates(DEFAULTS))
    others = {name: [v for v in values if v != DEFAULTS.get(name)] for name, values in every.items()}
    for _ in range(20):
        best = {name: int(rng.choice(values)) for name, values in every.items() if name in DEFAULTS}
        timer = Timer(rng, best)
        found, steps = tuning.search(timer, Choice(DEFAULTS))
        assert found == Choice(best)
        taken = {step.name for step in steps if step.taken}
        assert taken == {n for n in best if best[n] != DEFAULTS[n]}
        # Of each what there was, every other value, and both again of what is taken.
        assert timer.calls == sum(1 + len(values) for values in others.values()) + 2 * len(taken)


def test_noise_below_the_gain_changes_nothing(rng):
    for _ in range(50):
        found, steps = tuning.search(Timer(rng, DEFAULTS, noise=0.009), Choice(DEFAULTS))
        assert found == Choice(DEFAULTS) and not any(step.taken for step in steps)


def test_a_switch_that_slows_is_left_off(rng):
    def timer(choice, name):
        return {"a": 90.0 if "launch_overlap" in choice.off else 100.0}

    found, _ = tuning.search(timer, Choice(DEFAULTS))
    assert found == Choice(DEFAULTS, ("launch_overlap",))


def test_a_number_without_a_workload_is_left(rng):
    found, steps = tuning.search(lambda choice, name: {}, Choice(DEFAULTS))
    assert found == Choice(DEFAULTS) and steps == []


def test_files_come_back_and_set_a_device(dry, tmp_path):
    path = tmp_path / "t.json"
    stored = of(dry.description, dry.processors, part_bytes=1 << 20)
    path.write_text(stored.to_json())
    assert tuning.load(path) == stored
    device = crenel.tuned("cuda:dry", path)
    assert tuning_of(device) == {**DEFAULTS, "part_bytes": 1 << 20}
    assert device.optimisations.off == ["held_sources"]
    assert ckks.Context(toy("toy-boot40"), device=device).device is device


def test_of_another_device(dry, tmp_path):
    path = tmp_path / "t.json"
    for stored in (of("NVIDIA H100", dry.processors), of(dry.description, dry.processors + 1)):
        path.write_text(stored.to_json())
        before = tuning_of(dry)
        with pytest.raises(crenel.DeviceError, match="crenel tune finds one for it"):
            crenel.tuned(dry, path)
        assert tuning_of(dry) == before and dry.optimisations.off == []
    with pytest.raises(crenel.UnsupportedError):
        crenel.tuned("cpu", path)


def test_files_are_of_a_number_of_parts(dry, tmp_path):
    two, path = crenel.Device("cuda:dry:0+1"), tmp_path / "t.json"
    for device, others in (two, ("cuda:dry", "cuda:dry:0+1+2")), (dry, ("cuda:dry:0+1",)):
        path.write_text(of(device.description, device.processors, row_polys=7).to_json())
        for name in others:
            with pytest.raises(crenel.DeviceError, match="crenel tune finds one for it"):
                crenel.tuned(name, path)
    path.write_text(of(two.description, two.processors, row_polys=7).to_json())
    set_tuning(two.parts[0], {"row_polys": 5})  # parts that differ are set like any others
    assert crenel.tuned(two, path) is two
    assert [tuning_of(part)["row_polys"] for part in two.parts] == [7, 7]
    assert two.optimisations.off == ["held_sources"]


def resigned(change):
    """A file whose digest fits what was changed: somebody who knows the format wrote it."""
    body = json.loads(of().to_json())
    change(body)
    body.pop("sha256", None)
    return json.dumps({**body, "sha256": tuning._digest(body)})


def changed(key, value):
    return lambda body: body.__setitem__(key, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSON of kind crenel-tuning"),
        ("[" * 100_000, "JSON of kind crenel-tuning"),
        ('{"kind": 1, "kind": 2}', "every name once"),
        (" " * (tuning.MOST_BYTES + 1), "at most 1048576 bytes"),
        (of().to_json().replace("2112", "2113"), "the file was changed"),
        (resigned(changed("format", 2)), "format 1"),
        (resigned(changed("kind", "crenel-bench")), "kind crenel-tuning"),
        (resigned(changed("values", {})), "values of part_bytes.*, but lacks part_bytes"),
        (resigned(changed("values", {**DEFAULTS, "speed": 1})), "values of part_bytes.*, but has speed:"),
        (resigned(changed("values", BEFORE)), f"but lacks {', '.join(ADDED)}:"),
        (resigned(changed("values", {**BEFORE, "\x1b[2J": 1})), rf"{ADDED[-1]}; has .x1b.2J: "),
        (resigned(changed("values", {**DEFAULTS, "row_polys": True})), "row_polys of 1 to 64, found True"),
        (resigned(changed("values", {**DEFAULTS, "row_polys": 10**30})), "row_polys of 1 to 64"),
        (resigned(changed("values", {**DEFAULTS, "row_polys": "4"})), "row_polys of 1 to 64"),
        (resigned(changed("off", ["merged_rescale"])), "off: some of launch_overlap"),
        (resigned(changed("off", ["division", "division"])), "off: some of"),
        (resigned(changed("off", [["division"]])), "off: some of"),
        (resigned(changed("processors", True)), "processors, int"),
        (resigned(changed("steps", [{"name": 1}])), "steps of name"),
        (resigned(changed("more", 1)), "nothing else, but has 'more'"),
        (resigned(changed("format", True)), "format 1"),
        (resigned(changed("device", "H100 \x1b[2J")), "device, one line of 200 characters at most"),
        (resigned(changed("device", "x" * 201)), "device, one line of 200 characters at most"),
        (resigned(lambda body: body.pop("device")), "device, str"),
    ],
)
def test_forged_files_are_refused(text, said, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(crenel.SerializationError, match=said):
        tuning.load(path)


def test_files_cut_anywhere_are_refused(rng, tmp_path):
    data = of().to_json().encode()
    path = tmp_path / "t.json"
    for at in rng.integers(0, len(data) - 2, 50):
        path.write_bytes(data[:at])
        with pytest.raises(crenel.SerializationError):
            tuning.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(crenel.SerializationError, match="UTF-8"):
        tuning.load(path)


def test_the_command_refuses_what_cannot_be_timed(dry, tmp_path, capfd):
    assert main(["tune", "--device", "cuda:dry"]) not in (0, None)
    assert "computes nothing" in capfd.readouterr().err
    assert main(["tune", "--device", "cpu+cpu"]) not in (0, None)
    assert "device cpu+cpu has no tuning" in capfd.readouterr().err
    assert main(["tune", "--device", "cuda:dry:0+1"]) not in (0, None)
    assert "computes nothing" in capfd.readouterr().err
    assert main(["tune", "--device", "cuda:dry", "--json", __file__]) not in (0, None)
    assert "expected a new file" in capfd.readouterr().err


def test_the_command_stores_what_it_found(dry, tmp_path, monkeypatch, capfd):
    """With a timer that stands in for the GPU's."""
    import crenel.tuning_times

    class Workloads:
        def __init__(self, device, params, gates, *more):
            assert gates == (None if device.parts else "std128")

        def times(self, choice, of=""):
            return {"a": 100.0 + choice.values["row_polys"]}

    monkeypatch.setattr(crenel.tuning_times, "Workloads", Workloads)
    path = tmp_path / "t.json"
    assert main(["tune", "--device", "cuda:dry", "--json", str(path)]) in (0, None)
    assert "taken" in capfd.readouterr().out
    assert crenel.tuning.load(path).choice == Choice({**default_tuning(dry), "row_polys": 1})
    crenel.tuned(dry, path)
    assert tuning_of(dry)["row_polys"] == 1
    assert "no gates" not in capfd.readouterr().out
    assert main(["tune", "--device", "cuda:dry:0+1"]) in (0, None)
    assert "no gates: cuda:dry:0+1 shares ciphertexts of CKKS alone" in capfd.readouterr().out
