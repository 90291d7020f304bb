"""Export of profiler reports, composition of operations. No GPU, no CUDA tools."""

from __future__ import annotations

import pytest

from fhecore.sim import bootstrapping, compose, ncu_export, profiles


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

    entry = ncu_export.launch(Action, object())
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
        (("row_forward<8>", "1,000", "2000"), ("hoisted_plain_sums", "500", "1000"))
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
