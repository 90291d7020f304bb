"""Memory is asked for before it is taken: one error, nothing harmed, less works."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from conftest import open_context, toy

import crenel
from crenel import ckks, tfhe

LINUX = sys.platform == "linux"
MIB = 1 << 20

# What every script begins with: a limit `extra` bytes above what is mapped, and peaks of what is resident.
PRELUDE = f"""
import resource, warnings
import numpy as np
import crenel
from crenel import ckks, tfhe
warnings.simplefilter("ignore")
MIB = {MIB}
def status(name):
    line = next(x for x in open("/proc/self/status") if x.startswith(name))
    return int(line.split()[1]) * 1024
def leave(extra):
    context.device.trim()
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize:") + extra, resource.RLIM_INFINITY))
def refused(call, device="cpu"):
    try:
        open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
    except OSError:
        pass
    before = status("VmHWM:")
    try:
        call()
    except crenel.OutOfMemoryError as error:
        grown = status("VmHWM:") - before
        assert grown < 32 * MIB, f"{{grown}} bytes were taken: {{error}}"
        fields = error.fields
        assert fields["device"] == device and fields["limit"] == "RLIMIT_AS (ulimit -v)", fields
        assert int(fields["needed"]) > int(fields["available"]), fields
        return error
    raise AssertionError("not refused")
