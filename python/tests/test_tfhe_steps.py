"""One evaluator with keys of several steps: what each batch takes, its bits, its memory, its noise."""

import math
import threading

import numpy as np
import pytest
from tfhe_world import open_tfhe, quiet, tfhe_world

from crenel import tfhe

RULES = [(6, 4), (20, 1), (21, 2)]  # a batch of 7 takes 1, of 21 and more 2


@pytest.fixture
def world(device):
    return tfhe_world("toy-lut4g4", device)


def of_steps(world, **options):
    """An evaluator of the world's keys, loaded anew: what others asked for is not in them."""
    context = world.context
    keys = context.evaluation_keys_from_bytes(world.keys.to_bytes())
    return context.evaluator(keys, max_p_fail_log2=0, **options)


def test_each_batch_has_the_bits_of_its_step(world, rng, device):
    """As an evaluator of that step alone has them, on this device and on ref."""
    client = world.client
    ev = of_steps(world, steps=(4, 1), step_table=RULES)
    assert ev.steps == (1, 2, 4) and ev.step_table == tuple(RULES)
    keys = world.keys.to_bytes()
    alone = {}
    for name in {device, "ref"}:
        for step in (1, 2, 4):
            context = open_tfhe(world.context.params, name, step=step)
            alone[name, step] = context.evaluator(context.evaluation_keys_from_bytes(keys), max_p_fail_log2=0)
    table = [int(v) for v in rng.integers(0, 16, 16)]
    files = {}
    for count, step in ((1, 4), (6, 4), (7, 1), (20, 1), (21, 2), (30, 2)):
        m = rng.integers(0, 16, count).astype(np.uint8)
        a = client.encrypt(m, bits=4)
        found = ev.lut(a, table)
        np.testing.assert_array_equal(client.decrypt(found), np.array(table)[m])
        files[step] = found.to_bytes()
        for name in {device, "ref"}:
            one = alone[name, step]
            array = one.context.ciphertext_from_bytes(a.to_bytes())
            assert words(one.lut(array, table)) == words(found), (name, count)
    assert words(alone["ref", 4].context.ciphertext_from_bytes(files[4])) == payload(files[4])


def payload(file):
    from safetensors.numpy import load

    return {name: tensor.tobytes() for name, tensor in load(file).items()}


def words(array):
    return payload(array.to_bytes())


def test_a_listener_does_not_change_a_bit(world, rng):
    """Work that tells how far it is goes in parts, by the step of the whole."""
    from crenel import progress

    ev = of_steps(world, steps=(1,), step_table=[(64, 1), (65, 2)])
    a = world.client.encrypt(rng.integers(0, 16, 130).astype(np.uint8), bits=4)
    quietly = words(ev.lut(a, lambda t: 15 - t))
    with progress(lambda done, total, what: None):
        assert words(ev.lut(a, lambda t: 15 - t)) == quietly


def test_memory_is_stated_before_and_shared_after(world):
    context = world.context
    keys = context.evaluation_keys_from_bytes(world.keys.to_bytes())
    own, all_of_them = context.key_bytes(), context.key_bytes(steps=(1, 2, 4))
    assert keys.nbytes == own and keys.steps == [2]
    assert all_of_them == sum(open_tfhe(context.params, "cpu", step=s).key_bytes() for s in (1, 2, 4)) - 2 * (
        own - context._context.step_bytes(2)
    )
    ev = context.evaluator(keys, steps=(4,), step_table=[(1, 4)], max_p_fail_log2=0)
    assert keys.nbytes == context.key_bytes(steps=(4,)) and ev.keys.nbytes == keys.nbytes
    again = context.evaluator(keys, steps=(4, 2), max_p_fail_log2=0, step_table=[(5, 4), (6, 2)])
    assert again.keys.nbytes == keys.nbytes and keys.steps == [2, 4]  # made once
    context.evaluator(keys, steps=(1,), step_table=[(1, 1)], max_p_fail_log2=0)
    assert keys.nbytes == all_of_them and again.steps == (2, 4)
    assert len(keys.to_bytes()) == len(world.keys.to_bytes())  # they travel as before


