"""Export of profiler reports, composition of operations. No GPU, no CUDA tools."""

from __future__ import annotations

import gzip

import pytest

from fhecore.sim import bootstrapping, collect, compose, params, profiles, report, trace, validate


class Metric:
    """A metric of ncu_report, as far as the export uses it."""

    def __init__(self, value=0.0, ids=(), values=()):
        self.value, self.ids, self.values = value, ids, values

    def as_double(self, k=None):
        return float(self.value if k is None else self.values[k])

    def as_uint64(self, k):
        return int(self.ids[k])

    as_string = as_uint64

    def num_instances(self):
        return len(self.values)

    def has_correlation_ids(self):
        return bool(self.ids)

    def correlation_ids(self):
        return Opcodes(ids=self.ids) if isinstance(self.ids[0], str) else self


class Opcodes(Metric):
    def as_string(self, k):
        return self.ids[k]


def test_export_of_a_report():
    metrics = {
        "inst_executed": Metric(ids=(0x7F00, 0x7F10, 0x7F20), values=(6, 6, 12)),
        "memory_l1_wavefronts_shared": Metric(ids=(0x7F10,), values=(24,)),
        "sass__inst_executed_per_opcode": Metric(ids=("IMAD", "EXIT"), values=(18, 6)),
        "smsp__inst_executed.sum": Metric(24), "launch__grid_dim_x": Metric(3),
        "launch__grid_dim_y": Metric(1), "launch__grid_dim_z": Metric(1),
        "device__attribute_clock_rate": Metric(7),
    }  # fmt: skip

    class Action:
        name = staticmethod(lambda base: f"_Z4workv{base - 2 or ''}")
        metric_names = staticmethod(lambda: list(metrics))
        metric_by_name = staticmethod(metrics.__getitem__)

    entry = collect.launch(Action, object())
    assert entry["function"] == "_Z4workv" and entry["grid"] == [3, 1, 1] and entry["block"] is None
    assert entry["by_pc"]["inst_executed"] == [[0, 6], [16, 6], [32, 12]]
    assert entry["by_pc"]["memory_l1_wavefronts_shared"] == [[16, 24]]
    assert entry["opcodes"] == {"IMAD": 18, "EXIT": 6}
    assert "device__attribute_clock_rate" not in entry["metrics"]


def test_operations_must_be_the_planned_launches(monkeypatch):
    class Launch:
        metrics, accesses = {}, {}

        def __init__(self, name):
            self.name = name

    names = [kernel for kernel, _ in compose.PLAN["rescale"]]
    unit = {f"{case}_47": Launch(case) for _, case in compose.PLAN["rescale"]}
    monkeypatch.setattr(profiles, "in_place_of", lambda old, new: new)
    steps = compose.steps("rescale_47", [Launch(n) for n in names], unit)
    assert [new.name for _, new in steps] == [case for _, case in compose.PLAN["rescale"]]
    with pytest.raises(bootstrapping.ComposeError, match="planned"):
        compose.steps("rescale_47", [Launch(n) for n in names[1:]], unit)


def test_bootstrap_composition():
    text = '==PROF== noise\n"ID","Kernel Name","Metric Name","Metric Value"\n'
    for k, (kernel, count, ns) in enumerate(
        (("void row_forward<8>(Args, Limbs)", "1,000", "2000"), ("hoisted_plain_sums", "500", "1000"))
    ):
        text += f'"{k}","{kernel}","smsp__inst_executed.sum","{count}"\n'
        text += f'"{k}","{kernel}","gpu__time_duration.sum","{ns}"\n'
    done = bootstrapping.bootstrap(text, {"row_forward": {"instructions": 0.25, "us": 0.5}})
    assert done["classes"]["NTT"] == {"launches": 1, "base": 1000, "with": 250, "us": 2, "with_us": 1}
    assert done["classes"]["element-wise and other"]["with"] == 500
    records = [
        {"work": "ntt", "kernel": "row_forward", "limbs": 5, "polys": 2, "multiply_adds": 7},
        {"work": "key", "kernel": "hoisted_plain_sums", "limbs": 1, "polys": 1, "multiply_adds": 9},
    ]
    costs = bootstrapping.costs(text, records)
    assert costs["row_forward"] == (100, 0.2)
    choice = {
        "coeff_to_slot": 2,
        "slot_to_coeff": 2,
        "levels_left": 9,
        "kernels": {"row_forward": [3, 20, 1]},
    }
    (row,) = bootstrapping.sweep(
        {"sweep": [choice]}, costs, {"row_forward": {"instructions": 0.25, "us": 0.5}}
    )
    assert (row["base"], row["with"], row["us"], row["with_us"]) == (2000, 500, 4, 2)
    with pytest.raises(bootstrapping.ComposeError, match="no cost of binary"):
        bootstrapping.sweep({"sweep": [{**choice, "kernels": {"add": [1, 1, 1]}}]}, costs, {})
    with pytest.raises(bootstrapping.ComposeError, match="no launch"):
        bootstrapping.bootstrap("", {})


