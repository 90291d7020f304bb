"""Token transfers, search and rows by a condition: encrypted as in the clear, by the command line too."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tfhe_world import tfhe_world

from crenel import tfhe
from crenel.cli import main
from crenel.errors import ParameterError, StateError
from crenel.workloads.integers import condition, filter  # noqa: A004


@pytest.fixture(scope="module")
def world():
    return tfhe_world("toy-lut4", "cpu")


@pytest.mark.parametrize("bits", [2, 8, 64])
def test_transfers(world, rng, bits):
    """Of 2 bits all that there are. Nothing is made or lost."""
    from crenel.workloads.integers.transfer import transfer, transfer_clear

    high = (1 << bits) - 1
    if bits == 2:
        have, other, asked = (v.ravel().tolist() for v in np.meshgrid(*[range(4)] * 3))
    else:
        drawn = [int.from_bytes(rng.bytes(8), "little") % (high // 2) for _ in range(9)]
        have, other, asked = drawn[:5], drawn[4:9], [drawn[0], drawn[1] + 1, 0, high, drawn[4] // 3]
    kind = tfhe.IntegerType(bits)
    payer, payee, amount = (world.client.encrypt(v, dtype=kind) for v in (have, other, asked))
    found = [world.client.decrypt(x).tolist() for x in transfer(world.ev, payer, payee, amount)]
    assert found == [list(x) for x in transfer_clear(have, other, asked, bits)]
    for before, after in zip(zip(have, other, strict=True), zip(*found[:2], strict=True), strict=True):
        assert sum(before) % (1 << bits) == sum(after) % (1 << bits)
    with pytest.raises(StateError, match="one type"):
        transfer(world.ev, payer, world.client.encrypt(other, dtype=tfhe.IntegerType(2 * bits)), amount)


@pytest.mark.parametrize("hidden", [False, True])
def test_search(world, rng, hidden):
    from crenel.workloads.integers.search import find, find_clear

    text = bytes(rng.integers(97, 99, 18).astype(np.uint8))  # of two letters: many places, overlapping ones
    characters = world.client.encrypt(np.frombuffer(text, dtype=np.uint8))
    for pattern in (text[:1], text[3:5], text[9:14], text, b"abac", b"\x00"):
        asked = world.client.encrypt(np.frombuffer(pattern, dtype=np.uint8)) if hidden else pattern
        hits = find(world.ev, characters, asked)
        found = [world.client.decrypt(x).tolist() for x in (hits.places, hits.count, hits.first)]
        assert found == list(find_clear(text, pattern)), (text, pattern)
    for wrong in (b"", text + b"a"):
        with pytest.raises(ParameterError, match="a pattern of"):
            find(world.ev, characters, wrong)
    wide = world.client.encrypt([97, 98], dtype="uint16")
    messages = world.client.encrypt([1, 0], bits=1)
    wrong_types = [(wide, b"a", "text of uint16"), (text, b"a", "text of bytes")]
    wrong_types += [(characters, wide, "pattern of uint16"), (characters, "a", "pattern of str")]
    wrong_types += [(characters, messages, "pattern of Ciphertext"), (characters, [97], "pattern of list")]
    for given, asked, said in wrong_types:
        with pytest.raises(ParameterError, match=f"a {said}, expected encrypted integers of uint8"):
            find(world.ev, given, asked)


def test_conditions():
    parsed = condition.parse("40 <= age < -3 and (city == 3 or not 5 > other != city)")
    assert parsed.columns == {"age", "city", "other"}
    assert parsed.numbers == (("age", 40), ("age", -3), ("city", 3), ("other", 5))
    first = parsed.tree[1][0][1][0]
    assert (first.operation, first.column, first.other, first.number) == ("greater_equal", "age", 40, 0)


@pytest.mark.parametrize(
    "text",
    ["", "age", "3", "age ==", "3 < 4", "age in city", "age < 3.5", "age < True", "age + 1 < 3", "f(age) < 3",
     "age < 'a'", "age is city", "not age", "__import__('os') == 1", "age < 1; city", "age < 3 < 4 < 'x'"],
)  # fmt: skip
def test_other_conditions_are_refused(text):
    with pytest.raises(ParameterError, match="condition"):
        condition.parse(text)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    "where", ["a < 7", "-3 <= b and not (a == 4 or b > 100)", "a != c", "5 > a >= 2 or b == -3"]
)
def test_rows(world, rng, where, hidden):
    """Columns of several types; sums beyond a column's own."""
    table = filter.Table(
        {
            "a": rng.integers(0, 10, 20).astype(np.uint8),
            "b": rng.choice([-128, -3, 0, 101, 127], 20).astype(np.int8),
            "c": rng.integers(0, 10, 20).astype(np.uint8),
            "d": rng.integers(200, 256, 20).astype(np.uint8),
        }
    )
    parsed = condition.parse(where)
    columns = {name: world.client.encrypt(column) for name, column in table.columns.items()}
    numbers = [world.client.encrypt(n) for n in filter.constants(parsed, table)] if hidden else None
    for total in ("d", "b", None):
        answer = filter.select_rows(world.ev, columns, parsed, numbers, total)
        rows, count, summed = filter.select_rows_clear(table, parsed, total)
        assert world.client.decrypt(answer.rows).tolist() == rows.tolist()
        assert int(world.client.decrypt(answer.count)) == count
        assert (answer.total is None) == (summed is None)
        if answer.total is not None:
            assert int(world.client.decrypt(answer.total)) == summed


