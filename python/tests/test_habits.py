"""Small habits: what is compared, where operands stand, files, pickles, and integers that are too large."""

import copyreg
import errno
import operator
import os
import pickle
import warnings

import numpy as np
import pytest

import crenel
from crenel import _crenel, ckks

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.fixture
def encrypted(world):
    a = world.client.encrypt([1.0, 2.0])
    model = ckks.ErrorModel(world.params)
    return {
        "ciphertext": a,
        "operand": world.ev(a),
        "plaintext": world.context.encode([1.0, 2.0]),
        "bound": model.input(max_abs=1.0),
    }


def test_comparisons_say_what_to_call(encrypted):
    for thing in encrypted.values():
        for compare in COMPARISONS:
            for other in (thing, 1.0, None, np.ones(2)):
                with pytest.raises(TypeError, match=r"client\.decrypt"):
                    compare(thing, other)
        with pytest.raises(TypeError, match="truth value"):
            bool(thing)
        with pytest.raises(TypeError, match="decrypt"):
            assert 1.0 in thing
        assert {thing: 3}[thing] == 3 and len({thing, thing}) == 1
        assert "equal messages" in type(thing).__hash__.__doc__


def test_operands_are_not_iterated_over(encrypted):
    with pytest.raises(TypeError, match="decrypt"):
        list(encrypted["operand"])


def test_operands_stand_where_ciphertexts_do(world, rng):
    """Every method of the evaluator: the same bits, as a ciphertext, mixed or not."""
    ev, client = world.ev, world.client
    a, b = (client.encrypt(v) for v in rng.uniform(-1, 1, (2, world.slots)))
    p = world.context.encode([0.5])
    three = ev.square_lazy(a)
    lazy = ev(three)
    for name, arguments in {
        "add": (a, b),
        "sub": (a, b),
        "negate": (a,),
        "multiply_integer": (a, 3),
        "multiply_monomial": (a, 3),
        "multiply": (a, b),
        "square": (a,),
        "multiply_lazy": (a, b),
        "square_lazy": (a,),
        "relinearise": (three,),
        "relinearise_rescale": (three,),
        "multiply_rescale": (a, b),
        "rescale": (ev.square(a),),
        "adjust_level": (a, 2),
        "rotate": (a, 1),
        "conjugate": (a,),
        "rotate_many": (a, [1, 2]),
        "rotate_sum": (a, [0, 1]),
        "sum_slots": (a, 4),
        "polynomial": (a, [0.5, 0.25, 0.125]),
        "linear_transform": ({0: [1.0], 1: [0.5]}, a),
    }.items():
        call = getattr(ev, name)
        expected = call(*arguments)
        places = [i for i, x in enumerate(arguments) if isinstance(x, ckks.Ciphertext)]
        for chosen in ([places[0]], places, places[1:]):
            mixed = [ev(x) if i in chosen else x for i, x in enumerate(arguments)]
            found = call(*mixed)
            for x, y in zip(*(r if isinstance(r, list) else [r] for r in (found, expected)), strict=True):
                assert type(x) is ckks.Ciphertext and x.to_bytes() == y.to_bytes(), name
    for name, other in (
        ("add", p),
        ("sub", p),
        ("multiply", p),
        ("add", 0.5),
        ("sub", 1j),
        ("multiply", 0.5),
    ):
        call = getattr(ev, name)
        assert call(ev(a), other).to_bytes() == call(a, other).to_bytes()
    assert ckks.Operand(ev, lazy).ciphertext.components == 3
    graph = ckks.Graph(ev, lambda x, y: ev.add(x, y), a, ev(b))
    assert graph(ev(a), b).to_bytes() == ev.add(a, b).to_bytes()
    for wrong in (p, 3, None, "text"):
        with pytest.raises(TypeError):
            ev.negate(wrong)


def test_files_that_are_not_there(boot_world, tmp_path):
    keys = boot_world.client.evaluation_keys(rotations=[1])
    load = boot_world.context.load_evaluation_keys
    file = tmp_path / "file"
    file.write_bytes(b"x")
    missing, below = tmp_path / "missing", tmp_path / "folder" / "missing"
    for call, path, kind, code in [
        (lambda p: load(p), missing, FileNotFoundError, errno.ENOENT),
        (lambda p: load(p), tmp_path, IsADirectoryError, errno.EISDIR),
        (lambda p: load(p), file / "inside", NotADirectoryError, errno.ENOTDIR),
        (lambda p: keys.save(p), below, FileNotFoundError, errno.ENOENT),
        (lambda p: keys.save(p), tmp_path, IsADirectoryError, errno.EISDIR),
        (lambda p: keys.save(p), file / "inside", NotADirectoryError, errno.ENOTDIR),
        (lambda p: crenel.write_file(p, b""), below, FileNotFoundError, errno.ENOENT),
        (lambda p: crenel.write_file(p, b""), tmp_path, IsADirectoryError, errno.EISDIR),
    ]:
        with pytest.raises(kind) as caught:
            call(path)
        error = caught.value
        assert isinstance(error, crenel.SerializationError) and error.code == "SerializationError"
        assert (error.errno, error.filename, error.strerror) == (code, str(path), os.strerror(code))
        assert error.fields["errno"] == code and str(path) in str(error)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), again.fields, again.errno) == (str(error), error.fields, error.errno)
    with pytest.raises(crenel.SerializationError) as caught:
        load(file)  # a file that is there, and is no key file
    assert not isinstance(caught.value, OSError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EACCES, PermissionError),
        (errno.EPERM, PermissionError),
        (errno.ENOENT, FileNotFoundError),
        (errno.ENOSPC, OSError),
    ],
)
def test_what_the_system_says_is_pythons_error_too(code, kind):
    from crenel import errors

    error = errors._file_error(code)("cannot load", {"errno": code, "filename": "f"})
    assert isinstance(error, kind) and isinstance(error, crenel.SerializationError)
    assert (error.errno, error.filename, str(error)) == (code, "f", "cannot load")


