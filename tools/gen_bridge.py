"""Write python/crenel/bridge_costs.json: what the launches of a bridge cost on a known GPU (`bridge.Cost`).

    python tools/gen_bridge.py            # counts them on "cuda:dry": minutes, a build with CUDA, no GPU
    python tools/gen_bridge.py --slots 64,1024

Look-ups are left out: their times are measured (lookups.json).
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "python/crenel/bridge_costs.json"
SET, TABLES, MACHINE = "boot40", "lut4-128", "NVIDIA H100"
SLOTS = (64, 1024, 8192, 32768)
LOOKUPS = ("key_switch", "blind_rotate")  # outermost stages
BACK = ("pack", "mod_raise", "coeff_to_slot", "eval_mod")


def stages(slots: int) -> dict[str, list[Any]]:
    """Launches of a comparison by outermost stage, as an account has them."""
    import numpy as np

    import crenel
    from crenel import bridge, ckks, tfhe

    device = crenel.Device("cuda:dry")
    context, small = (
        ckks.Context(ckks.preset(SET), device=device),
        tfhe.Context(tfhe.preset(TABLES), device=device),
    )
    # A model of a GPU makes no keys of tables: those of another device are copied to it.
    elsewhere = tfhe.Context(tfhe.preset(TABLES), device="cpu")
    made = elsewhere.keygen()
    tables = small.evaluation_keys_from_bytes(made.evaluation_keys().to_bytes())
    holder = small.client_from_secret_key(made.export_secret_key())
    client = context.keygen()
    plan = bridge.Bridge(context, small, slots)
    server = client.evaluation_keys(**plan.key_options())
    across = plan.crossing(
        context.evaluator(server), small.evaluator(tables), bridge.make_keys(client, holder)
    )
    a = client.encrypt(np.zeros(slots), slots=slots, level=plan.level)
    across.compare(a, 0.0, bound=1.0)  # tables and workspace
    with crenel.profile(context) as account:
        across.compare(a, 0.0, bound=1.0)
    found: dict[str, list[Any]] = {}
    for record in account.records():
        found.setdefault(record["stage"].split("/")[0], []).append(record)
    return found


def row(slots: int) -> dict[str, float]:
    """Milliseconds of the launches of a number of slots."""
    from crenel.nn.machine import machine_of

    machine, found = machine_of(MACHINE), stages(slots)

    def ms(names: list[str]) -> float:
        return round(1e-3 * sum(machine.us(found[name], False) for name in names), 3)

    there = [name for name in found if name not in LOOKUPS and name not in BACK]
    return {
        "slots": slots,
        "there_ms": ms(there),
        "packing_ms": ms(["pack"]),
        "back_ms": ms(list(BACK)),
        "launches": sum(map(len, found.values())),
        "packing_launches": len(found["pack"]),
    }


def main() -> None:
    """Count and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", default=",".join(map(str, SLOTS)), help="numbers of slots")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row(int(slots)) for slots in arguments.slots.split(",")]
    document = {"machine": MACHINE, "params": SET, "tfhe_params": TABLES, "rows": rows}
    FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{FILE.relative_to(ROOT)}: {len(rows)} numbers of slots")


if __name__ == "__main__":
    main()
