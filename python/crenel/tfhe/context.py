"""Context and client of TFHE."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, TypeVar, overload

import numpy as np

from crenel import _crenel
from crenel.arguments import (
    buffer,
    flag,
    instance,
    items,
    most_bytes,
    natural,
    positive,
    real,
    text,
    whole,
    wrong,
)
from crenel.errors import (
    InsecureParametersWarning,
    ParameterError,
    SerializationError,
    StateError,
    UnsupportedError,
)
from crenel.pickling import SECRET, refuse
from crenel.tfhe.arithmetic import CIRCUITS
from crenel.tfhe.arrays import Ciphertext, Integers
from crenel.tfhe.compressed import Compressed
from crenel.tfhe.evaluator import Evaluator
from crenel.tfhe.kinds import as_array
from crenel.tfhe.messages import bit_modulus, check_bits, plain_modulus_for
from crenel.tfhe.place import Place
from crenel.tfhe.types import IntegerType, are_integers, from_words, integer_type, outside, to_words

if TYPE_CHECKING:
    import numpy.typing as npt

    from crenel.progress_bar import Callback
    from crenel.tfhe.arithmetic import Circuits
    from crenel.tfhe.arrays import Element
    from crenel.tfhe.types import TypeLike

Bytes: TypeAlias = bytes | bytearray | memoryview
T = TypeVar("T")


class Context(Place):
    """Parameters on a device: the root of every other object. Immutable.

    Failure probabilities are those of docs/theory/tfhe.md, "Probability of failure".

    Parameters
    ----------
    params : a set of `preset`
    device : 'ref', 'cpu', 'cuda', 'cuda:<index>' or 'auto' (the first GPU when there is one, else the CPU),
        opened for this context alone; or a crenel.Device, which other contexts may share: objects of contexts
        with equal parameters on one Device work together
    packing : messages under a mask, 1 to 16: smaller ciphertexts and faster gates on whole arrays; slices
        begin with a mask then, and integers need 1
    arithmetic : 'exact', 'approx' or 'split', default the set's own: fast, and safe for it
    key_group : of sets with groups, secret bits of a group of the evaluation keys, 1 to 6, a divisor of n;
        default the set's own, 4. With lut4-128 keys of 3 serve steps of 1 and 3, keys of 6 steps of 2 and 3;
        `key_wire_bytes` says what they take.
        Client and server name the same; secret keys and ciphertexts are the same for all
    step : of sets with groups, secret bits that a step of a bootstrap takes, a divisor of the keys' group;
        default the set's own. Keys and ciphertexts are the same for all, the failure probability is not

    Warns with InsecureParametersWarning for sets below today's norm, which are for reproduction of published
    figures and for tests. Raises DeviceError saying why a device cannot be had, UnsupportedError where the
    arithmetic is not safe for the set, or not made for it ('split' with modulus raising), and where a set
    without groups is given a step; ParameterError for a step that does not divide the group.
    """

    __slots__ = ()

    def __init__(
        self,
        params: _crenel.TfheParams,
        device: str | _crenel.Device = "auto",
        packing: int = 1,
        arithmetic: str | None = None,
        step: int | None = None,
        key_group: int | None = None,
    ) -> None:
        params = instance(params, _crenel.TfheParams, "params")
        if not isinstance(device, (str, _crenel.Device)):
            wrong("device", "a name or a crenel.Device", device)
        if key_group is not None:
            params = params.with_key_group(positive("key_group", key_group))
        if step is not None:
            params = params.with_step(positive("step", step))
        if arithmetic is not None:
            params = params.with_arithmetic(text("arithmetic", arithmetic))
        if whole("packing", packing) != params.slots:
            params = params.with_slots(positive("packing", packing))
        if params.warning:
            warnings.warn(params.warning, InsecureParametersWarning, stacklevel=2)
        super().__init__(_crenel.TfheContext(params, device))

    @classmethod
    def _of(cls, context: _crenel.TfheContext) -> Context:
        self = cls.__new__(cls)
        Place.__init__(self, context)
        return self

    def key_bytes(self, packing: bool = False, *, lists: bool = False, steps: Iterable[int] = ()) -> int:
        """Bytes on the device of what Client.evaluation_keys makes, exactly, without making it.

        steps : with the keys for these steps too, which `evaluator(keys, steps=...)` makes of them

        Raises ParameterError and UnsupportedError for steps that the set does not take.
        """
        others = set(_steps(steps)) - {self.params.numbers["step"]}
        more = sum(self._context.step_bytes(step) for step in others)
        return self._context.key_bytes(flag("packing", packing), flag("lists", lists)) + more

    def key_wire_bytes(self, packing: bool = False, *, lists: bool = False) -> int:
        """Bytes to send of what Client.evaluation_keys makes, but its file's header, without making it."""
        return self._context.key_wire_bytes(flag("packing", packing), flag("lists", lists))

    def stored_bytes(self, blocks: int, *, lists: bool = False) -> int:
        """`Compressed.nbytes` of so many messages or blocks of integers, exactly, without storing any.

        lists : in lists, as ``Evaluator.compress(lists=True)`` stores them

        Raises ParameterError for no messages, UnsupportedError for sets that are not stored so.
        """
        return self._context.stored_bytes(positive("blocks", blocks), flag("lists", lists))

    def keygen(self) -> Client:
        """New secret keys, from the randomness of the operating system."""
        return Client(self, self._context.keygen())

    def client_from_secret_key(self, data: Bytes) -> Client:
        """The client of keys exported with Client.export_secret_key, with its secret_key_id.

        Raises SerializationError for damaged bytes, coefficients that no key generation gives, and the bare
        coefficients that older versions exported.
        """
        return Client(self, self._context.client_from_secret_key(buffer(data)))

    def evaluator(
        self,
        keys: _crenel.TfheEvaluationKeys,
        *,
        max_p_fail_log2: float | None = None,
        circuits: Circuits = "automatic",
        steps: Iterable[int] | Literal["automatic"] = (),
        step_table: Iterable[tuple[int, int]] = (),
        max_key_bytes: int | None = None,
    ) -> Evaluator:
        """Operations with these keys.

        max_p_fail_log2 : log2 of the largest failure probability that a bootstrap may have, at most 0, which
            allows everything; default what the set promises (`params.p_fail_log2`), or -128 where that is
            less. Operations that would fail more often raise ParameterError
        circuits : of integers: 'lean' has fewest bootstraps, 'fast' fewest rounds of them, 'automatic' is the
            one of both that this device finishes first for the size of each array. Results are the same
        steps : of sets with groups, secret bits a step that batches may be rotated by beside the context's
            own, for which keys are made of those that were sent and kept with them (`key_bytes` says what
            they take, before; `keys.steps` which there are): few bits a step give many rotations a second,
            many bits a short time for few. 'automatic': those that were measured to be the fastest for some
            batch on such a device. Results have the bits of the step that their batch took, and otherwise
            the same meaning; without further steps every batch takes the context's own
        step_table : which batch takes which step: pairs (rotations, step), ascending, for batches of up to
            so many; beyond the last as the last. Default what was measured on such a device
        max_key_bytes : with steps='automatic', the most that all of these keys may take on the device, with
            those of lists, packing and other steps that they have already: steps that do not fit are left
            out (`Evaluator.steps` says which are there)

        Raises StateError for keys of another context, ParameterError for a bound above 0, another name, steps
        that do not divide the keys' group, a table that is none, and less than the keys take already;
        UnsupportedError for steps where none is measured and no table is given, and for sets without groups;
        OutOfMemoryError, before any is made, where the keys do not fit.
        """
        if circuits not in CIRCUITS:
            raise ParameterError(
                f"circuits is {circuits!r}, expected one of {', '.join(CIRCUITS)}",
                {"circuits": str(circuits), "expected": ", ".join(CIRCUITS)},
            )
        keys = instance(keys, _crenel.TfheEvaluationKeys, "keys")
        allowed = None if max_p_fail_log2 is None else real("max_p_fail_log2", max_p_fail_log2)
        most = most_bytes(max_key_bytes, "max_key_bytes")
        if isinstance(steps, str) and steps == "automatic":
            chosen = self._automatic_steps(keys, most)
        else:
            chosen = _steps(steps)
            if most is not None:
                raise ParameterError(
                    f"max_key_bytes is {most}, expected none with steps of one's own choice",
                    {"max_key_bytes": most},
                )
        rules = _rules(step_table)
        return Evaluator(self, self._context.evaluator(keys, allowed, chosen, rules), circuits)

    def _automatic_steps(self, keys: _crenel.TfheEvaluationKeys, most: int | None) -> list[int]:
        """Steps beside the context's own that some batch is fastest by, as far as they fit beside all that
        the keys have: those of lists and of packing, too."""
        own, group = int(self.params.numbers["step"]), int(self.params.numbers["key_group"])
        possible = [step for step in range(1, group + 1) if group % step == 0 and _takes(self.params, step)]
        named = {step for _, step in self._context.measured_step_table(possible or [1])}
        taken, there = keys.nbytes, set(keys.steps)
        if most is not None and taken > most:
            raise ParameterError(
                f"max_key_bytes is {most}, expected at least {taken}, what these keys take already",
                {"max_key_bytes": most, "expected": taken},
            )
        chosen = []
        for step in sorted(named - {own}):
            more = 0 if step in there else self._context.step_bytes(step)
            if most is None or taken + more <= most:
                taken += more
                chosen.append(step)
        return chosen

    def ciphertext_from_bytes(self, data: Bytes, *, max_bytes: int | None = None) -> Ciphertext:
        """An array from untrusted bytes.

        max_bytes : refuse what takes more memory, before it is taken: a fresh array takes several hundred
            times its bytes. Default 256 MiB, or four times the data where that is more

        Raises SerializationError saying what is wrong and where.
        """
        array, shape, element = self._context.ciphertext_from_bytes(buffer(data), most_bytes(max_bytes))
        return Ciphertext(self, array, tuple(shape), _element(element, "bool uint8 uint16 uint32 uint64"))

    def integers_from_bytes(self, data: Bytes, *, max_bytes: int | None = None) -> Integers:
        """An array of integers from untrusted bytes; `max_bytes` as for ciphertext_from_bytes.

        Raises SerializationError.
        """
        array, shape, element = self._context.integers_from_bytes(buffer(data), most_bytes(max_bytes))
        expected = IntegerType(array.bits, array.signed)
        if element != expected.name:
            raise SerializationError(
                f"cannot load integers: found type {element} for {array.bits} bits, signed {array.signed}",
                {"where": "element", "found": element, "expected": expected.name},
            )
        return Integers(self, array, tuple(shape))

    def compressed_from_bytes(self, data: Bytes, *, max_bytes: int | None = None) -> Compressed:
        """A compressed array from untrusted bytes; `max_bytes` as for ciphertext_from_bytes.

        Raises SerializationError.
        """
        array, shape, element = self._context.compressed_from_bytes(buffer(data), most_bytes(max_bytes))
        if array.integer_bits:
            kind = IntegerType(array.integer_bits, array.signed)
            if element != kind.name:
                raise SerializationError(
                    f"cannot load integers: found type {element} for {kind.bits} bits, signed {kind.signed}",
                    {"where": "element", "found": element, "expected": kind.name},
                )
            return Compressed(self, array, tuple(shape), kind.dtype)
        return Compressed(self, array, tuple(shape), _element(element, "bool uint8 uint16 uint32 uint64"))

    def evaluation_keys_from_bytes(
        self, data: Bytes, *, max_bytes: int | None = None, progress: bool | Callback | None = None
    ) -> _crenel.TfheEvaluationKeys:
        """Evaluation keys from untrusted bytes. Raises SerializationError.

        max_bytes : refuse what takes more memory, before it is taken; default 16 GiB, or four times the data
            where that is more
        progress : True for a bar, or a function f(done, total, what), as `crenel.progress` takes
        """
        return self._context.evaluation_keys_from_bytes(buffer(data), most_bytes(max_bytes), progress)

    def __repr__(self) -> str:
        return f"<tfhe.Context {self.params.name} on {self.device.name}>"