params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
context = ckks.Context(params, device="cpu")
client = context.keygen()
def works():
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    assert np.abs(client.decrypt(client.encrypt(v)) - v).max() < 1e-6
works()
"""


def run(script: str) -> None:
    if not LINUX:
        pytest.skip("limits are Linux's")
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_error_is_one_of_memory_and_of_devices():
    assert issubclass(crenel.OutOfMemoryError, crenel.DeviceError)
    assert issubclass(crenel.OutOfMemoryError, MemoryError)
    assert ckks.OutOfMemoryError is tfhe.OutOfMemoryError is crenel.OutOfMemoryError


def test_available_bytes():
    device = crenel.Device("cpu")
    assert 0 < device.available_bytes <= 2**64 - 1


def test_key_bytes_are_exact(device):
    params = toy("toy-boot40")
    context = open_context(params, device)
    client = context.keygen()
    rng = np.random.default_rng()
    steps = [int(k) for k in rng.integers(-params.slots, params.slots, 5)]
    for request in (
        {},
        {"rotations": [*steps, steps[0], 0]},
        {"rotations": steps, "conjugate": True, "relinearisation": False},
        *([] if device == "ref" else [{"bootstrap": True}]),  # seconds there, for the same sizes
        {"bootstrap": "minimal", "rotations": steps},
    ):
        before = context.device.pools().in_use
        keys = client.evaluation_keys(**request)
        assert params.key_bytes(**request) == keys.nbytes == context.device.pools().in_use - before
        del keys
    assert params.key_bytes(relinearisation=False) == 0
    with pytest.raises(TypeError, match="bootstrap"):
        params.key_bytes(bootstrap=3)


def test_keys():
    run("""
        steps = list(range(1, 1000))
        whole, one = params.key_bytes(rotations=steps), params.key_bytes()
        assert whole > 300 * MIB
        leave(200 * MIB)
        error = refused(lambda: client.evaluation_keys(rotations=steps))
        fits = int(error.fields["fits"])
        assert 20 < fits < 999 and f"{fits} of these keys fit" in str(error)
        assert int(error.fields["needed"]) == whole + one // 2
        keys = client.evaluation_keys(rotations=steps[: fits // 2])
        assert len(keys.rotations) == fits // 2
        works()
    """)


def test_batches():
    run("""
        v = np.zeros((4000, 2))
        leave(150 * MIB)
        for call in (context.encode, client.encrypt, client.public_key().encrypt):
            error = refused(lambda: call(v))
            assert 0 < int(error.fields["fits"]) < 4000
        assert len(client.encrypt(v[:100])) == 100
        works()
    """)


def test_decryption():
    run("""
        c = client.encrypt(np.full((2000, 2), 0.5), level=0)
        context.device.trim()
        leave(70 * MIB)
        refused(lambda: client.decrypt(c))
        assert abs(client.decrypt(c[7])[1] - 0.5) < 1e-5
    """)


def test_rotations():
    run("""
        ev = context.evaluator(client.evaluation_keys(rotations=[1]))
        a = client.encrypt([1.0, 2.0])
        leave(150 * MIB)
        error = refused(lambda: ev.rotate_many(a, [1] * 2000))
        assert "rotate_sum" in str(error)
        assert len(ev.rotate_many(a, [1] * 3)) == 3
        works()
    """)


def test_files_of_keys_and_staging(tmp_path):
    run(f"""
        path = {str(tmp_path / "keys")!r}
        keys = client.evaluation_keys(rotations=range(1, 500))
        keys.save(path)
        data = keys.to_bytes()
        leave(keys.nbytes // 3)
        refused(lambda: context.load_evaluation_keys(path, rotations=range(1, 500)))
        refused(lambda: context.evaluation_keys_from_bytes(data))
        refused(lambda: keys.staged(keys.nbytes))
        refused(lambda: keys.to_bytes(), "host")
        few = context.load_evaluation_keys(path, rotations=[1, 2, 3])
        assert few.rotations == [1, 2, 3]
        works()
    """)


def test_linear_transforms():
    run("""
        n = params.slots
        matrix = np.random.default_rng().normal(size=(n, n))
        leave(80 * MIB)
        error = refused(lambda: context.linear_transform({k: matrix[k] for k in range(n)}))
        assert f"{n} diagonals" in str(error)
        context.linear_transform({k: matrix[k] for k in range(3)})
        works()
    """)


def test_what_the_library_itself_runs_out_of():
    """Below what is compared first: the host's refusal is the same error."""
    run("""
        v = np.zeros((200, params.slots))
        leave(12 * MIB)
        try:
            client.encrypt(v)
        except crenel.OutOfMemoryError as error:
            assert int(error.fields["available"]) < 64 * MIB
        else:
            raise AssertionError("not refused")
        del v
        works()
    """)


def test_tfhe():
    run("""
        home = tfhe.Context(tfhe.preset("bool128-classic"), device="cpu")
        holder = home.keygen()
        leave(60 * MIB)
        error = refused(holder.evaluation_keys)
        assert int(error.fields["needed"]) > home.key_bytes()
        leave(100 * MIB)
        bits = np.zeros(1 << 17, bool)
        error = refused(lambda: holder.encrypt(bits))
        assert 0 < int(error.fields["fits"]) < bits.size
        few = np.random.default_rng().random(50) < 0.5
        assert (holder.decrypt(holder.encrypt(few)) == few).all()
    """)


def test_tfhe_key_bytes_are_exact(device):
    try:
        context = tfhe.Context(tfhe.preset("toy-gadget", allow_insecure=True), device=device)
    except tfhe.DeviceError as error:
        pytest.skip(str(error))
    client = context.keygen()
    for packing in (False, True):
        assert client.evaluation_keys(packing=packing).nbytes == context.key_bytes(packing)


GUIDE = Path(__file__).resolve().parents[2] / "docs/guide/memory.md"
SETS = ("leveled-n14-s40", "leveled-n15-s40", "leveled-n16-s40", "boot30", "boot40", "boot50")


def sizes() -> str:
    """What sets take, as a table."""

    def mebi(count: int) -> str:
        return f"{count / MIB:,.1f} MiB" if count < 1024 * MIB else f"{count / 1024 / MIB:,.2f} GiB"

    rows = ["| Set | N | Ciphertext, highest normal level | One key | Keys of a bootstrap | Minimal ones |"]
    rows.append("|---" * 6 + "|")
    for name in SETS:
        p = ckks.preset(name)
        fresh = 8 * p.ring_dim * sum(p.levels[p.normal_top_level])
        cells = [f"`{name}`", f"2^{p.log_n}", mebi(fresh), mebi(p.key_bytes())]
        boots = p.max_level > p.normal_top_level
        for kind in ("hoisted", "minimal"):
            cells.append(mebi(p.key_bytes(bootstrap=kind)) if boots else "")
        rows.append(f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(rows) + "\n"


@pytest.mark.generated
def test_table_of_the_guide():
    """CRENEL_UPDATE_DOCS=1 writes it."""
    head, rest = GUIDE.read_text().split("<!-- computed sizes -->\n")
    tail = rest[rest.index("<!-- /computed -->") :]
    wanted = f"{head}<!-- computed sizes -->\n{sizes()}{tail}"
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        GUIDE.write_text(wanted)
    assert GUIDE.read_text() == wanted, "run this test with CRENEL_UPDATE_DOCS=1"
    p = toy()
    fresh = open_context(p, "cpu").keygen().encrypt([1.0])
    assert fresh.nbytes == 8 * p.ring_dim * sum(p.levels[p.max_level])
