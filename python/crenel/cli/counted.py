"""What ``crenel analyze --counters`` runs in processes of its own, one of them under the profiler:

    python -m crenel.cli.counted PARAMS DEVICE OPERATION LEVEL FILE

The file holds the records of the operation's launches, and how many kernels came before them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import crenel
from crenel import ncu
from crenel.cli.analyze import Lab, Operation
from crenel.cli.sets import ckks_set


def main(arguments: list[str]) -> int:
    """Run the operation twice, the first time to warm the memory pool."""
    params, device, operation, level, file = arguments
    lab = Lab(ckks_set(params), device)
    with crenel.profile(lab.context) as account:
        work = lab.prepare(Operation(operation), int(level))
        work()
    before = ncu.kernels_of(account.records())
    with crenel.profile(lab.context) as account:
        work()
    lab.context.synchronize()
    said = {
        "kernels_before": len(before),
        "functions_before": sorted({ncu.function_of(record) for record in before}),
        "records": account.records(),
    }
    Path(file).write_text(json.dumps(said), encoding="utf-8")
    return 0


if __name__ == "__main__":
    from crenel.errors import CrenelError

    try:
        raise SystemExit(main(sys.argv[1:]))
    except CrenelError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