def _element(name: str, unsigned: str) -> np.dtype:
    allowed = unsigned.split()
    allowed += [n[1:] for n in allowed if n.startswith("uint")]
    if name not in allowed:
        raise SerializationError(
            f"cannot load an array: found elements of type {name!r}, expected one of {', '.join(allowed)}",
            {"where": "element", "found": name, "expected": ", ".join(allowed)},
        )
    return np.dtype(name)


class Client:
    """The holder of the secret keys: encrypts and decrypts NumPy arrays of any shape."""

    __slots__ = ("_client", "_context")

    def __init__(self, context: Context, client: _crenel.TfheClient) -> None:
        self._context = context
        self._client = client

    @property
    def context(self) -> Context:
        """The context."""
        return self._context

    @property
    def secret_key_id(self) -> str:
        """The public name of the secret keys, 32 random hexadecimal digits.

        All that is made with them carries it, and objects of two clients are not mixed (StateError).
        """
        return self._client.secret_key_id

    @overload
    def encrypt(
        self, values: bool | npt.NDArray[np.bool_], bits: None = ..., *, fan_in: int = ...
    ) -> Ciphertext: ...
    @overload
    def encrypt(self, values: npt.ArrayLike, bits: int) -> Ciphertext: ...
    @overload
    def encrypt(self, values: npt.ArrayLike, *, plain_modulus: int) -> Ciphertext: ...
    @overload
    def encrypt(self, values: npt.NDArray[np.integer]) -> Integers: ...
    @overload
    def encrypt(self, values: npt.ArrayLike, *, dtype: TypeLike) -> Integers: ...
    @overload
    def encrypt(
        self,
        values: npt.ArrayLike,
        bits: int | None = ...,
        *,
        fan_in: int = ...,
        plain_modulus: int | None = ...,
        dtype: TypeLike | None = ...,
    ) -> Ciphertext | Integers: ...
    def encrypt(
        self,
        values: npt.ArrayLike,
        bits: int | None = None,
        *,
        fan_in: int = 2,
        plain_modulus: int | None = None,
        dtype: TypeLike | None = None,
    ) -> Ciphertext | Integers:
        """Encrypt an array of any shape; its type decides what it becomes.

        Parameters
        ----------
        values : bool: bits, for gates. Integers of 8, 16, 32 or 64 bits, signed or not: `Integers` of that
            width (set lut4-128 or like it), unless `bits` is given
        bits : the values are messages below 2^bits for look-up tables: 1 to 4 with lut4-128
        fan_in : 2, or 3 or 4 for bits that and3, or3, and4, or4 will take; sets for gates only
        plain_modulus : p, instead of `bits`: the values are messages below p (p / 2 with padded sets) for
            Evaluator.floor, sign and decompose, which want a power of two. Even; a p above the set's and
            above 8 takes a larger modulus of the ciphertext, which must not exceed the set's Q_KS
        dtype : the values are integers of this type: 'uint2' to 'uint256', 'int2' to 'int256', even widths,
            or a type of NumPy. Without it, the array's own type

        Raises ParameterError for other types, empty arrays, values out of range, and options that do not go
        together.
        """
        array = as_array("encrypt", values)
        shape = array.shape
        if array.size == 0:
            raise ParameterError(
                f"expected at least one element, got an array of shape {shape}", {"shape": list(shape)}
            )
        flat = np.ascontiguousarray(array).reshape(-1)
        _expect_together(bits, fan_in, plain_modulus, dtype)
        if dtype is not None:
            if array.dtype.kind == "f" and isinstance(values, (list, tuple)):
                flat = np.asarray(values, dtype=object).reshape(-1)  # what no type of NumPy holds together
            return self._integers(flat, shape, integer_type("encrypt", dtype))
        if plain_modulus is not None:
            return self._messages(flat, shape, plain_modulus_for(self._context.params, flat, plain_modulus))
        if array.dtype == np.bool_:
            return self._messages(flat, shape, bit_modulus(self._context.params, bits, fan_in), 2)
        if array.dtype.kind not in "iu":
            raise ParameterError(
                f"values must be bool or integers, got {array.dtype}", {"dtype": str(array.dtype)}
            )
        if fan_in != 2:
            raise ParameterError(
                f"fan_in is of bits for gates, got fan_in={fan_in} with values of {array.dtype}",
                {"fan_in": str(fan_in), "dtype": str(array.dtype)},
            )
        if bits is not None:
            check_bits(self._context.params, flat, bits)
            return self._messages(flat, shape, 0, 1 << bits)
        return self._integers(flat, shape, integer_type("encrypt", array.dtype))

    def _integers(self, flat: np.ndarray, shape: tuple[int, ...], kind: IntegerType) -> Integers:
        if not are_integers(flat):
            raise ParameterError(
                f"values must be integers for {kind}, got {flat.dtype}", {"dtype": str(flat.dtype)}
            )
        wrong = outside(flat, kind)
        if wrong is not None:
            # Where, not what: messages have no place in errors, which are logged.
            raise ParameterError(
                f"values must be {kind.low} to {kind.high} for {kind}, element {wrong} is not",
                {"index": wrong, "expected": f"{kind.low}..{kind.high}", "dtype": str(kind)},
            )
        words = to_words(flat, kind)
        return Integers(self._context, self._client.encrypt_words(words, kind.bits, kind.signed), shape)

    def _messages(self, flat: np.ndarray, shape: tuple[int, ...], modulus: int, bound: int = 0) -> Ciphertext:
        data = self._client.encrypt(flat.astype(np.uint64), modulus, bound)
        return Ciphertext(self._context, data, shape, flat.dtype.newbyteorder("="))

    def decrypt(self, array: Ciphertext | Integers) -> npt.NDArray[Element]:
        """The array of array.dtype and array.shape.

        Raises StateError for an array of another context or of other secret keys.
        """
        if isinstance(array, Integers):
            return from_words(self._client.decrypt_words(array._data), array.type).reshape(array.shape)
        if not isinstance(array, Ciphertext):
            raise TypeError(f"expected an encrypted array, got {type(array).__name__}")
        values = self._client.decrypt(array._data)
        if array.dtype == np.bool_ and values.max() > 1:
            # Not which: a decrypted value has no place in an error, which others may read.
            raise StateError(
                "an array of bits holds values above 1: it was made with other keys, or a bootstrap failed",
                {"found": "values above 1", "expected": "0 or 1"},
            )
        return values.astype(array.dtype).reshape(array.shape)

    def evaluation_keys(
        self, packing: bool = False, *, lists: bool = False, progress: bool | Callback | None = None
    ) -> _crenel.TfheEvaluationKeys:
        """What a server needs to compute.

        packing : also the key for Evaluator.pack, which puts messages encrypted one by one (by `single`)
            under common masks
        lists : also the key for ``Evaluator.compress(lists=True)``, below 1 MB to send with lut4-128
        progress : True for a bar, or a function f(done, total, what), as `crenel.progress` takes

        Raises OutOfMemoryError, before any key is made, where the device has less than Context.key_bytes;
        UnsupportedError for sets that have no packing, or no lists.
        """
        return self._client.evaluation_keys(flag("packing", packing), flag("lists", lists), progress)

    def single(self, slot: int = 0) -> Client:
        """The client of one slot's keys, in a context of its own without packing on the same device."""
        client = self._client.single(natural("slot", slot))
        return Client(Context._of(client.context), client)

    def p_fail_log2(self, array: Ciphertext) -> float:
        """log2 of the bound on the probability that `decrypt` gets an element wrong, -inf without noise.

        By the noise that the array carries, which of a loaded one is its file's claim: no secret enters
        (docs/theory/tfhe.md, "Probability of failure").
        """
        return self._client.p_fail_log2(instance(array, Ciphertext, "array")._data)

    def phase_errors(self, array: Ciphertext, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Distance of each phase from the place of its message, in units of the modulus' integers.

        values : messages or bits, of the array's shape. Raises TypeError for other numbers. For measurements
        of noise; never publish it.
        """
        data = instance(array, Ciphertext, "array")._data
        messages = as_array("phase_errors", values)
        if messages.dtype.kind not in "biu":
            raise TypeError(f"values: expected integers or bools, got an array of {messages.dtype}")
        flat = np.ascontiguousarray(messages).reshape(-1).astype(np.uint64)
        return self._client.phase_errors(data, flat).reshape(array.shape)

    def export_secret_key(self) -> bytes:
        """The secret keys themselves, a safetensors file with checksums: whoever has it reads every message.

        Guard it.
        """
        return self._client.export_secret_key()

    def __reduce__(self) -> NoReturn:
        refuse(self, SECRET)

    def __repr__(self) -> str:
        return f"<tfhe.Client of {self._context!r}>"


def _expect_together(
    bits: int | None, fan_in: int, plain_modulus: int | None, dtype: TypeLike | None
) -> None:
    """ParameterError for options of `Client.encrypt` that say two things at once."""
    alone = bits is None and fan_in == 2
    if dtype is not None and not (alone and plain_modulus is None):
        raise ParameterError(
            f"dtype goes without bits, fan_in and plain_modulus, got bits={bits}, fan_in={fan_in}, "
            f"plain_modulus={plain_modulus}",
            {"dtype": str(dtype), "bits": str(bits)},
        )
    if plain_modulus is not None and not alone:
        raise ParameterError(
            f"plain_modulus goes without bits and fan_in, got bits={bits}, fan_in={fan_in}",
            {"bits": str(bits), "fan_in": fan_in},
        )


def _steps(steps: Iterable[int] | str) -> list[int]:
    if isinstance(steps, (str, bytes)):
        raise ParameterError(f"steps is {steps!r}, expected integers or 'automatic'", {"steps": str(steps)})
    return [positive("step", step) for step in items("steps", steps)]


def _rules(table: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found = []
    for rule in items("step_table", table):
        pair = list(rule) if isinstance(rule, (list, tuple, np.ndarray)) else []
        if len(pair) != 2:
            raise ParameterError(
                f"step_table: {rule!r:.60}, expected pairs (rotations, step)", {"found": f"{rule!r:.60}"}
            )
        found.append((positive("rotations", pair[0]), positive("step", pair[1])))
    return found


def _takes(params: _crenel.TfheParams, step: int) -> bool:
    try:
        params.with_step(step)
    except (ParameterError, UnsupportedError):
        return False
    return True
