"""Lists of kernels: every launch of boot40 at N = 2^16, where more is fused than on the rings of other tests,
has its place in what draws and counts them."""

import re
from pathlib import Path

import pytest

import crenel
from crenel import analyze, ckks, ncu, sweep
from crenel.cli.analyze import Lab, Operation
from crenel.reproduce.builders import theodosian

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "dev/kernels/ncu_account.sh"
# Of a kernel, behind __global__: its launch bounds have brackets of their own, two deep.
NAME = re.compile(r"\s*void\s*(?:__launch_bounds__\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?\s*(\w+)\s*\(")
OPERATIONS = ("bootstrap", "hmult", "hrot", "rescale", "hadd")


@pytest.fixture(scope="module")
def lab():
    try:
        return Lab(ckks.preset("boot40"), "cuda:dry")
    except ckks.DeviceError as error:
        assert "built without CUDA" in str(error)
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def launches(lab):
    """(operation, level, records) at the top, in the middle and low."""
    top = lab.params.max_level
    found = []
    for name in OPERATIONS:
        operation = Operation(name)
        for level in (0,) if operation is Operation.bootstrap else (top, top // 2, 1):
            found.append((name, level, lab.records(operation, level)))
    return found


def test_every_launch_is_in_one_group_of_a_sweep(launches):
    grouped = [work for works in sweep.GROUPS.values() for work in works]
    assert sorted(grouped) == sorted(analyze.WORKS) and len(set(grouped)) == len(grouped)
    ceilings = analyze.load_ceilings()
    for name, level, records in launches:
        point = sweep.point(records, ceilings, 1, 1)
        groups = {group: row for group in sweep.GROUPS if (row := point.group(group))}
        assert sum(row.launches for row in groups.values()) == len(records) == point.total.launches
        assert sum(row.bytes for row in groups.values()) == point.total.bytes
        switched = {"NTT", "base conversion", "products with keys"}
        wanted = {"bootstrap": {*switched, "all else"}, "hmult": switched, "hrot": switched,
                  "rescale": {"NTT", "base conversion"}, "hadd": {"all else"}}[name]  # fmt: skip
        assert groups.keys() >= wanted, (name, level)
        # Conversions are of the fused kernel: the panel would be empty without it.
        fused = [r for r in records if r["kernel"] == "convert_columns"]
        if "base conversion" in wanted:
            assert 2 * len(fused) > groups["base conversion"].launches, (name, level)


def test_stages_of_a_key_switch_have_all_its_kernels(launches):
    works = {}
    for _, _, records in launches:
        for r in records:
            works.setdefault(r["kernel"], set()).add(r["work"])
    products = {kernel for kernel, of in works.items() if "key_multiply" in of}
    assert {"key_switch_rows", "shared_sums"} <= products <= set(theodosian.KEY_PRODUCTS)
    assert all(works[kernel] == {"key_multiply"} for kernel in products)
    # Cut by kernel, as a record of counters must be, a switch has the bytes of its stages cut by work.
    for name, level, records in launches:
        if name not in ("hmult", "hrot"):
            continue
        moved = {"raise": 0, "product": 0, "divide": 0}
        for r in records:
            label = r["stage"].split("/")[-1]
            if label == "key_switch":
                label = "product" if r["kernel"] in theodosian.KEY_PRODUCTS else "raise"
            if label in moved:
                moved[label] += r["read_bytes"] + r["written_bytes"]
        assert tuple(moved.values()) == analyze.key_switch_stages(records), (name, level)


def test_the_profilers_filter_has_every_kernel(lab):
    """Of the script that counts launches: keys, encryptions and operations, before it looks and while."""
    (words,) = re.findall(r"^kernels='regex:(.*)'$", SCRIPT.read_text(encoding="utf-8"), re.M)
    wanted = re.compile(words)
    context = ckks.Context(lab.params, "cuda:dry")
    top = lab.params.max_level
    diagonals = {k: [1.0 / (k + 1)] * lab.params.slots for k in range(2)}
    transform = context.linear_transform(diagonals, level=top)
    with crenel.profile(context) as account:
        client = context.keygen()
        keys = client.evaluation_keys(bootstrap=True, rotations=[1, 2], aligned=True)
        context.bootstrapper(keys).eager(client.encrypt([0.5], level=0))
        ev, a = context.evaluator(keys), client.encrypt([0.5], level=top)
        ev.rescale(ev.multiply(a, context.encode([1.0], top)))
        ev.square(ev.multiply(a, 0.5))
        ev.rotate_sum(ev.add(a, a), [0, 1, 2])
        ev.linear_transform(transform, a)
    stated = {ncu.function_of(r) for r in ncu.kernels_of(account.records())}
    assert {"shared_sums", "convert_columns", "key_switch_rows", "sample_uniform"} <= stated
    kernels = set()
    for path in (ROOT / "src/backends/cuda/poly").rglob("*.cuh"):
        for text in path.read_text(encoding="utf-8").split("__global__")[1:]:
            kernels.add(NAME.match(text)[1])
    assert stated <= kernels
    assert not [name for name in kernels if not wanted.match(name)]


def test_the_script_counts_what_the_command_counts():
    text = SCRIPT.read_text()

    def of(name):
        lines = re.findall(rf"^{name}\+?=,?(.*)$", text, re.MULTILINE)
        return tuple(metric for line in lines for metric in line.split(",") if metric)

    assert (of("memory"), of("moved")) == ncu.RUNS
    for option in ncu.OPTIONS:
        assert option in text, option
