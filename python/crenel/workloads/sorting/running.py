"""The server's side of a sort: encrypted rounds and their checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, cast

from crenel._crenel import Bootstrapper, Ciphertext, Evaluator, Operand
from crenel.errors import SerializationError, StateError
from crenel.workloads import checkpoint as files
from crenel.workloads.masks import MaskStore
from crenel.workloads.progress import Steps
from crenel.workloads.recordings import Recordings
from crenel.workloads.shared import Progress, same_params
from crenel.workloads.sorting import circuit
from crenel.workloads.sorting.circuit import Parts
from crenel.workloads.sorting.encrypted import EncryptedMachine
from crenel.workloads.sorting.recorded import RecordedParts
from crenel.workloads.sorting.setup import Setup
from crenel.workloads.sorting.values import UNDER_WAY, EncryptedValues, padding, same_program
from crenel.workloads.stages import Stages

KIND = "sort"
Path: TypeAlias = "str | os.PathLike[str]"


def run(
    setup: Setup,
    evaluator: Evaluator,
    x: EncryptedValues,
    boot: Bootstrapper | None,
    masks: MaskStore | None,
    checkpoint: Path | None,
    progress: Progress,
    stages: Stages,
    on_round: Callable[[int, EncryptedValues], object] | None,
    recordings: Recordings | None,
) -> EncryptedValues:
    """See Sorting.run."""
    same_params(evaluator.context.params, setup.params)
    same_program(x, setup.count, setup.payload, setup.slots)
    boot = boot or evaluator.context.bootstrapper(evaluator.keys, setup.bootstrap)
    if boot.levels.output != setup.refresh.output_level:
        raise StateError(
            f"bootstraps end at level {boot.levels.output}, the plan is of level "
            f"{setup.refresh.output_level}",
            {"level": boot.levels.output, "expected": setup.refresh.output_level},
        )
    machine = EncryptedMachine(evaluator, boot, MaskStore() if masks is None else masks)
    parts: Parts[Operand]
    if recordings is None:
        parts = Parts(machine, setup.comparator, stages)
    else:
        parts = RecordedParts(machine, setup.comparator, stages, recordings)
    belongs = {} if checkpoint is None else belonging(setup, x)
    done, columns = _begin(setup, evaluator, x, checkpoint, belongs)
    with Steps(progress, len(setup.rounds), "rounds of sorting", done) as steps:
        for place in range(done, len(setup.rounds)):
            round_ = setup.rounds[place]
            columns = circuit.run_round(parts, columns, round_, circuit.masks(round_, setup.slots))
            state = replace(x, columns=tuple(c.ciphertext for c in columns), order=UNDER_WAY)
            if checkpoint is not None:
                named = {f"column {n}": c for n, c in enumerate(state.columns)}
                with stages("checkpoint"):
                    files.save(checkpoint, KIND, belongs, {"rounds": place + 1}, named)
            if on_round is not None:
                on_round(place + 1, state)
            steps.step()
    return replace(
        x,
        columns=tuple(c.ciphertext for c in columns),
        places=tuple(setup.places),
        order="descending" if setup.descending else "ascending",
        tolerance=setup.tolerance,
    )


def _begin(
    setup: Setup,
    evaluator: Evaluator,
    x: EncryptedValues,
    checkpoint: Path | None,
    belongs: dict[str, str | int | float],
) -> tuple[int, list[Operand]]:
    """Rounds done and the columns behind them: of the checkpoint, where there is one."""
    if checkpoint is not None:
        found = files.load(checkpoint, evaluator.context, KIND, belongs)
        if found is not None:
            files.same_key(checkpoint, found[1], x.columns[0].secret_key_id)
            done, kept = _reached(setup, checkpoint, *found)
            return done, [evaluator(column) for column in kept]
    columns = [evaluator(c) for c in x.columns]
    columns[0] = columns[0] + padding(x, setup.last)
    return 0, columns


def _reached(
    setup: Setup, path: Path, progress: Mapping[str, files.Value], parts: Mapping[str, Ciphertext]
) -> tuple[int, list[Ciphertext]]:
    """Rounds done and columns of a checkpoint, whose checksums anyone can make: SerializationError for what
    no run of this program has written."""
    done, names = progress.get("rounds"), [f"column {place}" for place in range(1 + setup.payload)]
    good = type(done) is int and 1 <= done <= len(setup.rounds) and set(parts) == set(names)
    if not good or any((c.slots, c.batch) != (setup.slots, 1) for c in parts.values()):
        raise SerializationError(
            f"checkpoint {os.fspath(path)}: {done!r} rounds and {', '.join(sorted(parts)) or 'nothing'}; "
            f"expected 1 to {len(setup.rounds)} rounds and {', '.join(names)}, vectors of {setup.slots} "
            "slots",
            {"path": os.fspath(path), "rounds": repr(done), "parts": ", ".join(sorted(parts))},
        )
    return cast("int", done), [parts[name] for name in names]


def belonging(setup: Setup, x: EncryptedValues) -> dict[str, str | int | float]:
    """What a checkpoint says that it is of."""
    data = files.fingerprint(*(column.to_bytes() for column in x.columns))
    return {"parameters": setup.params.id, "program": setup.program, "data": data}
