"""The page of GPUs beyond one host, from what `crenel gpus --domain` wrote."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from report.text import table

RESULTS = Path(__file__).resolve().parents[1] / "results"
MODEL = "gpus-boot40-model.json"
COMMAND = "crenel gpus boot40 --domain 1,2,4,8,72 --hosts 1,2,4,16 --json FILE"
SHAPE = ["domains", "GPUs of each", "GPUs", "links"]
Json = dict[str, Any]


def page() -> str:
    """Markdown, whole."""
    data = json.loads((RESULTS / MODEL).read_text(encoding="utf-8"))
    return "\n".join([_head(data), _links(data), _throughput(data), _latency(data), _answers(data)])


def prose(text: str) -> str:
    """Lines of a page; an item's later ones stand in."""
    later = "  " if text.startswith("* ") else ""
    return (
        textwrap.fill(
            " ".join(text.split()),
            118,
            subsequent_indent=later,
            break_long_words=False,
            break_on_hyphens=False,
        )
        + "\n"
    )


def across() -> str:
    """Of the decision: one domain and two of them."""
    data = json.loads((RESULTS / MODEL).read_text(encoding="utf-8"))
    one = _one(data)
    rows = []
    for domain in (1, 4, 8, 72):
        found = {r["hosts"]: r for r in _rows(data) if r["domain"] == domain}
        times = [found[1]["latency"], found[2]["latency"], found[2]["nccl"]]
        cells = [f"{1e3 * t:.2f} ms, {one / t:.2f}" for t in times]
        rows.append([str(domain), *cells, f"{found[2]['rate']:,.0f}", f"{found[2]['speedup']:.1f}"])
    header = ["GPUs a domain", "one bootstrap in one domain", "in two", "in two by NCCL"]
    header += ["two domains, a second, ciphertexts spread", "times one GPU"]
    return table(header, rows)


def _rows(data: Json) -> list[Json]:
    found: list[Json] = data["planned"]["rows"]
    return found


def _one(data: Json) -> float:
    return float(data["one"]["model"])


def _head(data: Json) -> str:
    what = prose(
        f"""What bootstraps of `{data["params"]}` would do on NVLink domains of up to 72 GPUs, and on
        several domains with InfiniBand between them (`{data["planned"]["link"]}`). **Nothing on this
        page was measured on such machines.** It is arithmetic on the launches of one bootstrap
        ({data["one"]["launches"]} on one GPU, {1e3 * _one(data):.2f} ms by the model;
        {data["one"]["launches_of_several"]} as several queue them, fewer where a GPU has half of EvalMod by
        itself), timed by kernel as launches were counted on one
        {data["device"]}, on links that were measured between four GPUs of one host, and on
        links that are assumed. How far the same arithmetic is from what two GPUs were measured at:
        [Several GPUs](../guide/gpus.md#model-and-measurement)."""
    )
    alike = prose(
        f"""GPUs are taken to be like one {data["device"]}. Those of domains of 72 are of a later kind:
        their kernels would take less time, and links would weigh more than here."""
    )
    made = f"`{COMMAND}` makes it; other sets, sizes and links are options.\n"
    return f"# GPUs beyond one host\n\n{what}\n{made}\n{alike}"


def _links(data: Json) -> str:
    rows = []
    for name, found in data["links"]["classes"].items():
        if "nominal" in found:
            rate = f"{1e-9 * found['nominal'] * found['reached']:.0f} of {1e-9 * found['nominal']:.0f}"
            meeting = found["meeting"]
        else:
            curve = data["links"]["stores"]["by_size"]
            rate = f"{1e-9 * curve[0][1]:.0f} to {1e-9 * curve[-1][1]:.0f} by size"
            meeting = data["links"]["barrier"]["value"]
        mark = "**assumed**" if found["assumed"] else "measured"
        rows.append([name, found["what"], rate, f"{1e6 * meeting:.1f} us", mark, found["source"]])
    header = ["link", "what", "GB/s a GPU each way", "meeting of all", "", "source"]
    nccl = data["links"]["nccl"]
    call = prose(f"A call of NCCL: {1e6 * nccl['call']:.0f} us, {nccl['what']} (`{nccl['source']}`).")
    return f"## Links\n\n{table(header, rows)}\n{call}"


