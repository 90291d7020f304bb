"""TFHE on several devices: arrays are divided among them, keys lie on each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from crenel import _crenel
from crenel.arguments import instance, real
from crenel.devices import Pool, Progress, Replication, Step, Workers, describe, opened, replicated, shares
from crenel.errors import ParameterError
from crenel.tfhe.arithmetic import Circuits
from crenel.tfhe.arrays import Ciphertext, EncryptedArray, Integers, concatenate
from crenel.tfhe.context import Context
from crenel.tfhe.evaluator import Evaluator
from crenel.tfhe.kinds import is_encrypted

T = TypeVar("T")
Data = _crenel.TfheCiphertext | _crenel.TfheIntegers
# Operations without a bootstrap, of no array, on another context or in host memory: the first device does
# them alone.
AT_HOME = {"trivial", "linear", "invert", "pack", "random", "compress", "decompress"}


class DevicePool(Pool["_crenel.TfheParams", Context]):
    """Parameters on several devices of one host: a `Context` on each. Immutable.

    >>> pool = tfhe.DevicePool(tfhe.preset("bool128"), ["cuda:0", "cuda:1"])
    >>> client = pool.context.keygen()
    >>> ev = pool.evaluator(client.evaluation_keys())
    >>> c = ev.nand(client.encrypt(x), client.encrypt(y))

    Arrays lie on the first device, the pool's `context`; of every call the others get their share of the
    elements by copies from memory to memory. Results are those of one device, bit for bit.

    Parameters
    ----------
    params, packing, arithmetic, step, key_group : as for `Context`
    devices : names or crenel.Device objects, default every GPU of this host. A name given twice is two
        devices, each with its own keys, on one processor: of use for tests. Devices are taken to be alike:
        each gets an equal share

    Raises ParameterError for no devices and for one object given twice, DeviceError where one cannot be had,
    and what Context raises for a step and a group. Every batch is rotated by steps of this one size: which
    step an evaluator of one context chooses goes by the batch, and a share is another batch than the whole.
    """

    __slots__ = ()

    def __init__(
        self,
        params: _crenel.TfheParams,
        devices: Sequence[str | _crenel.Device] | None = None,
        packing: int = 1,
        arithmetic: str | None = None,
        step: int | None = None,
        key_group: int | None = None,
    ) -> None:
        workers = Workers(opened(devices))
        first = Context(params, workers.devices[0], packing, arithmetic, step, key_group)
        rest = (_crenel.TfheContext(first.params, device) for device in workers.devices[1:])
        super().__init__(workers, [first, *(Context._of(context) for context in rest)])

    def evaluator(
        self,
        keys: _crenel.TfheEvaluationKeys,
        *,
        max_p_fail_log2: float | None = None,
        circuits: Circuits = "lean",
    ) -> PoolEvaluator:
        """Operations with these keys, which are copied from the first device to the others.

        max_p_fail_log2 : as of Context.evaluator (docs/theory/tfhe.md, "Probability of failure")
        circuits : of integers, as of Context.evaluator: 'lean' or 'fast'; 'automatic' would choose by the
            size of a share, so that the bits of a result depended on the number of devices

        Raises StateError for keys of another context, ParameterError for a bound above 0 or other circuits,
        OutOfMemoryError (`fields["device"]` is the one) where the keys do not fit.
        """
        if circuits not in ("lean", "fast"):
            raise ParameterError(
                f"circuits is {circuits!r}, expected 'lean' or 'fast' on several devices",
                {"circuits": str(circuits), "expected": "lean, fast"},
            )
        keys = instance(keys, _crenel.TfheEvaluationKeys, "keys")
        allowed = None if max_p_fail_log2 is None else real("max_p_fail_log2", max_p_fail_log2)
        self.context._context.evaluator(keys, allowed)  # refuses before anything is copied

        def copy(number: int) -> _crenel.TfheEvaluationKeys:
            return _crenel.copy_to(self._contexts[number]._context, keys)

        copies, found = replicated(keys, keys.nbytes, self.devices, copy, self.synchronize)
        evaluators = [
            context.evaluator(copy, max_p_fail_log2=max_p_fail_log2, circuits=circuits)
            for context, copy in zip(self._contexts, copies, strict=True)
        ]
        return PoolEvaluator(self, evaluators, found)

    def __repr__(self) -> str:
        return f"<tfhe.DevicePool of {self.params.name} on {self._names()}>"


class _Spread:
    """The evaluators of several devices, of one kind, as one: each call divides what it is given."""

    def __init__(self, pool: DevicePool, engines: Sequence[Any]) -> None:
        self._pool = pool
        self._engines = tuple(engines)

    def __getattr__(self, name: str) -> Any:
        first = getattr(self._engines[0], name)
        return first if name in AT_HOME or not callable(first) else partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> Any:
        pool = self._pool
        sizes = {part.size for part in _arrays(arguments)}
        if len(sizes) != 1:  # refused there, or without an array
            return getattr(self._engines[0], name)(*arguments)
        size = sizes.pop()
        parts = shares(size, len(self._engines), pool.params.slots)

        def share(value: Any, worker: int) -> Any:
            part = parts[worker]
            if isinstance(value, Data):
                mine = value if len(part) == size else value.slice(part.start, len(part))
                return mine if worker == 0 else _crenel.copy_to(pool.contexts[worker]._context, mine)
            if isinstance(value, list) and value and isinstance(value[0], Data):
                return [share(one, worker) for one in value]
            if isinstance(value, np.ndarray) and name == "lut":  # which table an element takes
                return np.ascontiguousarray(value[part.start : part.stop])
            return value

        inputs = [
            tuple(share(value, worker) for value in arguments) if part else ()
            for worker, part in enumerate(parts)
        ]

        def run(worker: int, step: Step) -> Any:
            with step.counting(len(parts[worker])):
                result = getattr(self._engines[worker], name)(*inputs[worker])
                pool.contexts[worker].synchronize()
            return result

        found = pool._workers.run(run, [len(part) for part in parts], "elements")
        return _joined([self._home(value, worker) for worker, value in enumerate(found) if parts[worker]])

    def _home(self, value: Any, worker: int) -> Any:
        if worker == 0:
            return value
        if isinstance(value, Data):
            return _crenel.copy_to(self._pool.context._context, value)
        return type(value)(self._home(part, worker) for part in value)


def _arrays(arguments: Sequence[Any]) -> list[Data]:
    found: list[Data] = []
    for value in arguments:
        if isinstance(value, Data):
            found.append(value)
        elif isinstance(value, list):
            found += [part for part in value if isinstance(part, Data)]
    return found


def _joined(results: list[Any]) -> Any:
    """The results of shares, each an array or several of them, as those of the whole."""
    first = results[0]
    if len(results) == 1:
        return first
    if isinstance(first, Data):
        return _crenel.tfhe_concatenate(results)
    return type(first)(_joined([result[i] for result in results]) for i in range(len(first)))


class PoolEvaluator(Evaluator):
    """An `Evaluator` that divides the elements of every call among the devices of a pool.

    Made by the pool; all operations of `Evaluator` are its, and it takes and gives arrays of the pool's
    `context`. Each bootstrapped operation of a large program brings its shares and takes the results home;
    `split` runs a whole program on each share instead.
    """

    __slots__ = ("_evaluators", "_pool", "_replication")

    def __init__(self, pool: DevicePool, evaluators: Sequence[Evaluator], replication: Replication) -> None:
        self._pool = pool
        self._evaluators = tuple(evaluators)
        self._replication = replication
        spread = _Spread(pool, [ev._evaluator for ev in evaluators])
        super().__init__(pool.context, cast("_crenel.TfheEvaluator", spread), evaluators[0].circuits)

    @property
    def pool(self) -> DevicePool:
        """The pool."""
        return self._pool

    @property
    def evaluators(self) -> tuple[Evaluator, ...]:
        """Of every device, in order."""
        return self._evaluators

    @property
    def replication(self) -> Replication:
        """How the keys came to the devices."""
        return self._replication

    def first(self, count: int) -> PoolEvaluator:
        """The same on the first `count` devices alone: what more of them bring is measured so.

        Raises ParameterError for a count that is not 1 to the number of devices.
        """
        return PoolEvaluator(self._pool._first(count), self._evaluators[:count], self._replication)

    def _engine_i(self) -> _crenel.TfheIntegerEvaluator:
        if self._integers is None:
            engines = [ev._engine_i() for ev in self._evaluators]
            self._integers = cast("_crenel.TfheIntegerEvaluator", _Spread(self._pool, engines))
        return self._integers

    def _engine_m(self) -> _crenel.TfheMessageEvaluator:
        if self._messages_engine is None:
            engines = [ev._engine_m() for ev in self._evaluators]
            self._messages_engine = cast("_crenel.TfheMessageEvaluator", _Spread(self._pool, engines))
        return self._messages_engine

    def split(self, program: Callable[..., T], *arrays: EncryptedArray, progress: Progress = None) -> T:
        """``program(ev, a, b, ...)`` on every device, of its share of the arrays along their first axis.

        Parameters
        ----------
        program : of an evaluator and arrays that lie on its device; returns an array whose first axis is
            theirs, or a list or tuple of such. Called on one thread a device, and so at the same time
        arrays : of equal length
        progress : True for a bar, or a function f(done, total, what), in elements of the first axis; called
            on this thread

        Returns what the program returns, joined along the first axis. Raises ParameterError for no arrays and
        lengths that differ, TypeError for anything but encrypted arrays with an axis. What a program raises
        stops the others and is raised here; an error of the library then says on which device, in the
        message and in the fields `device` and `worker`.
        """
        for array in arrays:
            if not is_encrypted(array) or not array.shape:
                raise TypeError(f"expected encrypted arrays with an axis, got {array!r}")
        lengths = [len(array) for array in arrays]
        if not lengths or any(length != lengths[0] for length in lengths):
            raise ParameterError(
                f"arrays of {lengths or 'no'} rows, expected at least one array, of equal lengths",
                {"lengths": lengths},
            )
        slots, contexts = self._pool.params.slots, self._pool.contexts
        unit = math.lcm(*(slots // math.gcd(slots, math.prod(a.shape[1:])) for a in arrays))
        parts = shares(lengths[0], len(contexts), unit)
        inputs = [
            [_on(contexts[worker], array, part, worker == 0) for array in arrays] if part else []
            for worker, part in enumerate(parts)
        ]

        def run(worker: int, step: Step) -> T:
            with step.counting(len(parts[worker])):
                result = program(self._evaluators[worker], *inputs[worker])
                contexts[worker].synchronize()
            return result

        found = self._pool._workers.run(run, [len(part) for part in parts], "elements", progress)
        return cast("T", _joined_arrays([_home(contexts[0], r) for r in found if r is not None]))

    def describe(self) -> str:
        """The devices in words, how bytes come to each, and how long the keys took."""
        return describe(self._pool.devices, self._replication)


def _rebuilt(context: Context, array: EncryptedArray, data: Data, shape: tuple[int, ...]) -> EncryptedArray:
    if isinstance(data, _crenel.TfheIntegers):
        return Integers(context, data, shape)
    return Ciphertext(context, data, shape, array.dtype)


def _on(context: Context, array: EncryptedArray, part: range, home: bool) -> EncryptedArray:
    """A range of rows, on the device of `context`."""
    row = math.prod(array.shape[1:])
    data = array._data
    if len(part) != len(array):
        data = data.slice(part.start * row, len(part) * row)
    if not home:
        data = _crenel.copy_to(context._context, data)
    return _rebuilt(context, array, data, (len(part), *array.shape[1:]))


def _home(context: Context, result: Any) -> Any:
    """The arrays of a result on the device of `context`, without an evaluator."""
    if is_encrypted(result):
        data = result._data
        if result.context.device is not context.device:
            data = _crenel.copy_to(context._context, data)
        return _rebuilt(context, result, data, result.shape)
    if type(result) in (list, tuple):
        return type(result)(_home(context, part) for part in result)
    raise TypeError(
        "a program on shares returns encrypted arrays, alone or in lists and tuples, got "
        f"{type(result).__name__}"
    )


def _joined_arrays(results: list[Any]) -> Any:
    first = results[0]
    if len(results) == 1:
        return first
    if is_encrypted(first):
        return concatenate(results)
    return type(first)(_joined_arrays([result[i] for result in results]) for i in range(len(first)))
