"""The bridge between CKKS and TFHE: look-up tables and comparisons of encrypted numbers.

`make_keys`
    by whoever holds both secrets: the switching keys between them
`Bridge`
    two contexts on one device: which keys are needed, what noise is added
`Crossing`
    the operations of one pair of evaluators, `bridge.crossing(ev, tfhe_ev, keys)`: `lut`, `compare`, `sign`,
    `relu`, `maximum`, `minimum` there and back, `to_messages` and `to_slots` one way
`Cost`
    what they take and how far they are off, by `Bridge.describe`, before anything is made

>>> from crenel import bridge
>>> b = bridge.Bridge(context, tfhe_context, slots=1024)
>>> server = client.evaluation_keys(**b.key_options())
>>> across = b.crossing(context.evaluator(server), tfhe_context.evaluator(tfhe_server), keys)
>>> positive = across.compare(ciphertext, 0.0, bound=1.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn, TypedDict

import numpy as np

from crenel import _crenel, bridge_cost, ckks, tfhe
from crenel._crenel import BridgeKeyFacts as KeyFacts
from crenel._crenel import BridgeKeys as Keys
from crenel._crenel import BridgeNoise as Noise
from crenel.arguments import instance, real
from crenel.bridge_cost import Cost, Times
from crenel.errors import ParameterError
from crenel.pickling import refuse

if TYPE_CHECKING:
    import numpy.typing as npt

    from crenel.progress_bar import Callback

_AGAIN = "send what it was made from, and make it in the worker"
Bytes = bytes | bytearray | memoryview
# A table: its values message by message, or a function of the numbers that messages stand for.
Table = Iterable[float] | Callable[[float], float]


class KeyOptions(TypedDict):
    """Arguments of `ckks.Client.evaluation_keys`."""

    bootstrap: ckks.BootstrapOptions


def make_keys(ckks_client: ckks.Client, tfhe_client: tfhe.Client) -> Keys:
    """The switching keys between two secrets, for a server: no secret.

    Raises UnsupportedError for sets that do not fit together, StateError for clients on two devices.
    """
    return _crenel.make_bridge_keys(instance(ckks_client, ckks.Client), _tfhe_client(tfhe_client)._client)


def keys_from_bytes(
    ckks_context: ckks.Context, tfhe_context: tfhe.Context, data: Bytes, *, max_bytes: int | None = None
) -> Keys:
    """Keys from untrusted bytes that `Keys.to_bytes` made.

    max_bytes : the most memory that they may take, default 2 GiB or eight times the file where that is more

    Raises SerializationError for bytes that are no keys for these two contexts, saying what is wrong where.
    """
    return _crenel.bridge_keys_from_bytes(
        instance(ckks_context, ckks.Context), _tfhe_context(tfhe_context)._context, data, max_bytes
    )


class Bridge:
    """Two contexts on one Device, and a number of slots. Immutable; any number of threads may use it.

    Parameters
    ----------
    ckks_context : of a set for bootstrapping with two primes at level 0, such as boot40
    tfhe_context : of a padded set with groups and one polynomial, such as lut4-128, on the same Device
    slots : of the CKKS ciphertexts, a power of two; default all N/2

    Raises UnsupportedError for sets that do not fit together, ParameterError for CKKS parameters without
    bootstrapping and for slots, StateError for contexts on two devices.
    """

    __slots__ = ("_ckks", "_core", "_tfhe")

    def __init__(
        self, ckks_context: ckks.Context, tfhe_context: tfhe.Context, slots: int | None = None
    ) -> None:
        self._ckks = instance(ckks_context, ckks.Context)
        self._tfhe = _tfhe_context(tfhe_context)
        self._core = _crenel.BridgeCore(self._ckks, self._tfhe._context, slots)

    @property
    def slots(self) -> int:
        """Of the CKKS ciphertexts."""
        return self._core.slots

    @property
    def messages(self) -> int:
        """Messages that a table has values for: 16 with lut4-128."""
        return self._core.messages

    @property
    def level(self) -> int:
        """The lowest level of ciphertexts that cross."""
        return self._core.level

    @property
    def output_level(self) -> int:
        """The level of ciphertexts that come back."""
        return self._core.output_level

    def key_options(self) -> KeyOptions:
        """What `ckks.Client.evaluation_keys(**options)` makes: keys of a bootstrap."""
        return {"bootstrap": self._core.bootstrap}

    def noise(self, step: float) -> Noise:
        """Standard deviations by the model, for a grid of this step: multiply by ``2 * messages * step`` for
        those of numbers. Of a TFHE evaluator with keys of further steps (``steps=``) those are meant that
        rotate by the context's own. Raises ParameterError unless the step is within 2^-410 and 2^410."""
        return self._core.noise(0.0, real("step", step))

    def resolution(self, bound: float) -> float:
        """Standard deviation of the threshold of a comparison of slots within `bound` of it, in their units.

        Raises ParameterError unless the bound is within 2^-400 and 2^400.
        """
        noise = self._core.noise_of_comparison(real("bound", bound))
        return 2.0 * real("bound", bound) * math.hypot(noise.extracted, noise.reading)

    @property
    def key_facts(self) -> KeyFacts:
        """Bytes and moduli of the bridge's own keys (`make_keys`)."""
        return self._core.key_facts

    def describe(self, *, bound: float = 1.0, step: float | None = None) -> Cost:
        """Keys, errors and time of what crosses, by the models, before anything is made. Prints as a page.

        bound : of slots, about the threshold of a comparison
        step : of a table's grid; default as many numbers as there are messages from -bound on

        Raises ParameterError unless both are positive and within what `resolution` and `noise` take.
        """
        bound = real("bound", bound)
        step = 2.0 * bound / self.messages if step is None else real("step", step)
        read, written = self.noise(step), self.resolution(bound)
        params, small = self._ckks.params, self._tfhe
        return Cost(
            ckks_params=params.name,
            tfhe_params=small.params.name,
            slots=self.slots,
            messages=self.messages,
            level=self.level,
            output_level=self.output_level,
            key_bytes=self.key_facts.nbytes,
            key_wire_bytes=self.key_facts.wire_bytes,
            ckks_key_bytes=params.key_bytes(**self.key_options()),
            tfhe_key_bytes=small.key_bytes(),
            bound=bound,
            step=step,
            resolution=written,
            read=math.hypot(read.extracted, read.reading) * 2 * self.messages,
            written=2 * math.pi * math.hypot(read.looked_up, read.packed),
            times=bridge_cost.times(params.name, small.params.name, self.slots),
        )

    def crossing(
        self, ckks_evaluator: ckks.Evaluator, tfhe_evaluator: tfhe.Evaluator, keys: Keys
    ) -> Crossing:
        """The operations with these keys; TypeError for other objects (of pools, say)."""
        return Crossing(self, ckks_evaluator, tfhe_evaluator, keys)

    def __reduce__(self) -> NoReturn:
        refuse(self, _AGAIN)

    def __repr__(self) -> str:
        return f"<Bridge {self._ckks.params.name} and {self._tfhe.params.name}, {self.slots} slots>"