def _shape(row: Json) -> list[str]:
    mark = "assumed" if row["assumed"] else "as measured"
    return [str(row["hosts"]), str(row["domain"]), f"{row['domain'] * row['hosts']:,}", mark]


def _throughput(data: Json) -> str:
    rows = []
    for r in _rows(data):
        share = r["speedup"] / (r["domain"] * r["hosts"])
        rows.append([*_shape(r), f"{r['rate']:,.0f}", f"{r['speedup']:,.1f}", f"{100 * share:.0f} %"])
    assumed = prose(
        f"""Assumed: keys on every GPU. In one domain processes of up to eight GPUs, a pool each,
        {data["planned"]["each"]} bootstraps a GPU in a call. In several a process a GPU, as of
        `crenel.distributed`: bytes between processes, keys where they are; what it works on comes by
        its own adapter from one domain and goes back, before and after the work."""
    )
    header = [*SHAPE, "a second", "times one GPU", "of as many times as GPUs"]
    return f"## Throughput: whole bootstraps, one on a GPU\n\n{assumed}\n{table(header, rows)}"


def _latency(data: Json) -> str:
    one = _one(data)
    rows = []
    for r in _rows(data):
        parts = [f"{1e3 * r[k]:.2f}" for k in ("compute", "nvlink", "network", "latency")]
        nccl = f"{1e3 * r['nccl']:.2f}" if r["hosts"] > 1 else ""
        rows.append([*_shape(r), *parts, f"{one / r['latency']:.2f}", nccl])
    assumed = prose(
        """Assumed: limbs divide to within one; what a launch takes besides its work does not ("compute" of
        many GPUs is little else); every exchange crosses the network once, all adapters at a time, then
        NVLink; nothing hides anything. "By NCCL" is the same with a collective call for each exchange
        between domains. Devices are built for up to sixteen GPUs of one host (`Device("cuda:0+1")`);
        **limbs across domains are not built**, for what this table says."""
    )
    header = [*SHAPE, "compute, ms", "NVLink, ms", "network, ms", "ms", "times one GPU", "ms by NCCL"]
    return f"## Latency: one bootstrap, its limbs over all GPUs\n\n{assumed}\n{table(header, rows)}"


def _answers(data: Json) -> str:
    one = _one(data)
    rows = _rows(data)
    across = [r for r in rows if r["hosts"] > 1]
    alone = {r["domain"]: r["latency"] for r in rows if r["hosts"] == 1}
    gain = max(alone[r["domain"]] / r["latency"] for r in across)
    free = max(alone[r["domain"]] / (r["compute"] + r["nvlink"]) for r in across if r["domain"] >= 8)
    slower = [r for r in across if r["latency"] > one]
    end = next(r for r in rows if (r["domain"], r["hosts"]) == (max(alone), 1))
    verdict = "never pay" if gain < 1 else "pay in some rows"
    most = max((r["domain"] for r in slower), default=0)
    worse = f"{len(slower)} of {len(across)} rows" + (f", of up to {most} GPUs a domain," if most else "")
    limbs = prose(
        f"""* **Limbs across domains {verdict}, by this account.** More domains of the same GPUs make one
        bootstrap at best {gain:.2f} times as fast as one of them alone; in {worse} it takes longer
        than one GPU does by itself. A network that costs nothing would make domains of
        eight or more at best {free:.2f} times as fast: what launches take does not divide.
        [Decision](../design/0016-several-devices.md)."""
    )
    whole = prose(
        "* **Ciphertexts across domains do**: they lose what crosses the network before and after, no more."
    )
    within = prose(
        f"""* **Within a domain** latency ends where launches do: on {end["domain"]} GPUs
        {1e3 * end["compute"]:.1f} of {1e3 * end["latency"]:.1f} ms are what they take however little
        there is to do."""
    )
    return f"## What it says\n\n{limbs}{whole}{within}"