def test_other_targets_have_no_measured_times():
    classes = {"NTT": {"launches": 1, "base": 8, "with": 4, "us": 2.0, "with_us": 1.0}}
    row = {"coeff_to_slot": 2, "slot_to_coeff": 2, "levels_left": 9, "base": 8, "with": 4, "us": 2.0}
    both = {"target": "a100", "bootstrap": {"launches": 1, "classes": classes}, "sweep": [row]}
    only = bootstrapping.without_times(both)
    assert only["bootstrap"]["classes"]["NTT"] == {"launches": 1, "base": 8, "with": 4}
    assert "us" not in only["sweep"][0] and "us" in row
    text = report.latency_table({"operations": [], **only}, None)
    assert "| ours: Bootstrap, kernels (ms) | not measured |" in text
    assert "| 2, 2 | 9 | 8 | 4 | not measured | not measured | not measured |" in report.sweep_table(only)


def test_operations_that_the_model_misses_are_refused():
    assert compose.refusal(110.0, {"graph_us": 100.0}) is None
    assert "+20.0 % off" in compose.refusal(120.0, {"graph_us": 100.0})
    assert compose.refusal(120.0, None) == "not measured"


def test_launches_that_predictions_use_are_checked(monkeypatch):
    class Walk:
        def check(self):
            raise trace.TraceError("block 2 misses its count")

    class Launch:
        walk = staticmethod(Walk)

    with pytest.raises(trace.TraceError, match="misses its count"):
        compose.Times(program="unused").result(Launch(), {"sms": 132}, False)


def test_compositions_of_key_rows():
    # 4 digits of 59 limbs less the 47 that a digit has already, 1,024 products each.
    assert compose.key_rows_fhec("hemult_47") == (4 * 59 - 47) * 1024
    assert compose.key_rows_fhec("rotate_23") == (2 * 35 - 23) * 1024


@pytest.mark.parametrize(("target", "base_us"), [("h200", 104.0), ("h200", 120.0), ("a100", 104.0)])
def test_measurements_stay_with_the_gpu_that_was_measured(tmp_path, monkeypatch, target, base_us):
    row = {"kernel": "row_forward", "fhec": 1, "base": 8, "with": 4, "base_us": 2.0, "with_us_16": 1.0}
    monkeypatch.setattr(validate, "require", lambda *_: {"mean": 0.1, "fingerprint": "f"})
    monkeypatch.setattr(compose, "Times", lambda: None)
    monkeypatch.setattr(compose, "steps", lambda *_: [])
    monkeypatch.setattr(compose, "total_us", lambda *_: base_us)
    monkeypatch.setattr(compose, "operation", lambda name, *_: {"name": name, "rows": [row]})
    monkeypatch.setattr(compose, "held_out_launches", lambda _: {})
    monkeypatch.setattr(compose, "plain_rows", lambda *_: {"instructions": 0.5, "us": 0.5})
    names = {"unit": "ntt_rows", "operations": "hemult_47"}
    monkeypatch.setattr(validate, "load", lambda _, part: [(names[part], None)])
    (tmp_path / "times.json").write_text('{"times": {"hemult_47": {"graph_us": 100.0}}}')
    lines = ['"ID","Kernel Name","Metric Name","Metric Value"',
             '"0","row_forward","smsp__inst_executed.sum","8"',
             '"0","row_forward","gpu__time_duration.sum","2000"']  # fmt: skip
    with gzip.open(tmp_path / "bootstrap.csv.gz", "wt") as out:
        out.write("\n".join(lines))
    done = compose.compose(tmp_path, target, tmp_path)
    (found,) = done["operations"]
    assert ("measured_us" in found) == (target == "h200")
    assert bool(found["refused"]) == (base_us > 115)
    ntt = done["bootstrap"]["classes"]["NTT"]
    assert (ntt["base"], ntt["with"]) == (8, 4)
    assert ("us" in ntt) == (target == "h200" and base_us < 115)


def test_the_headline_is_the_rtl_s_latency():
    table = params.table("h200")
    assert table["fhec_latency"]["value"] + table["fhec_extra_latency"]["value"] == 64
    assert {"fhec_extra_latency": 0} in compose.VARIANTS.values()  # the paper's 44
    for change in compose.VARIANTS.values():
        assert set(change) <= set(table)
        # 16 steps of K and 16 operand registers: no product can start more often.
        assert not set(change) & {"fhec_interval", "fhec_port_registers"}
