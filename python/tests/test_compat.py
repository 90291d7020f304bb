"""Files that versions wrote (tests/compat, never written again) are read and hold what they held.

Where a test here fails, the reader has lost a version: mend the reader, or raise the format's version with a
Migration line in CHANGELOG.md (docs/reference/releases.md, "Files").
"""

from __future__ import annotations

import numpy as np
import pytest
from compat_world import VERSIONS, kept, same  # noqa: F401

import crenel
from crenel import bridge, ckks, nn, tfhe
from crenel.serve import forms
from crenel.workloads import EncryptedValues, checkpoint
from crenel.workloads.regression.state import TrainingState
from crenel.workloads.regression.tables import EncryptedTable
from crenel.workloads.regression.training import EncryptedScores
from crenel.workloads.sorting import running

pytestmark = pytest.mark.filterwarnings("ignore::crenel.InsecureParametersWarning")


@pytest.fixture(scope="module")
def world(kept):  # noqa: F811
    params = ckks.Params.from_bytes(kept.data("ckks-params"), allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    return context, context.client_from_secret_key(kept.data("ckks-secret_key"))


def test_this_version_or_one_before_it_is_kept():
    assert VERSIONS
    released = crenel.__version__.split(".dev")[0]
    numbers = [tuple(map(int, version.split("."))) for version in VERSIONS]
    assert max(numbers) <= tuple(map(int, released.split(".")))


def test_every_file_has_its_values(kept):  # noqa: F811
    """And the kinds are all: test_compat_kinds.py."""
    assert {file.name for file in kept.folder.glob("*.safetensors")} == set(kept.values["files"])
    assert kept.values["version"] == kept.folder.name


def test_parameters_and_keys(kept, world):  # noqa: F811
    context, client = world
    assert context.params.id == kept.value("ckks-params", "id")
    assert client.secret_key_id == kept.value("ckks-secret_key", "id")
    public = context.public_key_from_bytes(kept.data("ckks-public_key"))
    x = np.linspace(-1, 1, 8)
    same(client.decrypt(public.encrypt(x)), x)


def test_ciphertexts(kept, world):  # noqa: F811
    context, client = world
    for name in ("ckks-ciphertext", "ckks-product"):
        ciphertext = context.ciphertext_from_bytes(kept.data(name))
        assert ciphertext.level == kept.value(name, "level")
        same(client.decrypt(ciphertext), kept.slots(name))
    assert context.ciphertext_from_bytes(kept.data("ckks-ciphertext")).bound == 1.5


def test_computing_with_old_keys(kept, world):  # noqa: F811
    context, client = world
    ev = context.evaluator(context.evaluation_keys_from_bytes(kept.data("ckks-evaluation_keys")))
    a = context.ciphertext_from_bytes(kept.data("ckks-ciphertext"))
    x = kept.slots("ckks-ciphertext")
    same(client.decrypt(ev.multiply_rescale(a, a)), x * x)
    same(client.decrypt(ev.rotate(a, 1)), np.roll(x, -1))
    plain = context.plaintext_from_bytes(kept.data("ckks-plaintext"))
    product = ev.multiply(ev.adjust_level(a, plain.level), plain)
    same(client.decrypt(ev.rescale(product)), kept.slots("ckks-plaintext", "times"))


def test_arrays_and_checkpoints(kept, world):  # noqa: F811
    context, client = world
    array = ckks.Array.from_bytes(context, kept.data("ckks-array"))
    same(client.decrypt(array) if hasattr(array, "shape") else array, kept.value("ckks-array", "array"))
    found = checkpoint.unpacked(kept.data("ckks-checkpoint"), context, "compat")
    assert found[:2] == tuple(kept.value("ckks-checkpoint", what) for what in ("belongs", "progress"))
    same(client.decrypt(found[2]["state"]), kept.slots("ckks-checkpoint"))


def test_values_of_a_sort(kept):  # noqa: F811
    params = ckks.preset(kept.value("values", "params"), allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("values-secret_key"))
    found = EncryptedValues.from_bytes(context, kept.data("values"))
    same(found.decrypt(client), kept.value("values", "values"))


def test_tfhe(kept):  # noqa: F811
    params = tfhe.Params.from_bytes(kept.data("tfhe-params"), allow_insecure=True)
    assert params.name == kept.value("tfhe-params", "name")
    context = tfhe.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("tfhe-secret_key"))
    messages = context.ciphertext_from_bytes(kept.data("tfhe-messages"))
    expected = np.array(kept.value("tfhe-messages", "messages"))
    assert (client.decrypt(messages) == expected).all()
    integers = context.integers_from_bytes(kept.data("tfhe-integers"))
    assert (client.decrypt(integers) == kept.value("tfhe-integers", "integers")).all()
    ev = context.evaluator(context.evaluation_keys_from_bytes(kept.data("tfhe-evaluation_keys")))
    assert (client.decrypt(ev.lut(messages, lambda t: (t * t + 1) % 16)) == (expected**2 + 1) % 16).all()


