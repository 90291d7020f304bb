"""Whole operations of the scheme, and the same beside other libraries."""

from __future__ import annotations

from report.text import NEAR, PEER_OPERATIONS, SERVER, duration, number, provenance_line, table

CLIENT = {
    "encode": "Encode",
    "decode": "Decode",
    "encrypt": "Encrypt (secret key)",
    "encrypt_public_key": "Encrypt (public key)",
    "encode_encrypt": "Encode and encrypt",
    "decrypt_decode": "Decrypt and decode",
    "context": "Context",
    "keygen_rotations": "Rotation keys, each",
}


def cell(row: dict) -> str:
    spread = row["q3_us"] - row["q1_us"]
    mark = "" if row["correct"] else " **wrong**"
    return f"{duration(row['latency_us'])} [{number(spread)}]{mark}"


def way(row: dict) -> str:
    """How a row was timed: a heading of the page, see HEAD."""
    if row["graph"]:
        return "Replayed from a CUDA graph, queued"
    if row.get("timing", "queued") == "queued":
        return "Eager, queued"
    return f"Eager, each call by itself, {row['inputs']} inputs"


def operations(rows: list[dict]) -> str:
    """Operations down, limbs across; one table for each way of timing, of the smallest batch.

    `batches` has the others.
    """
    text = ""
    server = [r for r in rows if r["name"] in SERVER]
    for how in dict.fromkeys(way(r) for r in server):
        batch = min(r["batch"] for r in server if way(r) == how)
        chosen = [r for r in server if (way(r), r["batch"]) == (how, batch)]
        limbs = sorted({r["limbs"] for r in chosen}, reverse=True)
        body = []
        for name, title in SERVER.items():
            found = {r["limbs"]: r for r in chosen if r["name"] == name}
            if not found:
                continue
            errors = [r["error_log2"] for r in found.values() if r["error_log2"] is not None]
            worst = f"2^{max(errors):.1f}" if errors else ""
            body.append([title, *(cell(found[n]) if n in found else "" for n in limbs), worst])
        text += f"\n{how}, batch {batch}:\n\n"
        text += table(["", *(f"{n} limbs" for n in limbs), "error"], body)
    return text


def batches(rows: list[dict]) -> str:
    """Time a vector by batch, and how many times a batch of one takes; one table for each way of timing
    that knows more than one batch."""
    text = ""
    server = [r for r in rows if r["name"] in SERVER]
    for how in dict.fromkeys(way(r) for r in server):
        chosen = [r for r in server if way(r) == how]
        counts = sorted({r["batch"] for r in chosen})
        if len(counts) < 2 or counts[0] != 1:
            continue
        body = []
        for name, limbs in dict.fromkeys((r["name"], r["limbs"]) for r in chosen):
            found = {r["batch"]: r for r in chosen if (r["name"], r["limbs"]) == (name, limbs)}
            if 1 not in found:
                continue
            alone = found[1]["amortised_us"]
            line = [SERVER[name], str(limbs)]
            for n in counts:
                if n not in found:
                    line.append("")
                    continue
                each = found[n]["amortised_us"]
                mark = "" if found[n]["correct"] else " **wrong**"
                line.append(f"{duration(each)} ({alone / each:.2f}){mark}")
            body.append(line)
        text += f"\n{how}, a vector, and how many times faster than one by itself:\n\n"
        text += table(["", "limbs", *(f"batch {n}" for n in counts)], body)
    return text


def client(rows: list[dict]) -> str:
    body = []
    for row in rows:
        if row["name"] not in CLIENT:
            continue
        error = f"2^{row['error_log2']:.1f}" if row["error_log2"] is not None else ""
        title = CLIENT[row["name"]]
        if row["batch"] > 1:
            title += f" ({row['batch']} in one request)"
        body.append([title, duration(row["amortised_us"]), error])
    return "\n" + table(["Client and set-up", "time", "error"], body) if body else ""


def versus_peer(rows: list[dict], peer: dict) -> str:
    """Crenel's time over the peer's at the nearest number of limbs; below 1 is faster."""
    body = []
    for theirs in peer["rows"]:
        for inputs in ("same", "rotating"):
            mine = [r for r in rows if (r.get("timing"), r.get("inputs")) == ("each", inputs)]
            mine = [r for r in mine if r["batch"] == 1]
            mine = [r for r in mine if (r["log_n"], r["alpha"]) == (peer["log_n"], peer["alpha"])]
            near = {r["limbs"] for r in mine if abs(r["limbs"] - theirs["limbs"]) <= NEAR}
            if not near:
                continue
            limbs = min(near, key=lambda n: abs(n - theirs["limbs"]))
            times = {r["name"]: r["latency_us"] for r in mine if r["limbs"] == limbs}
            line = [str(theirs["limbs"]), f"{limbs}, {inputs} inputs"]
            for name in PEER_OPERATIONS:
                ratio = f" ({times[name] / theirs[name]:.2f})" if name in times else ""
                line.append(f"{number(theirs[name])} / {number(times[name])}{ratio}" if ratio else "")
            body.append(line)
    if not body:
        return ""
    header = [f"{peer['library']}: limbs", "Crenel: limbs", *(SERVER[n] for n in PEER_OPERATIONS)]
    how = peer["provenance"]
    text = f"\n{peer['library']} / Crenel, us, and Crenel's time in units of the other (below 1: faster). "
    text += (
        "Both by pairs of events around single calls; like for like is the row with the same inputs. With "
    )
    text += f"inputs that take turns Crenel reads them from memory, and {peer['library']}'s figure does not. "
    return text + f"{peer['library']}: {how['params']}; {how['method']}.\n\n" + table(header, body)


def versus_openfhe(data: dict) -> str:
    text = f"\n## {data['wheel'].replace('==', ' ')} on the same processor\n\n"
    body = []
    for case in data["cases"]:
        ours, ratios, least = case["crenel"], case["ratio_of_medians"], case["ratio_of_least"]
        fused, apart = (ours["operations"][n]["us"] for n in ("hmult_rescale", "hmult_then_rescale"))
        manual, auto = case["openfhe"]["FIXEDMANUAL"], case["openfhe"]["FLEXIBLEAUTO"]
        times = [duration(manual["multiply_rescale"]["us"]), duration(auto["multiply_rescale"]["us"])]
        both = [f"{v:.2f} ({least[k]:.2f})" for k, v in ratios.items() if k.startswith("multiply")]
        row = [f"2^{case['log_n']}", f"{ours['log_pq']:.0f}, {ours['depth']}"]
        row += [f"{manual['log_pq']}, {manual['depth']}", duration(min(fused, apart)), *times, *both]
        body.append(row)
    header = ["N", "Crenel: log PQ, depth", "OpenFHE: log PQ, depth", "Crenel"]
    header += ["FIXEDMANUAL", "FLEXIBLEAUTO", "ratio", "ratio"]
    text += table(header, body)
    text += f"\nProduct with relinearisation and rescale at the top level, {data['threads']} threads, scale "
    text += (
        "2^40, hybrid key switching, both within 128-bit security; ratio: OpenFHE's median time over Crenel's"
    )
    text += " (of the least times)."
    return text + "\n\n" + provenance_line(data["cases"][0]["crenel"]["provenance"])