class Crossing:
    """Operations of a `Bridge` by two evaluators and the keys between their secrets.

    What they do to noise: docs/theory/bridge.md, "Noise".

    All raise StateError for ciphertexts of other parameters, devices, slots, levels or secret keys,
    KeyMissingError where a key is missing, ParameterError for numbers that are not finite or out of range.
    """

    __slots__ = ("_bridge", "_ckks", "_keys", "_tfhe")

    def __init__(
        self, bridge: Bridge, ckks_evaluator: ckks.Evaluator, tfhe_evaluator: tfhe.Evaluator, keys: Keys
    ) -> None:
        self._bridge = instance(bridge, Bridge)
        self._ckks = instance(ckks_evaluator, ckks.Evaluator)
        self._tfhe = instance(tfhe_evaluator, tfhe.Evaluator)
        self._keys = instance(keys, Keys)

    def to_messages(self, a: ckks.Ciphertext | ckks.Operand, *, low: float, step: float) -> tfhe.Ciphertext:
        """Real slots as messages for TFHE: slot `low + m step` becomes m, others what is nearest.

        The result has the shape (slots,) and carries the noise that the bridge adds. Numbers between two of
        the grid come out as either of them where a table reads them. What lies outside of the grid by more
        than half a step is another message; StateError where the ciphertext's bound is known and allows it.
        ParameterError for a step so small that a table would read the bridge's noise more often than the
        evaluator's `max_p_fail_log2` allows (`Bridge.noise`).
        """
        low, step = real("low", low), real("step", step)
        self._expect_readable(step)
        data = self._core.to_messages(self._ckks, self._keys, _ciphertext(a), low, step)
        return tfhe.Ciphertext(self._bridge._tfhe, data, (self._bridge.slots,), np.dtype(np.uint8))

    def to_slots(self, a: tfhe.Ciphertext, values: Iterable[float]) -> ckks.Ciphertext:
        """``values[m]`` in slot j for message m in place j (in C order): a bootstrap a message, one of CKKS.

        values : one for each message; they must span 1/8 at least. The largest and the smallest come out
            with the precision of the bootstrap, others with noise (`Bridge.noise`)
        """
        array = instance(a, tfhe.Ciphertext)
        return self._core.to_slots(
            self._ckks, self._tfhe._evaluator, self._keys, array._data, _values(values)
        )

    def lut(
        self,
        a: ckks.Ciphertext | ckks.Operand,
        table: Table,
        *,
        low: float,
        step: float,
        progress: bool | Callback | None = None,
    ) -> ckks.Ciphertext:
        """A table of encrypted numbers: slot x becomes the value for the number of the grid nearest to it.

        table : values for `low`, `low + step`, ..., or a function of these numbers
        progress : True for a bar, or a function f(done, total, what), as `crenel.progress` takes
        """
        low, step = real("low", low), real("step", step)
        if callable(table):
            table = [table(low + step * m) for m in range(self._bridge.messages)]
        return self._core.lut(
            self._ckks,
            self._tfhe._evaluator,
            self._keys,
            _ciphertext(a),
            low,
            step,
            _values(table),
            progress,
        )

    def compare(
        self,
        a: ckks.Ciphertext | ckks.Operand,
        threshold: float | ckks.Ciphertext | ckks.Operand,
        *,
        bound: float,
        less: float = 0.0,
        otherwise: float = 1.0,
        progress: bool | Callback | None = None,
    ) -> ckks.Ciphertext:
        """`less` in slots below the threshold, `otherwise` in the others.

        threshold : one number, or a ciphertext with one for each slot
        bound : the largest distance of a slot from the threshold; StateError where the ciphertext's own
            allows more. The smaller, the finer: `Bridge.resolution` is the threshold's standard deviation
        progress : True for a bar, or a function f(done, total, what), as `crenel.progress` takes
        """
        a = _ciphertext(a)
        if isinstance(threshold, (ckks.Ciphertext, ckks.Operand)):
            a, threshold = self._difference(a, threshold), 0.0
        return self._core.compare(
            self._ckks,
            self._tfhe._evaluator,
            self._keys,
            a,
            real("threshold", threshold),
            real("bound", bound),
            real("less", less),
            real("otherwise", otherwise),
            progress,
        )

    def sign(self, a: ckks.Ciphertext | ckks.Operand, *, bound: float) -> ckks.Ciphertext:
        """1 in slots of at least 0, -1 in the others; `bound` as in `compare`."""
        return self.compare(a, 0.0, bound=bound, less=-1.0, otherwise=1.0)

    def relu(self, a: ckks.Ciphertext | ckks.Operand, *, bound: float) -> ckks.Ciphertext:
        """The slots of at least 0, and 0 in place of the others: `a` times its comparison.

        bound : of the slots; StateError where the ciphertext's own allows more

        Where noise decides, a slot is nearer to 0 than about ten `Bridge.resolution(bound)`: so far off a
        result may be, and others as little as a product of CKKS. It has the lower of a's level and
        `Bridge.output_level`, less one: the message is not bootstrapped, only the comparison.
        """
        steps = self.compare(a, 0.0, bound=bound)
        own = _ciphertext(a).bound
        most = min(real("bound", bound), own) if own > 0 else real("bound", bound)
        return (self._ckks(a) * self._ckks(steps)).ciphertext.with_bound(most)

    def maximum(
        self,
        a: ckks.Ciphertext | ckks.Operand,
        b: ckks.Ciphertext | ckks.Operand,
        *,
        bound: float,
    ) -> ckks.Ciphertext:
        """The larger of each pair of slots: b + relu(a - b), with the level and the errors of that.

        bound : the largest distance of a pair; StateError where the bounds of both allow more

        Where both state a bound, the result has the larger one.
        """
        ev = self._ckks
        step = self.relu(self._difference(a, b), bound=bound)
        return _within_both((ev(b) + ev(step)).ciphertext, a, b)

    def minimum(
        self,
        a: ckks.Ciphertext | ckks.Operand,
        b: ckks.Ciphertext | ckks.Operand,
        *,
        bound: float,
    ) -> ckks.Ciphertext:
        """The smaller of each pair of slots: a - relu(a - b); arguments as for `maximum`."""
        ev = self._ckks
        step = self.relu(self._difference(a, b), bound=bound)
        return _within_both((ev(a) - ev(step)).ciphertext, a, b)

    def _difference(
        self, a: ckks.Ciphertext | ckks.Operand, b: ckks.Ciphertext | ckks.Operand
    ) -> ckks.Ciphertext:
        return (self._ckks(_ciphertext(a)) - self._ckks(_ciphertext(b))).ciphertext

    def _expect_readable(self, step: float) -> None:
        """Numbers of the grid are a phase of 1 / (2 messages) apart, and are read right within half of it."""
        noise = self._bridge.noise(step)
        margin = 1.0 / (4 * self._bridge.messages)
        found = 1.0 - (margin / math.hypot(noise.extracted, noise.reading)) ** 2 / (2 * math.log(2.0))
        found, allowed = min(found, 0.0), self._tfhe.max_p_fail_log2
        if found > allowed:
            raise ParameterError(
                f"a grid in steps of {step:g}: the bridge's noise makes a number another one with a "
                f"probability of up to 2^{found:.1f}, expected at most 2^{allowed:.1f}: take larger steps",
                {"step": step, "p_fail_log2": found, "max_p_fail_log2": allowed},
            )

    @property
    def _core(self) -> _crenel.BridgeCore:
        return self._bridge._core

    def __reduce__(self) -> NoReturn:
        refuse(self, _AGAIN)

    def __repr__(self) -> str:
        return f"<Crossing of {self._bridge!r}>"