def test_stored_arrays(kept):  # noqa: F811
    params = tfhe.Params.from_bytes(kept.data("stored-params"), allow_insecure=True)
    context = tfhe.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("stored-secret_key"))
    keys = context.evaluation_keys_from_bytes(kept.data("stored-evaluation_keys"))
    ev = context.evaluator(keys, max_p_fail_log2=-90)
    for form in ("switched", "lists"):
        found = context.compressed_from_bytes(kept.data(f"stored-{form}"))
        assert found.lists == (form == "lists")
        messages = kept.value(f"stored-{form}", "messages")
        assert (client.decrypt(ev.decompress(found)) == messages).all()
    assert ev.compress(client.encrypt([1], bits=4), lists=True).lists  # the key packs


def test_keys_of_the_bridge(kept):  # noqa: F811
    """Numbers go to TFHE by kept keys, and values of a table come back."""
    sets = (kept.value(f"bridge-{scheme}_secret_key", "params") for scheme in ("ckks", "tfhe"))
    context = ckks.Context(ckks.preset(next(sets), allow_insecure=True), device="cpu")
    small = tfhe.Context(tfhe.preset(next(sets), allow_insecure=True), device=context.device)
    client = context.client_from_secret_key(kept.data("bridge-ckks_secret_key"))
    holder = small.client_from_secret_key(kept.data("bridge-tfhe_secret_key"))
    keys = bridge.keys_from_bytes(context, small, kept.data("bridge-keys"))
    numbers = context.ciphertext_from_bytes(kept.data("bridge-numbers"))
    low, step, messages = (kept.value("bridge-numbers", what) for what in ("low", "step", "messages"))
    world = bridge.Bridge(context, small, slots=len(messages))
    ev = context.evaluator(client.evaluation_keys(**world.key_options()))
    across = world.crossing(ev, small.evaluator(holder.evaluation_keys()), keys)
    crossed = across.to_messages(numbers, low=low, step=step)
    assert (holder.decrypt(crossed) == messages).all()
    table = np.arange(16) / 8 - 1  # which messages stand for
    back = client.decrypt(across.to_slots(crossed, table))
    assert np.abs(back - table[messages]).max() < 2**-7  # steps are 2^-3


def test_what_workloads_keep_and_send(kept):  # noqa: F811
    params = ckks.Params.from_bytes(kept.data("training-params"), allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("training-secret_key"))
    table = EncryptedTable.from_bytes(context, [kept.data("training-table")])
    assert (table.what, table.rows) == ("labels", (kept.value("training-table", "rows"),))
    same(client.decrypt(table.blocks[0]), kept.slots("training-table"))
    state = TrainingState.from_bytes(context, kept.data("training-state"))
    assert state.iteration == kept.value("training-state", "iteration") and state.inner is not None
    for found, expected in zip(
        (state.ahead, state.weights, state.inner), kept.slots("training-state"), strict=True
    ):
        same(client.decrypt(found), expected)
    scores = EncryptedScores.from_bytes(context, kept.data("training-scores"))
    assert scores.iteration == kept.value("training-scores", "iteration")
    same(client.decrypt(scores.blocks[0]), kept.slots("training-scores"))
    _, progress, parts = checkpoint.unpacked(kept.data("training-sort"), context, running.KIND)
    assert progress == {"rounds": kept.value("training-sort", "rounds")}
    same(client.decrypt(parts["column 0"]), kept.slots("training-sort"))


def test_what_a_client_of_a_function_is_given(kept):  # noqa: F811
    document, _ = nn.archive.unpacked(kept.data("service-function"), "function")
    assert document == kept.value("service-function", "document")
    params = ckks.Params.from_bytes(bytes.fromhex(document["params"]), allow_insecure=True)
    assert params.log_n == 10


def test_functions_and_what_is_sent_to_them(kept):  # noqa: F811
    for name in ("functions-counted", "functions-integers"):
        document, _ = nn.archive.unpacked(kept.data(name), "function")
        assert document == kept.value(name, "document")
    document = kept.value("functions-counted", "document")
    context = ckks.Context(
        ckks.Params.from_bytes(bytes.fromhex(document["params"]), allow_insecure=True), device="cpu"
    )
    client = context.client_from_secret_key(kept.data("functions-secret_key"))
    program = kept.value("functions-sent", "program")
    assert program == forms.fingerprint(document)
    found, single = forms.unpacked(kept.data("functions-sent"), program, result=False)
    assert [kind for kind, _ in found] == ["vector", "array"] and not single
    same(forms.opened(client, *found[0]), kept.slots("functions-sent"))
    same(forms.opened(client, *found[1]), kept.value("functions-sent", "array"))


def test_a_network(kept):  # noqa: F811
    program = nn.Program.from_bytes(kept.data("nn-program"), device="cpu", allow_insecure=True)
    spec = nn.ClientSpec.from_bytes(kept.data("nn-client"), allow_insecure=True)
    client = spec.client_from_secret_key(kept.data("nn-secret_key"), device="cpu")
    same(
        client.decrypt(client.tensor_from_bytes(kept.data("nn-scores")), spec),
        kept.value("nn-scores", "scores"),
    )
    server = program.bind(client.evaluation_keys(spec))
    scores = server.run(server.tensor_from_bytes(kept.data("nn-sample")))
    same(client.decrypt(scores, spec), kept.value("nn-sample", "scores"))