def test_tables_of_csv_files(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("\ufeffage, income,debt\n40,70000,-1\n\n18,0,127\n", encoding="utf-8")
    table = filter.read_csv(file)
    assert {name: str(c.dtype) for name, c in table.columns.items()} == {
        "age": "uint8", "income": "uint32", "debt": "int8",
    }  # fmt: skip
    assert table.rows == 2 and table.column("income").tolist() == [70000, 0]
    with pytest.raises(ParameterError, match="no column 'wage', expected one of age, income, debt"):
        table.column("wage")
    wrong = {
        "a,b\n": "no rows",
        "": "no rows",
        "a,a\n1,2\n": "different names",
        "a,and\n1,2\n": "different names",
        "a,b\n1\n": "line 2: 1 fields, expected 2",
        "a\n1\nsecret\n": "line 3, column a: no integer",
        "a\n18446744073709551616\n": "line 2, column a",
        "a\n1.5\n": "line 2, column a",
    }
    for text, message in wrong.items():
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ParameterError, match=message) as caught:
            filter.read_csv(file)
        assert "secret" not in str(caught.value)
    file.write_bytes(b"a\n\xff\xfe\n")
    with pytest.raises(ParameterError, match="UTF-8"):
        filter.read_csv(file)
    with pytest.raises(FileNotFoundError):
        filter.read_csv(tmp_path / "none.csv")


RUNS = {
    "transfer": ["transfer", "--pairs", "4", "--bits", "16"],
    "search": ["search", "ab", "--text", "abracadabra", "--hide-pattern"],
    "filter": ["filter", "--rows", "6", "--hide-query"],
}


