"""Proofs of the reduction and of the processing element, and mutations that they refuse."""

from __future__ import annotations

import pytest

from fhecore.dv.formal import checks, engine

ALL = checks.checks()
PROOFS = [
    pytest.param(check, id=check.query.name, marks=[pytest.mark.long] if check.long else []) for check in ALL
]
MUTATIONS = [
    pytest.param(
        check,
        mutation,
        id=f"{check.query.name}: {mutation.name}",
        marks=[pytest.mark.long] if mutation.long else [],
    )
    for check in ALL
    for mutation in check.mutations
]


@pytest.fixture(autouse=True)
def _tools():
    reason = engine.missing()
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize("check", PROOFS)
def test_proof(work, check):
    verdict = checks.run(check, work)
    assert verdict.proved, f"counterexample in {verdict.log.parent}/trace.vcd"


@pytest.mark.parametrize(("check", "mutation"), MUTATIONS)
def test_mutation_is_refused(work, check, mutation):
    verdict = checks.run_mutation(check, mutation, work)
    assert not verdict.proved, f"{mutation.name} in {mutation.file} is not noticed, see {verdict.log}"
