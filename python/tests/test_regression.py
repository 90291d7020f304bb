"""Training on encrypted examples: every iteration against the clear, refusals, files, an end by force."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from conftest import open_context, toy
from regression_world import Server, leveled, model, rms, seeded, table, tumours

import crenel
from crenel.errors import DivergenceError, KeyMissingError, ParameterError, SerializationError, StateError
from crenel.workloads import Sorting, logistic_regression
from crenel.workloads.recordings import Recordings
from crenel.workloads.regression import EncryptedScores, EncryptedTable, least_squares
from crenel.workloads.regression.encrypted import Encrypted
from crenel.workloads.regression.state import TrainingState
from crenel.workloads.stages import Stopwatch

DEVICES = [d for d in os.environ.get("CRENEL_DEVICES", "cpu").split(",") if d and d != "ref"]


@pytest.fixture(scope="module")
def server() -> Server:
    _, rng = seeded()
    return Server(model("toy-boot35", 5, 32, order="random", seed=3), *table(rng, 70, 5))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "preset, variant, features, batch",
    [("toy-boot35", "crenel", 30, 128), ("toy-boot40", "crenel", 9, 50), ("toy-boot40", "paper", 12, 64)],
)
def test_every_iteration_is_the_clear_one(device, preset, variant, features, batch, tmp_path):
    """Within four times the expected error, which is an upper estimate; two refreshes in nine iterations."""
    seed, rng = seeded()
    X, y = table(rng, 2 * batch + 3, features) if features != 30 else tumours()
    s = Server(model(preset, features, batch, variant=variant, order="random", seed=seed), X, y, device)
    trace = s.model.simulate(s.X, s.y, 9)
    expected = s.model.expected_errors(9)
    for iterations in (1, 2, 3, 4, 5, 6, 9):
        state = s.model.fit(s.ev, s.x, s.labels, iterations, checkpoint=tmp_path / "c")  # goes on
        s.model.check(s.client, state)
        assert state.weights.level == trace.levels[iterations - 1]
        error = rms(s.model.decrypt(s.client, state), trace.weights[iterations - 1])
        assert error < 4 * expected[iterations - 1], (iterations, error, expected[iterations - 1])
    scores = s.model.decrypt_scores(s.client, s.model.predict(s.ev, s.x, state))
    w = s.model.decrypt(s.client, state)
    assert scores.shape == (len(X),)
    assert np.abs(scores - (w[0] + X @ w[1:])).max() < 1e-3
    assert np.mean((scores > 0) == (y > 0)) > 0.7


def test_pairs_of_the_paper_are_of_v_and_x():
    """Also where the state is several vectors: neighbours in a list share a place of the bootstrap."""
    client = open_context(toy(), "cpu").keygen()
    numbers = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    v, x = (client.encrypt(n[:, None], slots=1) for n in numbers)
    seen = []

    def boot(vectors, ev):
        seen.extend(client.decrypt(c).real.item() for c in vectors)
        return vectors

    ev = client.context.evaluator(client.evaluation_keys(relinearisation=False))
    back = Encrypted(ev, boot).refresh([v, x])
    np.testing.assert_allclose(seen, [1, -1, 2, -2, 3, -3], atol=1e-3)
    for c, n in zip(back, numbers, strict=True):
        np.testing.assert_allclose(client.decrypt(c).real.ravel(), n, atol=1e-3)


def test_leveled_parameters_need_no_bootstrap():
    _, rng = seeded()
    m = logistic_regression(leveled(11), features=4, batch=32)
    s = Server(m, *table(rng, 40, 4))
    state = m.fit(s.ev, s.x, s.labels, 3)
    trace = m.simulate(s.X, s.y, 3)
    assert rms(m.decrypt(s.client, state), trace.weights[-1]) < 4 * m.expected_errors(3)[-1]
    scores = m.decrypt_scores(s.client, m.predict(s.ev, s.x, state))
    w = m.decrypt(s.client, state)
    assert np.abs(scores - (w[0] + s.X @ w[1:])).max() < 1e-4
    shallow = logistic_regression(leveled(6), features=4, batch=32)
    s = Server(shallow, s.X, s.y)
    with pytest.raises(StateError, match="no bootstrap"):
        shallow.predict(s.ev, s.x, shallow.fit(s.ev, s.x, s.labels, 2))


def test_tables_travel_as_bytes(server):
    sent = server.x.to_bytes()
    x = EncryptedTable.from_bytes(server.context, sent)
    assert x.fingerprint == server.x.fingerprint and len(x) == 70
    assert (x.what, x.rows) == ("features", (32, 32, 6)) == (server.x.what, server.x.rows)
    a = server.model.fit(server.ev, x, server.labels, 2)
    b = server.model.fit(server.ev, server.x, server.labels, 2)
    assert a.weights.to_bytes() == b.weights.to_bytes()
    labels = EncryptedTable.from_bytes(server.context, server.labels.to_bytes())
    assert (labels.what, labels.rows) == ("labels", (32, 32, 6))
    with pytest.raises(StateError, match="labels where features"):
        server.model.fit(server.ev, labels, labels, 2)


def test_tables_from_bytes_that_are_not_theirs(server):
    seed, rng = seeded()
    x, y = server.x.to_bytes(), server.labels.to_bytes()
    for blocks in ([], x[:1], x[:2], x[1:], [*x, x[2]], x[::-1], [x[0], y[1], x[2]], [x[0], x[0], x[2]]):
        with pytest.raises(SerializationError):
            EncryptedTable.from_bytes(server.context, blocks)
    ciphertext = [block.to_bytes() for block in server.x.blocks]  # without what the rows are
    for bad in (b"", x[0][:-1], x[0] + b"0", x[0][:60], ciphertext[0]):
        with pytest.raises(SerializationError):
            EncryptedTable.from_bytes(server.context, [bad, *x[1:]])
    for place in rng.integers(len(x[0]), size=20):
        bad = bytearray(x[0])
        bad[place] ^= 1 << rng.integers(8)
        with pytest.raises(SerializationError):
            EncryptedTable.from_bytes(server.context, [bytes(bad), *x[1:]])
    state = server.model.fit(server.ev, server.x, server.labels, 1)
    with pytest.raises(StateError, match="expected one of a block of an encrypted table"):
        EncryptedTable.from_bytes(server.context, [state.to_bytes()])
    for change in (
        {"rows": (32, 0, 6)},
        {"rows": (32, 10**12, 6)},
        {"rows": ("32", 32, 6)},
        {"what": "both"},
    ):
        with pytest.raises(SerializationError, match="a positive number of rows in a block of"):
            EncryptedTable.from_bytes(server.context, replace(server.x, **change).to_bytes())


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.0001, -7.0])
def test_features_out_of_range_are_named_by_place(server, bad):
    X = server.X.copy()
    X[41, 3] = bad
    with pytest.raises(ParameterError, match=r"X\[41, 3\]") as caught:
        server.model.encrypt(server.client, X)
    assert caught.value.fields["at"] == [41, 3] and str(bad) not in str(caught.value.fields)


def test_states_and_scores_travel_as_bytes(server):
    """To a client that has the model, its key and bytes; a state of another model or shape is refused."""
    m = server.model
    for iterations in (1, 4, 6):
        state = m.fit(server.ev, server.x, server.labels, iterations)
        other = TrainingState.from_bytes(server.context, state.to_bytes())
        assert (other.iteration, other.blocks) == (state.iteration, state.blocks)
        m.check(server.client, other)
        assert (m.decrypt(server.client, other) == m.decrypt(server.client, state)).all()
    scores = m.predict(server.ev, server.x, other)
    sent = scores.to_bytes()
    found = EncryptedScores.from_bytes(server.context, sent)
    assert found.rows == scores.rows
    assert (m.decrypt_scores(server.client, found) == m.decrypt_scores(server.client, scores)).all()
    with pytest.raises(StateError, match="is of scores"):
        TrainingState.from_bytes(server.context, sent)
    for damaged in (b"", sent[:-1], sent[:50], sent[:-1] + bytes([sent[-1] ^ 1])):
        with pytest.raises(SerializationError):
            EncryptedScores.from_bytes(server.context, damaged)
    with pytest.raises(StateError, match="a state of model"):
        model("toy-boot35", 5, 16).decrypt(server.client, other)
    for iteration in (0, 10**12):
        with pytest.raises(SerializationError, match="iteration"):
            TrainingState.from_bytes(server.context, replace(state, iteration=iteration).to_bytes())
    with pytest.raises(StateError, match="ahead of the state"):
        m.check(server.client, replace(state, ahead=server.client.encrypt([1.0, 2.0], slots=2)))


def test_tables_of_wrong_shapes_and_kinds(server):
    m, client = server.model, server.client
    for X in (server.X[:, :4], server.X[0], np.zeros((0, 5)), server.X.astype(str), server.X * 1j):
        with pytest.raises(ParameterError):
            m.encrypt(client, X)
    for y in (
        server.y[:, None],
        np.zeros(70),
        np.where(server.y > 0, 1, 0),
        np.ones(70),
        server.y * 0.5,
        server.y * 1j,
    ):
        with pytest.raises(ParameterError):
            m.encrypt_labels(client, y)
    y = server.y.copy()
    y[5] = 2
    with pytest.raises(ParameterError, match=r"y\[5\]"):
        m.encrypt_labels(client, y)


def test_tables_that_do_not_fit_are_refused(server):
    m = server.model
    short = m.encrypt_labels(server.client, server.y[:40])
    with pytest.raises(StateError, match="40 labels"):
        m.fit(server.ev, server.x, short, 2)
    with pytest.raises(StateError, match="encrypted labels where features"):
        m.fit(server.ev, server.labels, server.labels, 2)
    other = model("toy-boot35", 5, 16)
    with pytest.raises(StateError, match="another model"):
        m.fit(server.ev, other.encrypt(server.client, server.X), server.labels, 2)
    with pytest.raises(StateError):
        model("toy-boot40", 5, 32).encrypt(server.client, server.X)
    with pytest.raises(ParameterError):
        m.fit(server.ev, server.x, server.labels, 0)


def test_missing_keys_are_named(server):
    keys = server.client.evaluation_keys(rotations=[1])
    with pytest.raises(KeyMissingError):
        server.model.fit(server.context.evaluator(keys), server.x, server.labels, 2)


def test_divergence_is_told_without_values():
    X, y = tumours()
    m = model("toy-boot35", 30, 128, sigmoid=least_squares(2.5), rate=8.0)
    s = Server(m, X, y)
    with pytest.raises(DivergenceError) as caught:
        m.fit(s.ev, s.x, s.labels, 9, on_refresh=lambda state: m.check(s.client, state))
    error = caught.value
    assert isinstance(error, StateError) and set(error.fields) == {"iteration", "what", "index", "count"}
    assert crenel.DivergenceError is DivergenceError


def test_a_state_beyond_the_range_is_told():
    _, rng = seeded()
    m = model("toy-boot35", 5, 32, weight_range=0.01)
    s = Server(m, *table(rng, 32, 5))
    with pytest.raises(DivergenceError, match="range of weights"):
        m.check(s.client, m.fit(s.ev, s.x, s.labels, 3))


def test_progress_and_stages(server):
    told: list[tuple[int, int, str]] = []
    watch = Stopwatch(server.context.synchronize)
    server.model.fit(server.ev, server.x, server.labels, 6, progress=lambda *a: told.append(a), stages=watch)
    assert [t[0] for t in told] == list(range(7)) and {t[1:] for t in told} == {(6, "training iterations")}
    assert watch.counts["refresh"] == 1 and watch.counts["row sums"] == 6
    told.clear()
    with crenel.progress(lambda *a: told.append(a)):
        server.model.fit(server.ev, server.x, server.labels, 1)
        server.client.evaluation_keys(rotations=[1])
    assert told[1] == (1, 1, "training iterations") and told[-1][2] == "evaluation keys"


# ---- checkpoints -------------------------------------------------------------------------------------------


def stopped(server: Server, path, after: int) -> None:
    """A training that its user stops at a refresh."""

    def on(state: TrainingState) -> None:
        if state.iteration >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.model.fit(server.ev, server.x, server.labels, 9, checkpoint=path, on_refresh=on)


def same(a: TrainingState, b: TrainingState) -> bool:
    return (a.ahead.to_bytes(), a.weights.to_bytes()) == (b.ahead.to_bytes(), b.weights.to_bytes())


def test_a_stopped_training_goes_on_to_the_same_bits(server, tmp_path):
    path = tmp_path / "c"
    straight = server.model.fit(server.ev, server.x, server.labels, 9)
    stopped(server, path, 5)
    told: list[int] = []
    state = server.model.fit(
        server.ev, server.x, server.labels, 9, checkpoint=path, progress=lambda done, *_: told.append(done)
    )
    assert same(state, straight) and told == [0, 5, 6, 7, 8, 9]
    again = server.model.fit(server.ev, server.x, server.labels, 9, checkpoint=path)
    assert same(again, straight) and again.iteration == 9
    with pytest.raises(StateError, match="iteration 9, 4 were asked for"):
        server.model.fit(server.ev, server.x, server.labels, 4, checkpoint=path)
    more = server.model.fit(server.ev, server.x, server.labels, 10, checkpoint=path)
    trace = server.model.simulate(server.X, server.y, 10)
    assert (
        rms(server.model.decrypt(server.client, more), trace.weights[-1])
        < 4 * server.model.expected_errors(10)[-1]
    )


def test_checkpoints_of_others_are_refused(server, tmp_path):
    path = tmp_path / "c"
    stopped(server, path, 5)
    before = path.read_bytes()
    m, ev, x, y = server.model, server.ev, server.x, server.labels
    with pytest.raises(StateError, match="another features"):
        m.fit(ev, m.encrypt(server.client, server.X), y, 9, checkpoint=path)
    with pytest.raises(StateError, match="another labels"):
        m.fit(ev, x, m.encrypt_labels(server.client, server.y), 9, checkpoint=path)
    slower = model("toy-boot35", 5, 32, order="random", seed=3, rate=0.9)
    with pytest.raises(StateError, match="another model"):
        slower.fit(ev, x, y, 9, checkpoint=path)
    with pytest.raises(StateError, match="a state of model"):
        slower.decrypt(server.client, m.fit(ev, x, y, 1))
    stranger = server.context.keygen()
    with pytest.raises(StateError, match="secret key"):
        m.fit(server.context.evaluator(m.keys(stranger)), x, y, 9, checkpoint=path)
    path.write_bytes(before[:-1])
    with pytest.raises(SerializationError):
        m.fit(ev, x, y, 9, checkpoint=path)


def test_nothing_secret_is_in_a_checkpoint(server, tmp_path):
    path = tmp_path / "c"
    stopped(server, path, 5)
    data = path.read_bytes()
    exported = server.client.export_secret_key()
    body = exported[len(exported) // 2 :][:64]
    assert body not in data and b'secret_key"' not in data.replace(b"secret_key_id", b"")


KILLED = """
import sys, warnings
sys.path[:0] = sys.argv[4:]
warnings.simplefilter("ignore")
from crenel import ckks
from crenel.workloads import Sorting, logistic_regression
from crenel.workloads.regression import EncryptedTable, LogisticRegression
folder, marker = sys.argv[1], sys.argv[2]
params = ckks.preset("toy-boot35", allow_insecure=True)
context = ckks.Context(params, "cpu")
model = LogisticRegression(params, features=5, batch=32, order="random", seed=3)
keys = context.load_evaluation_keys(folder + "/keys")
def read(name):
    blocks = [open(f"{folder}/{name}{k}", "rb").read() for k in range(int(sys.argv[3]))]
    return EncryptedTable.from_bytes(context, blocks)