@pytest.mark.parametrize("name", ["transfer", "search", "filter"])
def test_the_commands(tmp_path, capsys, name):
    """Of the other two --repeats is 1."""
    file = tmp_path / "run.json"
    options = ["--repeats", "0"] if name == "search" else []
    assert main(["workload", *RUNS[name], "--device", "cpu", *options, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "as in the clear" in out and "INSECURE" in out
    assert ("warm" in out) == (name != "search") and "server, the first call" in out
    found = json.loads(file.read_text(encoding="utf-8"))
    (row,) = found["results"]
    assert row["warm_calls"] == (name != "search") and row["wrong_seeds"] == []
    quartiles = {row[f"warm_{which}seconds"] for which in ("", "q1_", "q3_")}
    assert quartiles == {None} if name == "search" else len(quartiles) == 1 and min(quartiles) > 0
    assert (found["suite"], row["workload"], row["correct"]) == ("integer-workload", name, True)
    assert min(row["bootstraps"], row["seconds"], row["sent_bytes"], row["received_bytes"]) > 0
    assert main(["workload", *RUNS[name], "--device", "cpu", "--json", str(file)]) == 2
    assert "expected a new file" in capsys.readouterr().err


@pytest.fixture
def calls(monkeypatch):
    """What each call sent: encrypted arrays, decrypted by its client; seconds; and the seed."""
    from crenel.workloads.integers.session import Session

    found: list[dict] = []
    send, serve = Session.send, Session.serve

    def sent(session, *arguments):
        array = send(session, *arguments)
        if not found or found[-1]["call"] is not session.call:
            found.append({"call": session.call, "values": []})
        found[-1]["values"].append(session.client.decrypt(array).tolist())
        return array

    def served(session, work):
        result = serve(session, work)
        session.call.seconds = float(session.call.number)  # known ones
        return result

    monkeypatch.setattr(Session, "send", sent)
    monkeypatch.setattr(Session, "serve", served)
    return found


@pytest.mark.parametrize("name", ["transfer", "search", "filter"])
def test_warm_calls_have_inputs_of_their_own(tmp_path, capsys, calls, rng, name):
    """And the record has their median and quartiles beside the first call's time, bytes and bootstraps."""
    seed, files = int(rng.integers(1 << 32)), [tmp_path / "a.json", tmp_path / "b.json"]
    run = ["workload", *RUNS[name], "--device", "cpu", "--seed", str(seed)]
    assert main([*run, "--repeats", "5", "--json", str(files[0])]) == 0
    made = list(calls)
    assert [c["call"].seed for c in made] == list(range(seed, seed + 6))
    assert len({json.dumps(c["values"]) for c in made}) > 1
    assert len({json.dumps([np.shape(v) for v in c["values"]]) for c in made}) == 1
    assert main([*run, "--repeats", "0", "--json", str(files[1])]) == 0
    assert calls[-1]["values"] == made[0]["values"]  # the first is what it is without warm ones
    row, alone = (json.loads(f.read_text(encoding="utf-8"))["results"][0] for f in files)
    for field in ("what", "bootstraps", "sent_bytes", "received_bytes", "seed"):
        assert row[field] == alone[field], field
    assert (row["seconds"], row["warm_calls"], alone["warm_calls"]) == (0.0, 5, 0)
    assert [row[f"warm_{which}seconds"] for which in ("q1_", "", "q3_")] == [2.0, 3.0, 4.0]
    out = capsys.readouterr().out
    assert "3,000.000 ms, the median of 5; quartiles 2,000.000 to 4,000.000" in out
    assert f"{seed} to {seed + 5}, a call each" in out
    if name == "transfer":  # a warm call's inputs by its seed alone
        assert main([*run[:-1], str(seed + 3), "--repeats", "0"]) == 0
        assert calls[-1]["values"] == made[3]["values"]


def test_a_wrong_warm_call_is_told(tmp_path, capsys, monkeypatch):
    from crenel.workloads.integers import measure

    right, asked = measure.transfer_clear, []

    def wrong_the_third_time(*arguments):
        asked.append(arguments)
        left, grown, moved = right(*arguments)
        return left, [grown[0] ^ (len(asked) == 3), *grown[1:]], moved

    monkeypatch.setattr(measure, "transfer_clear", wrong_the_third_time)
    file = tmp_path / "run.json"
    run = ["workload", *RUNS["transfer"], "--device", "cpu", "--seed", "7", "--repeats", "3"]
    assert main([*run, "--json", str(file)]) == 1
    assert "DIFFERS from the clear with seed 9\n" in capsys.readouterr().out
    (row,) = json.loads(file.read_text(encoding="utf-8"))["results"]
    assert (row["correct"], row["wrong_seeds"], row["warm_calls"]) == (False, [9], 3)


def test_a_file_of_your_own(tmp_path, capsys):
    file = tmp_path / "t.csv"
    file.write_text("x,y\n1,5\n2,6\n3,7\n", encoding="utf-8")
    assert main(["workload", "filter", "--data", str(file), "--where", "x > 1", "--sum", "y"]) == 0
    assert "2 of 3 rows have x > 1; y sums to 13" in capsys.readouterr().out
    text = tmp_path / "t.txt"
    text.write_text("banana", encoding="utf-8")
    assert main(["workload", "search", "ana", "--data", str(text)]) == 0
    assert "2 times, first at 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["transfer", "--pairs", "0"], "pairs = 0"),
        (["transfer", "--bits", "7"], "even number"),
        (["transfer", "--repeats", "-1"], "repeats = -1, expected 0 to 100000"),
        (["search", "--repeats", "100001"], "repeats = 100001, expected 0 to 100000"),
        (["filter", "--repeats", "-3"], "repeats = -3"),
        (["filter", "--repeats", "many"], "--repeats"),
        (["search", ""], "a pattern of 0 characters"),
        (["search", "abc", "--text", "ab"], "a text of 2"),
        (["search", "a", "--text", "ab", "--data", "none"], "expected one"),
        (["filter", "--rows", "0"], "rows = 0"),
        (["filter", "--where", "wage > 3"], "no column 'wage'"),
        (["filter", "--where", "age > 300"], "300 is no uint8"),
        (["filter", "--sum", "wage"], "no column 'wage'"),
        (["filter", "--data", "none.csv"], "without --where"),
        (["filter", "--data", "none.csv", "--where", "a > 1"], "none.csv"),
        (["transfer", "--set", "bool128"], "integers"),
        (["transfer", "--set", "lut5"], "lut5"),
        (["aes", "--rounds", "11"], "expected 0 to 10"),
        (["aes", "--set", "bool5"], "bool5"),
    ],
)
def test_refusals(arguments, message, capsys):
    assert main(["workload", *arguments, "--device", "cpu"]) == 2
    assert message in capsys.readouterr().err


