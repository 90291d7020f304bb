"""Arguments of wrong types, one at a time, in every public callable: TypeError or an error of the library.

Where a Python function hands its arguments on, the message is its own, not that of the function of the
extension module that it calls.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import crenel
from crenel import bridge, ckks, fhecore, tfhe

WRONG: tuple[object, ...] = (1.5, "no such", object(), None, {}, 2**70)
FOREIGN = "incompatible function arguments"  # of the extension module
# What a wrong argument would be to them is theirs to wait for, write or forget.
LEFT_OUT = {"synchronize", "save", "set_idle_limit"}
# Made by others: their constructors take what those have checked.
MADE = re.compile(r"\b(Made|made) by\b|dataclass")


@pytest.fixture(scope="module")
def objects() -> dict[str, object]:
    """One of every class with methods, small, on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        device = crenel.Device("cpu")
        context = ckks.Context(ckks.preset("toy-boot40", allow_insecure=True), device=device)
        client = context.keygen()
        small = tfhe.Context(tfhe.preset("toy-lut4g4", allow_insecure=True), device=device)
        holder = small.keygen()
        crossing = bridge.Bridge(context, small, 64)
        ev = context.evaluator(client.evaluation_keys(rotations=[1], **crossing.key_options()))
        tev = small.evaluator(holder.evaluation_keys(), max_p_fail_log2=0)
        messages, integers = holder.encrypt([1, 2], bits=4), holder.encrypt(np.array([1, 2], np.uint8))
        a = client.encrypt(np.zeros(64), slots=64, level=crossing.level)
        return {
            "ckks context": context, "ckks client": client, "ckks evaluator": ev,
            "ckks params": context.params, "ckks keys": client.evaluation_keys(), "ciphertext": a,
            "operand": ev(a), "plaintext": context.encode([1.0]), "device": device,
            "tfhe context": small, "tfhe client": holder, "tfhe evaluator": tev, "tfhe params": small.params,
            "messages": messages, "bits": holder.encrypt(np.array([True, False])), "integers": integers,
            "bound messages": tev(messages), "bound integers": tev(integers), "tfhe keys": tev.keys,
            "stored": tev.compress(messages), "bridge": crossing,
            "crossing": crossing.crossing(ev, tev, bridge.make_keys(client, holder)),
        }  # fmt: skip


def signature(call: Callable[..., object]) -> str | None:
    """Of a function or a class of the extension module; None of others."""
    found = getattr(call.__init__ if isinstance(call, type) else call, "__nb_signature__", None)
    return found and found[0][0]


def parameters(call: Callable[..., object]) -> list[tuple[str, bool]]:
    """(name, has a default) of every parameter that has a name."""
    text = signature(call)
    if text is None:
        found = inspect.signature(call).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return [(p.name, p.default is not p.empty) for p in found if p.kind in named]
    text = text[text.index("(") + 1 : text.rindex(") ->")]
    while text != (text := re.sub(r"[\[(][^\[\]()]*[\])]", "", text)):
        pass  # what is within brackets has commas, too
    words = [word.strip() for word in text.split(",")]
    return [(re.split(r"[:= ]", w)[0], "=" in w) for w in words if w and w[0] not in "*/" and w[:4] != "self"]


def callables(objects: dict[str, object]) -> Iterator[tuple[str, Callable[..., object]]]:
    """Every public method of them, and every function and native class that the modules name."""
    for title, owner in objects.items():
        for name in dir(type(owner)):
            if name[0] != "_" and name not in LEFT_OUT and callable(getattr(type(owner), name)):
                yield f"{title}.{name}", getattr(owner, name)
    for module in (ckks, tfhe, bridge, fhecore):
        for name in module.__all__:
            made = getattr(module, name)
            if isinstance(made, type) and (issubclass(made, Exception) or MADE.search(made.__doc__ or "")):
                continue
            if inspect.isroutine(made) or (isinstance(made, type) and signature(made)):
                yield f"{module.__name__}.{name}", made


def complaint(call: Callable[..., object], given: dict[str, object]) -> str:
    """What is wrong about how it refuses; empty: nothing, or it takes them."""
    try:
        call(**given)
    except TypeError as error:
        if FOREIGN in str(error) and signature(call) is None:
            return str(error).splitlines()[0]
    except crenel.CrenelError:
        pass
    except Exception as error:
        return repr(error)
    return ""


def test_wrong_types_are_told_in_words_of_the_function_called(objects):
    plain: dict[str, object] = {"a": objects["ciphertext"], "values": [1, 2], "bits": 4}
    plain |= {"low": -1.0, "step": 0.125, "bound": 1.0}
    found, count = [], 0
    for title, call in callables(objects):
        own = dict(plain)
        if title.startswith("tfhe"):
            own["a"] = own["array"] = objects["messages"]
        wanted = parameters(call)
        for name, _ in wanted:
            given = {other: own.get(other, 1) for other, default in wanted if not default and other != name}
            for value in WRONG:
                count += 1
                text = complaint(call, {**given, name: value})
                if text:
                    found.append(f"{title}({name}={value!r:.20}): {text}")
    assert count > 1000
    assert not found, "\n".join(found)


def test_classes_are_named_as_users_know_them(objects):
    """Not by the extension module, nor by the file that a class lies in."""
    context, holder, crossing = (objects[name] for name in ("tfhe context", "tfhe client", "crossing"))
    for call, said in (
        (lambda: context.evaluator(5), "keys: expected crenel.tfhe.EvaluationKeys, got int"),
        (lambda: holder.phase_errors(5, 5), "array: expected crenel.tfhe.Ciphertext, got int"),
        (lambda: crossing.compare(None, 0.0, bound=1.0), "expected crenel.ckks.Ciphertext, got NoneType"),
        (lambda: bridge.make_keys(5, holder), "expected crenel.ckks.Client, got int"),
    ):
        with pytest.raises(TypeError, match=said):
            call()
