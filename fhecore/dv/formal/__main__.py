"""usage: python3 -m fhecore.dv.formal [--long] [--only TEXT] [--list]

Runs the proofs and the mutations that they must refuse. Exit code: 0 all as expected, 1 not, 2 no tools.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fhecore.dv import tools
from fhecore.dv.formal import checks, engine


def main(arguments: list[str]) -> int:
    long = "--long" in arguments
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    reason = engine.missing()
    if reason:
        print(f"formal: not run: {reason}")
        return 2
    work = Path(os.environ.get("CRENEL_FHECORE_WORK", tools.WORK))
    wrong = 0
    for check in checks.checks():
        if only not in check.query.name:
            continue
        if "--list" in arguments:
            print(check.query.name, "(long)" if check.long else "")
            continue
        if long or not check.long:
            wrong += report(check.query.name, True, lambda c=check: checks.run(c, work))
        for mutation in check.mutations:
            if long or not mutation.long:
                name = f"{check.query.name}, mutation: {mutation.name}"
                wrong += report(name, False, lambda c=check, m=mutation: checks.run_mutation(c, m, work))
    return 1 if wrong else 0


def report(name: str, expected: bool, job) -> int:
    """Print one line; 1 if the verdict is not the expected one."""
    try:
        verdict = job()
    except checks.ProofError as error:
        print(f"FAIL  {error}", flush=True)
        return 1
    right = verdict.proved == expected
    what = {True: "proved", False: "counterexample"}[verdict.proved]
    print(f"{'ok  ' if right else 'FAIL'}  {what:<14} {verdict.seconds:7.1f} s  {name}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