def _ciphertext(value: ckks.Ciphertext | ckks.Operand) -> ckks.Ciphertext:
    return value.ciphertext if isinstance(value, ckks.Operand) else instance(value, ckks.Ciphertext)


def _within_both(
    found: ckks.Ciphertext, a: ckks.Ciphertext | ckks.Operand, b: ckks.Ciphertext | ckks.Operand
) -> ckks.Ciphertext:
    """One of each pair: within the larger bound of both, which sums do not know."""
    most = max(_ciphertext(a).bound, _ciphertext(b).bound)
    return found.with_bound(most) if 0 < most < math.inf else found


def _values(values: Iterable[float]) -> npt.NDArray[np.float64]:
    if isinstance(values, (str, bytes, Mapping)):
        raise ParameterError(
            f"values of a table: a {type(values).__name__}, expected numbers",
            {"values": type(values).__name__},
        )
    try:
        found = np.asarray(list(values))
        if found.dtype.kind not in "biuf":
            raise TypeError(f"{found.dtype}, expected real numbers")
        array = np.ascontiguousarray(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"values of a table: {error}", {"values": str(error)}) from None
    if array.ndim != 1:
        raise ParameterError(
            f"values of a table in {array.ndim} dimensions, expected a row of numbers", {"ndim": array.ndim}
        )
    return array


def _tfhe_client(client: tfhe.Client) -> tfhe.Client:
    return instance(client, tfhe.Client)


def _tfhe_context(context: tfhe.Context) -> tfhe.Context:
    return instance(context, tfhe.Context)


__all__ = [
    "Bridge",
    "Cost",
    "Crossing",
    "KeyFacts",
    "KeyOptions",
    "Keys",
    "Noise",
    "Times",
    "keys_from_bytes",
    "make_keys",
]