def test_threads_ask_for_the_same_step(world, rng):
    context = world.context
    keys = context.evaluation_keys_from_bytes(world.keys.to_bytes())
    m = rng.integers(0, 16, 3).astype(np.uint8)
    a = world.client.encrypt(m, bits=4)
    found = []

    def work():
        ev = context.evaluator(keys, steps=(4, 1), step_table=[(2, 1), (3, 4)], max_p_fail_log2=0)
        found.append(words(ev.lut(a, lambda t: (t + 1) % 16)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(one == found[0] for one in found)
    assert keys.nbytes == context.key_bytes(steps=(1, 2, 4))


def test_integers_and_storage(world, rng):
    """Rounds of one circuit are batches of many sizes."""
    client = world.client
    ev = of_steps(world, steps=(4, 1), step_table=[(3, 4), (8, 2), (9, 1)])
    x, y = rng.integers(0, 2**16, (2, 3), dtype=np.uint16)
    a, b = client.encrypt(x), client.encrypt(y)
    np.testing.assert_array_equal(client.decrypt(ev.add(a, b)), x + y)
    np.testing.assert_array_equal(client.decrypt(ev.less(a, b)), x < y)
    np.testing.assert_array_equal(client.decrypt(ev.decompress(ev.compress(ev.max(a, b)))), np.maximum(x, y))


def test_the_noise_is_that_of_the_step_with_the_most():
    """Bounds and carried variances with several steps are those of the worst alone."""
    params = tfhe.preset("lut4-128")
    stated = {step: params.with_step(step).p_fail_log2 for step in (1, 2, 4)}
    assert stated[4] < stated[2] < stated[1] < -128  # all of them within the promise
    toy = tfhe.preset("toy-lut4g4", allow_insecure=True)
    context = open_tfhe(toy, "cpu")
    keys = context.keygen().evaluation_keys()
    both = context.evaluator(keys, steps=(1, 4), step_table=[(1, 1)])
    alone = {}
    for step in (1, 2, 4):
        one = open_tfhe(toy, "cpu", step=step)
        alone[step] = one.evaluator(one.evaluation_keys_from_bytes(keys.to_bytes()))
    worst = max(ev.p_fail_log2("lut") for ev in alone.values())
    assert worst <= both.p_fail_log2("lut") <= worst + 1.0
    assert both.max_p_fail_log2 == max(ev.max_p_fail_log2 for ev in alone.values())


def test_automatic_goes_by_what_was_measured_and_by_a_budget(world):
    context = world.context
    keys = context.evaluation_keys_from_bytes(world.keys.to_bytes())
    if context.device.kind == "cuda":  # of a GPU the times of toy sets are known to nobody
        with pytest.raises(tfhe.UnsupportedError, match="no times are known"):
            context.evaluator(keys, steps="automatic", max_p_fail_log2=0)
        return
    ev = context.evaluator(keys, steps="automatic", max_p_fail_log2=0)
    assert ev.steps == (2,) and ev.step_table == ()  # a host has one step for all batches
    with pytest.raises(tfhe.ParameterError, match="max_key_bytes is 10, expected at least"):
        context.evaluator(keys, steps="automatic", max_key_bytes=10)
    with pytest.raises(tfhe.ParameterError, match="own choice"):
        context.evaluator(keys, steps=(4,), max_key_bytes=1 << 40)
    for bad in (1.5, math.nan, "10", True):
        with pytest.raises(TypeError, match="max_key_bytes: expected an integer"):
            context.evaluator(keys, steps="automatic", max_key_bytes=bad)
    # A budget is of all that these keys take: the one that packs counts, too.
    lists = world.client.evaluation_keys(lists=True)
    assert lists.nbytes == context.key_bytes(lists=True) > context.key_bytes()
    with pytest.raises(tfhe.ParameterError, match=f"at least {lists.nbytes}, what these keys take"):
        context.evaluator(lists, steps="automatic", max_key_bytes=context.key_bytes())
    assert context.evaluator(lists, steps="automatic", max_key_bytes=lists.nbytes).steps == (2,)


def test_what_is_no_step_is_refused(world):
    context, keys = world.context, world.keys
    before = (keys.nbytes, keys.steps)
    for steps in ((3,), (4, 8), (2, 6)):
        with pytest.raises(tfhe.ParameterError, match="divisor of 4"):
            context.evaluator(keys, steps=steps, step_table=[(1, 2)])
        with pytest.raises(tfhe.ParameterError, match="divisor of 4"):
            context.key_bytes(steps=steps)
    for bad in ((0,), (-1,), (1 << 40,)):
        with pytest.raises(tfhe.ParameterError, match="step"):
            context.evaluator(keys, steps=bad)
    with pytest.raises(tfhe.ParameterError, match="'all'"):
        context.evaluator(keys, steps="all")
    for bad in ((2.5,), ("4",), (True,)):
        with pytest.raises(TypeError, match="integer"):
            context.evaluator(keys, steps=bad)
    for bad in (2, None):
        with pytest.raises(TypeError, match="steps: expected several"):
            context.evaluator(keys, steps=bad)
    with pytest.raises(tfhe.ParameterError, match="divisor of 4"):
        context.evaluator(keys, steps=np.array([2, 3]))
    for table, message in (
        ([(5, 2), (5, 4)], "ascending"),
        ([(9, 4), (5, 2)], "ascending"),
        ([(5, 1)], "steps of 1"),
        ([(0, 2)], "rotations is 0"),
        ([(5, 2, 4)], "expected pairs"),
        ([5, 2], "expected pairs"),
        ("42", "expected pairs"),
    ):
        with pytest.raises(tfhe.ParameterError, match=message):
            context.evaluator(keys, steps=(4,), step_table=table)
    classic = tfhe_world("toy-lut4", context.device.name)
    with pytest.raises(tfhe.UnsupportedError, match="groups"):
        classic.context.evaluator(classic.keys, steps=(2,))
    with pytest.raises(tfhe.UnsupportedError, match="groups"):
        classic.context.evaluator(classic.keys, step_table=[(1, 1)])
    assert classic.ev.steps == () and classic.keys.steps == []
    assert (keys.nbytes, keys.steps) == before


def test_pools_have_one_step(rng):
    """Shares of an array are other batches than the whole: a step is the pool's, for all."""
    params = tfhe.preset("toy-lut4g4", allow_insecure=True)
    pool = quiet(lambda: tfhe.DevicePool(params, ["cpu", "cpu"], step=4))
    assert pool.context.params.numbers["step"] == 4
    client = pool.context.keygen()
    ev = pool.evaluator(client.evaluation_keys(), max_p_fail_log2=0)
    m = rng.integers(0, 16, 7).astype(np.uint8)
    a = client.encrypt(m, bits=4)
    found = ev.lut(a, lambda t: (3 * t) % 16)
    np.testing.assert_array_equal(client.decrypt(found), 3 * m % 16)
    assert words(found) == words(ev.evaluators[0].lut(a, lambda t: (3 * t) % 16))
    grouped = quiet(lambda: tfhe.DevicePool(params, ["cpu", "cpu"], key_group=2))
    assert grouped.context.params.numbers["key_group"] == 2
    with pytest.raises(tfhe.ParameterError, match="divisor of 4"):
        tfhe.DevicePool(params, ["cpu", "cpu"], step=3)
    assert not math.isnan(ev.p_fail_log2("lut"))
