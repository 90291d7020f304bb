"""CKKS on several devices: ciphertexts are spread over them, keys lie on each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, cast, overload

from crenel import _crenel
from crenel._crenel import (
    BootstrapLevels,
    BootstrapOptions,
    Bootstrapper,
    Ciphertext,
    Context,
    Device,
    EvaluationKeys,
    Evaluator,
    Operand,
    Params,
    Plaintext,
)
from crenel.ckks.arrays import Array
from crenel.devices import (
    Each,
    Pool,
    Progress,
    Replication,
    Step,
    Workers,
    describe,
    opened,
    replicated,
    shares,
)
from crenel.errors import ParameterError, StateError
from crenel.pickling import refuse

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741


def moved(value: Any, context: Context) -> Any:
    """Ciphertexts, plaintexts and arrays in a value, or in lists, tuples and dictionaries of them, copied to
    the device of `context`; anything else as it is. Operands and bound arrays come as what they hold."""
    if isinstance(value, (Ciphertext, Operand, Plaintext)):
        return _crenel.copy_to(context, value)
    if isinstance(value, Array):
        return value._like(_crenel.copy_to(context, cast("Ciphertext", value.ciphertext)))
    if type(value) is list:
        return [moved(part, context) for part in value]
    if type(value) is tuple:
        return tuple(moved(part, context) for part in value)
    if type(value) is dict:
        return {key: moved(part, context) for key, part in value.items()}
    return value


def unbound(value: Any) -> Any:
    """The same without a copy, for the device where it lies."""
    if isinstance(value, Operand):
        return value.ciphertext
    if isinstance(value, Array) and not isinstance(value._data, Ciphertext):
        return value._like(cast("Ciphertext", value.ciphertext))
    if type(value) is list:
        return [unbound(part) for part in value]
    if type(value) is tuple:
        return tuple(unbound(part) for part in value)
    if type(value) is dict:
        return {key: unbound(part) for key, part in value.items()}
    return value


class DevicePool(Pool[Params, Context]):
    """Parameters on several devices of one host: a `Context` on each. Immutable.

    >>> pool = ckks.DevicePool(ckks.preset("boot40"), ["cuda:0", "cuda:1"])
    >>> client = pool.context.keygen()
    >>> ev = pool.evaluator(client.evaluation_keys(bootstrap=True))
    >>> boot = ev.bootstrapper()
    >>> fresh = boot(ciphertexts)

    What a call gets and returns lies on the first device, the pool's `context`; the others get their share
    by copies from memory to memory. Results are those of one device, bit for bit.

    Parameters
    ----------
    params : as for `Context`
    devices : names or crenel.Device objects, default every GPU of this host. A name given twice is two
        devices, each with its own keys, on one processor: of use for tests. Devices are taken to be alike:
        each gets an equal share

    Raises ParameterError for no devices and for one object given twice, DeviceError where one cannot be had.
    """

    __slots__ = ()

    def __init__(self, params: Params, devices: Sequence[str | Device] | None = None) -> None:
        workers = Workers(opened(devices))
        super().__init__(workers, [Context(params, device=device) for device in workers.devices])

    def evaluator(self, keys: EvaluationKeys | None = None) -> PoolEvaluator:
        """An evaluator with these keys on every device. They are copied from the first to the others.

        Raises StateError for keys of another context and for staged keys, OutOfMemoryError where they do not
        fit: `fields["device"]` is where.
        """
        home = self.context.evaluator(keys)  # refuses keys of another context
        if keys is None:
            return PoolEvaluator(self, [context.evaluator() for context in self._contexts], None)

        def copy(number: int) -> EvaluationKeys:
            return _crenel.copy_to(self._contexts[number], keys)

        copies, found = replicated(keys, keys.nbytes, self.devices, copy, self.synchronize)
        evaluators = [home, *(c.evaluator(k) for c, k in zip(self._contexts[1:], copies[1:], strict=True))]
        return PoolEvaluator(self, evaluators, found, copies)

    def __repr__(self) -> str:
        return f"<ckks.DevicePool of {self.context!r} on {self._names()}>"


class PoolEvaluator:
    """An evaluator on every device of a pool, for programs over many ciphertexts. Made by the pool.

    A program gets the evaluator of the device that it runs on, and ciphertexts that lie there. What else it
    needs of a device comes as an argument: `prepare` and `broadcast` make one of each. Any number of threads
    may use it.
    """

    __slots__ = ("_evaluators", "_keys", "_pool", "_replication")

    def __init__(
        self,
        pool: DevicePool,
        evaluators: Sequence[Evaluator],
        replication: Replication | None,
        keys: Sequence[EvaluationKeys] = (),
    ) -> None:
        self._pool = pool
        self._evaluators = tuple(evaluators)
        self._replication = replication
        self._keys = tuple(keys)

    @property
    def pool(self) -> DevicePool:
        """The pool."""
        return self._pool

    @property
    def evaluators(self) -> tuple[Evaluator, ...]:
        """Of every device, in order."""
        return self._evaluators

    @property
    def replication(self) -> Replication | None:
        """How the keys came to the devices; None where there are none."""
        return self._replication

    def first(self, count: int) -> PoolEvaluator:
        """The same on the first `count` devices alone: what more of them bring is measured so.

        Raises ParameterError for a count that is not 1 to the number of devices.
        """
        pool, keys = self._pool._first(count), self._keys[:count]
        return PoolEvaluator(pool, self._evaluators[:count], self._replication, keys)

    def prepare(self, make: Callable[[Evaluator], T]) -> Each[T]:
        """``make(evaluator)`` of every device, at a time: linear transforms, plaintexts, graphs. Errors as
        of `map`."""
        count = len(self._evaluators)
        made = self._pool._workers.run(
            lambda worker, step: make(self._evaluators[worker]), [1] * count, "preparing", False
        )
        return Each(tuple(cast("list[T]", made)))

    def broadcast(self, value: T) -> Each[T]:
        """A ciphertext, plaintext or array, or a list, tuple or dictionary of them, on every device."""
        rest = (moved(value, context) for context in self._pool.contexts[1:])
        return Each((unbound(value), *rest))

    def map(
        self,
        program: Callable[..., T],
        *batches: Sequence[I] | Each[I],
        progress: Progress = None,
    ) -> list[T]:
        """``program(ev, a, b, ...)`` for every a, b, ... of the batches, in their order.

        Parameters
        ----------
        program : of an evaluator and a ciphertext of each batch; returns ciphertexts or arrays, alone or in
            lists, tuples and dictionaries, or anything else, which is left as it is. Called on one thread a
            device, and so at the same time
        batches : sequences of equal length of ciphertexts or arrays (or lists, tuples, dictionaries of them);
            or what `prepare` and `broadcast` made, of which every call gets its device's
        progress : True for a bar, or a function f(done, total, what), in programs done; called on this thread

        Raises ParameterError for lengths that differ and no batch. What a program raises stops the others and
        is raised here; an error of the library then says on which device, in the message and in the fields
        `device` and `worker`.
        """
        lengths = [len(batch) for batch in batches if not isinstance(batch, Each)]
        if not lengths or any(length != lengths[0] for length in lengths):
            raise ParameterError(
                f"batches of {lengths or 'no'} ciphertexts, expected at least one batch, of equal lengths",
                {"lengths": lengths},
            )
        parts = shares(lengths[0], len(self._evaluators))

        def chosen(batch: Sequence[I] | Each[I], worker: int) -> list[I]:
            if isinstance(batch, Each):
                return [batch.values[worker]] * len(parts[worker])
            items = [batch[i] for i in parts[worker]]
            here = unbound(items) if worker == 0 else moved(items, self._pool.contexts[worker])
            return cast("list[I]", here)

        inputs = [[chosen(batch, worker) for batch in batches] for worker in range(len(parts))]

        def run(worker: int, step: Step) -> list[T]:
            results = []
            for items in zip(*inputs[worker], strict=True):
                results.append(program(self._evaluators[worker], *items))
                step.finished(1)
            self._pool.contexts[worker].synchronize()
            return results

        return self._gathered(run, [len(part) for part in parts], "programs", progress)

    def _gathered(
        self, run: Callable[[int, Step], list[T]], sizes: list[int], what: str, progress: Progress
    ) -> list[T]:
        """The results of every device, in order, on the first one."""
        found = self._pool._workers.run(run, sizes, what, progress)
        results: list[T] = []
        for worker, part in enumerate(found):
            results += unbound(part or []) if worker == 0 else moved(part or [], self._pool.context)
        return results

    def bootstrapper(self, options: BootstrapOptions | None = None) -> PoolBootstrapper:
        """A bootstrapper on every device, with the evaluator's keys; what options leave open is as of
        Context.bootstrapper.

        Raises StateError where there are no keys, and what Context.bootstrapper raises.
        """
        if not self._keys:
            raise StateError(
                "a bootstrapper of no keys: pool.evaluator(keys) has them on every device",
                {"found": "no keys", "expected": "evaluation keys"},
            )
        first = self._pool.context.bootstrapper(self._keys[0], options)
        # The first one's options leave nothing open, and so nothing to warn of again.
        chosen, contexts = first.options, self._pool.contexts
        made = self._pool._workers.run(
            lambda worker, step: contexts[worker].bootstrapper(self._keys[worker], chosen),
            [0, *([1] * (len(contexts) - 1))],
            "bootstrappers",
            False,
        )
        return PoolBootstrapper(self, [first, *cast("list[Bootstrapper]", made[1:])])

    def describe(self) -> str:
        """The devices in words, how bytes come to each, and how long the keys took."""
        return describe(self._pool.devices, self._replication)

    def __reduce__(self) -> NoReturn:
        refuse(self, "send the keys, and make a pool of them in the worker")

    def __repr__(self) -> str:
        return f"<ckks.PoolEvaluator of {self._pool!r}>"


class PoolBootstrapper:
    """Bootstraps on every device of a pool; made by PoolEvaluator.bootstrapper."""

    __slots__ = ("_bootstrappers", "_evaluator")

    def __init__(self, evaluator: PoolEvaluator, bootstrappers: Sequence[Bootstrapper]) -> None:
        self._evaluator = evaluator
        self._bootstrappers = tuple(bootstrappers)

    @property
    def levels(self) -> BootstrapLevels:
        """Levels, from the input to the output."""
        return self._bootstrappers[0].levels

    @property
    def options(self) -> BootstrapOptions:
        """The options with every default filled in."""
        return self._bootstrappers[0].options

    def first(self, count: int) -> PoolBootstrapper:
        """The same on the first `count` devices alone, as of PoolEvaluator.first."""
        return PoolBootstrapper(self._evaluator.first(count), self._bootstrappers[:count])

    @property
    def bootstrappers(self) -> tuple[Bootstrapper, ...]:
        """Of every device, in order."""
        return self._bootstrappers

    @overload
    def __call__(self, ciphertexts: Ciphertext, *, progress: Progress = ...) -> Ciphertext: ...
    @overload
    def __call__(
        self, ciphertexts: Sequence[Ciphertext | Operand], *, together: int = ..., progress: Progress = ...
    ) -> list[Ciphertext]: ...
    def __call__(
        self,
        ciphertexts: Ciphertext | Sequence[Ciphertext | Operand],
        *,
        together: int = 1,
        progress: Progress = None,
    ) -> Ciphertext | list[Ciphertext]:
        """Refresh a list of ciphertexts, or the vectors of one, spread over the devices.

        Parameters
        ----------
        ciphertexts : a list or tuple, which gives a list in the same order, bit for bit what one device's
            bootstrapper makes of it; or a ciphertext whose batch is divided, one call a device
        together : bootstraps of one call of a list: more of them share keys and take memory each
        progress : True for a bar, or a function f(done, total, what), in ciphertexts; called on this thread

        Raises ParameterError for an empty list and `together` below 1, and what Bootstrapper and
        PoolEvaluator.map raise.
        """
        if isinstance(ciphertexts, (Ciphertext, Operand)):
            return self._rows(unbound(ciphertexts), progress)
        if not isinstance(ciphertexts, (list, tuple)):
            raise TypeError(f"expected a ciphertext or a list of them, got {type(ciphertexts).__name__}")
        if not ciphertexts or together < 1:
            raise ParameterError(
                f"{len(ciphertexts)} ciphertexts, {together} together, expected at least one of each",
                {"ciphertexts": len(ciphertexts), "together": together},
            )
        unit = self.options.pack * (2 if self.options.message == "pair" else 1)  # share a bootstrap
        return self._each(ciphertexts, unit, unit * together, progress)

    def _each(
        self, ciphertexts: Sequence[Ciphertext | Operand], unit: int, step_size: int, progress: Progress
    ) -> list[Ciphertext]:
        contexts = self._evaluator.pool.contexts
        parts = shares(len(ciphertexts), len(contexts), unit)
        inputs: list[list[Ciphertext]] = [[unbound(ciphertexts[i]) for i in parts[0]]]
        inputs += [
            [_crenel.copy_to(context, ciphertexts[i]) for i in part]
            for context, part in zip(contexts[1:], parts[1:], strict=True)
        ]

        def run(worker: int, step: Step) -> list[Ciphertext]:
            results: list[Ciphertext] = []
            for first in range(0, len(inputs[worker]), step_size):
                chunk = inputs[worker][first : first + step_size]
                with step.counting(len(chunk)):
                    results += self._bootstrappers[worker](chunk)
            contexts[worker].synchronize()
            return results

        return self._evaluator._gathered(run, [len(part) for part in parts], "bootstraps", progress)

    def _rows(self, ciphertext: Ciphertext, progress: Progress) -> Ciphertext:
        contexts = self._evaluator.pool.contexts
        parts = shares(ciphertext.batch, len(contexts))
        rows = [ciphertext[part.start : part.stop] if part else None for part in parts]
        inputs = [rows[0]]
        for context, row in zip(contexts[1:], rows[1:], strict=True):
            inputs.append(None if row is None else _crenel.copy_to(context, row))

        def run(worker: int, step: Step) -> list[Ciphertext]:
            with step.counting(len(parts[worker])):
                result = self._bootstrappers[worker](cast("Ciphertext", inputs[worker]))
            contexts[worker].synchronize()
            return [result]

        found = self._evaluator._gathered(run, [len(part) for part in parts], "bootstraps", progress)
        return found[0] if len(found) == 1 else _crenel.concatenate(found)

    def __repr__(self) -> str:
        return f"<ckks.PoolBootstrapper of {len(self._bootstrappers)} times {self._bootstrappers[0]!r}>"