def test_every_class_is_pickled_or_says_what_to_send():
    classes = [x for x in vars(_crenel).values() if isinstance(x, type)]
    assert len(classes) > 30
    assert [c.__name__ for c in classes if c not in copyreg.dispatch_table] == []


def test_options_travel():
    given = {
        "slots": 64,
        "pack": 2,
        "values": "centred",
        "message_ratio": 7,
        "message": "real",
        "order": "slot_to_coeff_first",
        "arcsine_degree": 3,
        "target_level": 2,
        "iterations": 2,
        "keys": "minimal",
        "coeff_to_slot_stages": [3, 3],
        "slot_to_coeff_stages": [2, 2, 2],
        "graph": False,
    }
    for options in (ckks.BootstrapOptions(), ckks.BootstrapOptions(**given)):
        assert repr(pickle.loads(pickle.dumps(options))) == repr(options)
    assert all(getattr(pickle.loads(pickle.dumps(options)), k) == v for k, v in given.items())


def test_options_of_other_versions():
    """What an earlier version did not know is as by default; what a later one knows more is refused."""
    load, (values,) = copyreg.dispatch_table[ckks.BootstrapOptions](ckks.BootstrapOptions(message="real"))
    assert repr(load(values[:13])) == repr(ckks.BootstrapOptions(message="real"))
    with pytest.raises(crenel.SerializationError, match=f"have {len(values) + 1} values.*later version"):
        load((*values, True))


def test_a_fit_says_what_to_send(world):
    with pytest.raises(crenel.UnsupportedError, match="coefficients"):
        pickle.dumps(world.ev.chebyshev(np.exp, -1, 1, 3))


def test_integers_beyond_64_bits_as_limits(world, tmp_path):
    a = world.client.encrypt([1.0])
    for large in (2**63, 2**64, 10**30, np.uint64(2**63)):
        for call in (
            lambda n: world.context.ciphertext_from_bytes(a.to_bytes(), max_bytes=n),
            lambda n: world.context.evaluation_keys_from_bytes(world.keys.to_bytes(), max_bytes=n),
            lambda n: ckks.Params.from_bytes(world.params.to_bytes(), allow_insecure=True, max_bytes=n),
            lambda n: world.context.load_evaluation_keys(tmp_path / "none", max_bytes=n),
            lambda n: world.context.load_evaluation_keys(tmp_path / "none", staged_bytes=n),
            lambda n: world.keys.staged(n),
            lambda n: world.context.device.set_idle_limit(n),
        ):
            with pytest.raises(crenel.ParameterError, match="2\\^63 - 1"):
                call(large)
    for wrong in (1.5, "1"):
        with pytest.raises(TypeError):
            world.context.ciphertext_from_bytes(a.to_bytes(), max_bytes=wrong)
    assert world.context.ciphertext_from_bytes(a.to_bytes(), max_bytes=np.int64(10**9)).level == a.level


def test_a_bootstrapper_takes_what_its_keys_were_made_for(boot_world):
    context, client = boot_world.context, boot_world.client
    keys = client.evaluation_keys(bootstrap=ckks.BootstrapOptions(slots=256))
    with warnings.catch_warnings():
        warnings.simplefilter("error", crenel.errors.KeyModeWarning)
        boot = context.bootstrapper(keys)
        context.bootstrapper(client.evaluation_keys(bootstrap="minimal"))
    report = boot.report()
    assert (boot.options.slots, boot.options.keys) == (report.slots, report.keys) == (256, "hoisted")
    assert report.keys_decided and "what the keys given serve" in boot.describe()
    z = np.linspace(-1, 1, 256)
    assert np.abs(client.decrypt(boot(client.encrypt(z, level=0, slots=256))) - z).max() < 2**-10
    for asked, call in (
        ({"keys": "hoisted"}, "client.evaluation_keys(bootstrap=True)"),
        (
            {"slots": 512, "keys": "hoisted"},
            "client.evaluation_keys(bootstrap=ckks.BootstrapOptions(slots=512))",
        ),
    ):
        with pytest.raises(ckks.KeyMissingError) as caught:
            context.bootstrapper(keys, **asked)
        assert str(caught.value).endswith(call) and caught.value.fields["rotations"]
        made = eval(call, {"client": client, "ckks": ckks})
        context.bootstrapper(made, **asked)
    # Keys of rotations alone serve other slots, too, slowly.
    plain = client.evaluation_keys(bootstrap=ckks.BootstrapOptions(slots=256, over_mod_raise=False))
    with pytest.warns(crenel.errors.KeyModeWarning, match="256 slots with hoisted keys, and"):
        slow = context.bootstrapper(plain, slots=boot_world.params.slots)
    assert slow.report().keys == "minimal" and "256 slots" in slow.describe()