def test_what_would_be_wrong_without_a_word_is_refused(world):
    from crenel.workloads.integers.transfer import transfer

    signed = tfhe.IntegerType(4, signed=True)
    have, other, asked = (world.client.encrypt([x], dtype=signed) for x in (5, 1, -3))
    with pytest.raises(StateError, match="expected an unsigned type"):
        transfer(world.ev, have, other, asked)
    columns = {
        "age": world.client.encrypt([3, 4, 7], dtype="uint8"),
        "z": world.client.encrypt([5], dtype="uint8"),
    }
    for total in (None, "z"):
        where = "age > 3" if total else "age > z"
        with pytest.raises(StateError, match=r"age \(3,\), z \(1,\), expected one shape"):
            filter.select_rows(world.ev, columns, condition.parse(where), total=total)
    for text in ("age > 4 # and z > 1", "-" * 4000 + "1 < age", "age < 1 or " * 500 + "age < 1"):
        with pytest.raises(ParameterError):
            condition.parse(text)


def test_steps_of_the_server(tmp_path, capsys):
    """Those of the set on a CPU; what is asked for; what cannot be is refused before anything is written."""
    file = tmp_path / "record.json"
    call = ["workload", "transfer", "--device", "cpu", "--bits", "4", "--pairs", "1", "--repeats", "0"]
    for more in ([], ["--steps", "2"], ["--steps", "automatic"]):
        assert main([*call, "--set", "toy-lut4g4", *more, "--json", str(file)]) == 0
        assert json.loads(file.read_text())["results"][0]["bits_a_step"] == [2]
        file.unlink()
    for wrong in (["--set", "toy-lut4", "--steps", "2"], ["--set", "toy-lut4g4", "--steps", "two"]):
        assert main([*call, *wrong, "--json", str(file)]) != 0
        assert not file.exists()
    assert "steps 'two', expected integers by commas, or automatic" in capsys.readouterr().err
