"""Parts of a program that come again and again: recorded once, and replayed with other numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from crenel._crenel import Ciphertext, Evaluator, Graph, Operand, Plaintext
from crenel.errors import StateError

Inputs: TypeAlias = "Sequence[Ciphertext | Operand]"


class Recordings:
    """Recorded parts of programs with one evaluator, for further runs: ``graph=`` of `Sorting.run` and of
    `LogisticRegression.fit`.

    On a GPU a replay is one launch, and its bits are those of the part itself; a recording takes about as
    long as two runs of its part, and holds the memory that the part writes to. So they pay where they are
    kept, in a server that runs a program more than once, and where the host does not keep up with the
    device: these workloads at full size gain two hundredths. Elsewhere a replay calls the part again.
    """

    def __init__(self) -> None:
        self._graphs: dict[Hashable, Graph[list[Ciphertext]]] = {}
        self._evaluator: Evaluator | None = None
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Recordings are recordings, without one as well."""
        return True

    def __len__(self) -> int:
        return len(self._graphs)

    def replay(
        self,
        evaluator: Evaluator,
        shape: Hashable,
        part: Callable[..., Sequence[Ciphertext | Operand]],
        inputs: Inputs,
        plaintexts: Sequence[Plaintext],
    ) -> list[Ciphertext]:
        """``part(*inputs, *plaintexts)``, recorded where nothing of this shape was.

        Parameters
        ----------
        shape : names the part and all that it depends on besides its arguments; levels of the arguments, too

        Raises StateError for another evaluator than the first: recordings have the keys of theirs.
        """
        with self._lock:
            if self._evaluator is None:
                self._evaluator = evaluator
            if self._evaluator is not evaluator:
                raise StateError(
                    "recordings of another evaluator, whose keys are part of them: keep recordings for each "
                    "evaluator",
                    {"what": "evaluator"},
                )
            if shape not in self._graphs:
                self._graphs[shape] = Graph(evaluator, part, *inputs, plaintexts=plaintexts)
            graph = self._graphs[shape]
        return graph(*inputs, plaintexts=plaintexts)


def kept(graph: bool | Recordings) -> Recordings | None:
    """What a run records to: new recordings for True, none for False."""
    if isinstance(graph, Recordings):
        return graph
    return Recordings() if graph else None
