"""Models of GPUs that there need not be: what each launches, and the guide's table of them."""

import os
import re
from pathlib import Path

import pytest

import crenel
from crenel import ckks
from crenel._crenel import default_tuning

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "traffic_account.md"
BEGIN, END = "<!-- models -->\n", "<!-- /models -->"
ROW = re.compile(r'\{"(\w+)", "([^"]+)", (\d+), (\d+), (\d+), (\d+) << 10, (\d+) << 20, ')
LIMBS = 47


def models() -> list[tuple[str, str, str, int, int, int]]:
    """(name, card, compute capability, multiprocessors, KiB of shared memory of a block, MiB of L2) as
    src/device/dry_models.h has them."""
    text = (ROOT / "src" / "device" / "dry_models.h").read_text(encoding="utf-8")
    found = [(n, c, f"{a}.{b}", int(p), int(s), int(m)) for n, c, a, b, p, s, m in ROW.findall(text)]
    assert [each[0] for each in found] == ["h200", "h100", "a100", "b200", "rtx5090"]
    return found


def device_of(name: str) -> str:
    return "cuda:dry" if name == "h200" else f"cuda:dry-{name}"


def hmult(device: str, **off: bool) -> list[dict]:
    opened = crenel.Device(device, crenel.Optimisations(**off))
    context = ckks.Context(ckks.preset("boot40"), device=opened)
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    levels = context.params.levels
    level = min(range(len(levels)), key=lambda k: abs(sum(levels[k]) - LIMBS))
    a, b = (client.encrypt([value], level=level) for value in (0.5, 0.25))
    with crenel.profile(context) as account:
        ev.multiply(a, b)
    return account.records()


@pytest.fixture
def dry():
    try:
        return crenel.Device("cuda:dry")
    except crenel.DeviceError as error:
        assert "built without CUDA" in str(error)
        pytest.skip(str(error))


def test_what_falls_back_where_shared_memory_is_small(dry):
    found = {name: hmult(device_of(name)) for name, *_ in models()}
    kernels = {name: {record["kernel"] for record in records} for name, records in found.items()}
    for name in ("h200", "h100", "b200"):
        assert {"convert_columns", "key_switch_rows"} <= kernels[name], name
        assert "base_convert" not in kernels[name] and "key_multiply" not in kernels[name]
    # 214 KiB of shared memory a block, and 103.
    assert {"base_convert", "column_forward", "key_switch_rows"} <= kernels["a100"]
    assert "convert_columns" not in kernels["a100"]
    assert {"base_convert", "column_forward", "key_multiply"} <= kernels["rtx5090"]
    assert not {"convert_columns", "key_switch_rows"} & kernels["rtx5090"]
    # Equal but for the memory.
    assert found["h100"] == found["h200"]
    # The same products: only where they are made differs; a part that is cut moves no less.
    moved = {
        name: sum(r["read_bytes"] + r["written_bytes"] for r in records) for name, records in found.items()
    }
    assert moved["h200"] <= moved["b200"] < moved["a100"] < moved["rtx5090"]


def test_parts_follow_the_cache(dry):
    """Four digits of 59 limbs are larger than what an A100's holds, and smaller than a B200's."""
    launches = {}
    for name in ("a100", "h200", "b200"):
        records = hmult(device_of(name), convert_columns=False)
        written = [r["written_bytes"] for r in records if r["kernel"] == "base_convert"]
        assert max(written) <= default_tuning(crenel.Device(device_of(name)))["part_bytes"]
        launches[name] = len(written)
    assert launches["a100"] >= launches["h200"] >= launches["b200"]
    assert launches["a100"] > launches["b200"]


def test_what_is_no_model_is_refused(dry):
    for name in ("cuda:dry-v100", "cuda:dry-", "cuda:dry-a100:1024", "cuda:dry-a100:0+cuda:dry:1"):
        with pytest.raises(crenel.DeviceError, match="expected"):
            crenel.Device(name)
    with pytest.raises(crenel.DeviceError, match="h200, h100, a100, b200, rtx5090"):
        crenel.Device("cuda:dry-v100")


def table() -> str:
    """A row a model: what it has, numbers derived from that, and a product by its account."""
    head = ("Device", "Card", "Multiprocessors", "L2, MiB", "Shared memory of a block, KiB")
    head += ("`part_bytes`, MiB", "`row_blocks`", "HMult: launches", "MB at L2", "composed there")
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    first = {record["kernel"] for record in hmult("cuda:dry")}
    for name, card, _, processors, shared, cache in models():
        device = crenel.Device(device_of(name))
        numbers, records = default_tuning(device), hmult(device.name)
        moved = sum(r["read_bytes"] + r["written_bytes"] for r in records) / 1e6
        lacking = sorted(first - {record["kernel"] for record in records} - {"tensor"})
        cells = [f"`{device.name}`", card, processors, cache, shared, f"{numbers['part_bytes'] / 2**20:g}"]
        cells += [numbers["row_blocks"], len(records), f"{moved:.0f}"]
        cells += [", ".join(f"`{kernel}`" for kernel in lacking) or "-"]
        assert device.processors == processors and card in device.description
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows) + "\n"


@pytest.mark.generated
def test_the_table_of_models_is_up_to_date(dry):
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        PAGE.write_text(text[:start] + table() + text[end:], encoding="utf-8")
        return
    assert text[start:end] == table(), "run with CRENEL_UPDATE_DOCS=1"