x, y = read("x"), read("y")
def told(done, total, what):
    open(marker, "w").write(str(done))
model.fit(context.evaluator(keys), x, y, 9, checkpoint=folder + "/c", progress=told)
"""


def test_a_killed_process_goes_on_to_the_same_bits(server, tmp_path):
    server.keys.save(tmp_path / "keys")
    for name, what in (("x", server.x), ("y", server.labels)):
        for k, block in enumerate(what.to_bytes()):
            (tmp_path / f"{name}{k}").write_bytes(block)
    script, marker = tmp_path / "killed.py", tmp_path / "marker"
    script.write_text(KILLED)
    blocks = str(len(server.x.blocks))
    command = [sys.executable, str(script), str(tmp_path), str(marker), blocks, *sys.path]
    child = subprocess.Popen(command)
    checkpoint, deadline = tmp_path / "c", time.monotonic() + 120
    while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)  # into the refresh or what follows
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, "it ended before it was killed"
    done = int(marker.read_text())
    assert 1 <= done < 9
    state = server.model.fit(server.ev, server.x, server.labels, 9, checkpoint=checkpoint)
    assert same(state, server.model.fit(server.ev, server.x, server.labels, 9))


def test_other_parameters_are_refused(server, tmp_path):
    path = tmp_path / "c"
    stopped(server, path, 5)
    other = Server(model("toy-boot40", 5, 32, order="random", seed=3), server.X, server.y)
    with pytest.raises(StateError):
        other.model.fit(other.ev, other.x, other.labels, 9, checkpoint=path)
    assert toy("toy-boot40").id != server.model.params.id


def test_blocks_that_nobody_sees_again_are_given_back():
    """Memory does not grow with the table: six blocks, each seen once."""
    _, rng = seeded()
    s = Server(model("toy-boot35", 5, 16), *table(rng, 96, 5))
    s.context.reset_peak()
    before = s.context.bytes_in_use
    kept: list[int] = []
    s.model.fit(s.ev, s.x, s.labels, 6, on_refresh=lambda state: kept.append(s.context.bytes_in_use - before))
    block = sum(b.nbytes for b in s.x.blocks) / len(s.x.blocks)
    assert len(kept) == 1 and kept[0] < 4 * block, (kept, block)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", ["crenel", "paper"])
def test_a_recorded_training_has_the_same_bits(device, variant):
    """Five iterations, two recorded segments of three, and one that is shorter."""
    _, rng = seeded()
    s = Server(model("toy-boot35", 5, 32, variant=variant), *table(rng, 70, 5), device)
    told: list[int] = []
    recorded = s.model.fit(s.ev, s.x, s.labels, 12, graph=True, progress=lambda done, *_: told.append(done))
    assert told == list(range(13))
    eager = s.model.fit(s.ev, s.x, s.labels, 12)
    assert same(recorded, eager)
    kept = Recordings()
    for _ in range(2):
        assert same(s.model.fit(s.ev, s.x, s.labels, 12, graph=kept), eager)
        assert len(kept) == 1
    with pytest.raises(StateError, match="another evaluator"):
        s.model.fit(s.context.evaluator(s.keys), s.x, s.labels, 12, graph=kept)


def test_keys_are_for_the_levels_that_are_needed(server):
    m, client = server.model, server.client
    rest = {"conjugate": m.layout.paired, "bootstrap": m.bootstrap}
    assert server.keys.nbytes == m.key_bytes()
    assert m.key_bytes() < m.params.key_bytes(rotations=list(m.rotations), **rest)
    for step, level in m.rotations.items():
        assert server.keys.level_of(step) >= level
    lower = {step: level - 1 for step, level in m.rotations.items()}
    keys = client.evaluation_keys(rotations=lower, max_level=m.key_level, **rest)
    with pytest.raises(KeyMissingError):
        m.fit(server.context.evaluator(keys), server.x, server.labels, 2)


def test_scores_of_another_model_are_refused(server):
    """Units differ, so that numbers would come out that are wrong by a factor."""
    model = server.model
    state = model.fit(server.ev, server.x, server.labels, 1)
    scores = model.predict(server.ev, server.x, state)
    model.decrypt_scores(server.client, scores)
    other = logistic_regression(
        model.params, features=model.layout.features, batch=model.layout.batch, weight_range=16
    )
    with pytest.raises(StateError, match="scores of model"):
        other.decrypt_scores(server.client, scores)


def test_one_set_of_keys_serves_a_training_and_a_sort():
    context = open_context(toy("toy-boot40"), "cpu")
    client, params = context.keygen(), context.params
    seed, rng = seeded()
    model = logistic_regression(params, features=3, batch=8)
    plan = Sorting(params, 5)
    needs = model.needs | plan.needs
    keys = needs.keys(client)
    parts = model.key_bytes(), plan.key_bytes()
    assert keys.nbytes == needs.key_bytes(params) and max(parts) < keys.nbytes < sum(parts)
    ev = context.evaluator(keys)
    X, y = table(rng, 8, 3)
    state = model.fit(ev, model.encrypt(client, X), model.encrypt_labels(client, y), 2)
    assert rms(model.decrypt(client, state), model.simulate(X, y, 2).weights[-1]) < 1e-3
    values = rng.permutation(5) / 5
    assert np.abs(plan.run(ev, plan.encrypt(client, values)).decrypt(client) - np.sort(values)).max() < 1e-3
