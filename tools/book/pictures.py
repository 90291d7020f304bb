"""Drawings of what bench/results holds: roofline, time line, memory, errors, noise, area."""

from __future__ import annotations

import json
from typing import Any

from book.peers import data
from book.reach import RESULTS
from book.svg import COLOURS, drawn

GIB = 1 << 30
NEAR = 1.6  # points of a logarithmic axis this many times apart have labels that would meet
ACCOUNT = "traffic-boot40-dry.json"  # of today's code, which tools/gen_dry.py holds it to


def roofline() -> str:
    """Works of a bootstrap by the traffic account at their bounds, and the whole as it was measured."""
    account = data(ACCOUNT)
    ceilings = {name: entry["value"] for name, entry in account["ceilings"].items()}
    measured, row = eager_bootstrap("boot40-h200-boot.json")

    def draw(axes: Any) -> None:
        from numpy import geomspace, minimum

        x = geomspace(0.03, 12, 120)
        for name, rate in (("L2", ceilings["l2"]), ("DRAM", ceilings["dram_read"])):
            label = f"{name}: {rate / 1e12:.1f} TB/s"
            axes.loglog(x, minimum(x * rate, ceilings["multiply_add"]) / 1e12, label=label)
        axes.axhline(ceilings["butterfly"] / 1e12, linestyle=":", color="grey", label="butterflies alone")
        works = [work for work in account["by_work"] if work["multiply_adds"]]
        points = {w["name"]: w["multiply_adds"] / w["bytes"] for w in works}
        for i, work in enumerate(works):
            name = work["name"]
            at = (points[name], work["multiply_adds"] / work["bound"] / 1e12)
            axes.plot(*at, "o", color=COLOURS[2 + i % 6])
            # Below the bounds, or beyond them where another point is to the right.
            beside = any(1 <= x_at / at[0] < NEAR for other, x_at in points.items() if other != name)
            offset, side = ((-7, 4), "right") if beside else ((8, -9), "left")
            axes.annotate(name.replace("_", " "), at, xytext=offset, textcoords="offset points", ha=side)
        total = account["total"]
        at = (
            total["multiply_adds"] / total["bytes"],
            total["multiply_adds"] / (row["latency_us"] / 1e6) / 1e12,
        )
        axes.plot(*at, "*", markersize=13, color=COLOURS[3])
        text = f"whole bootstrap, measured {day(measured)}"
        axes.annotate(text, at, xytext=(11, 0), textcoords="offset points")
        axes.set_xlabel("core products a byte of L2 traffic")
        axes.set_ylabel("10¹² core products a second")
        axes.legend(loc="lower right")

    return drawn(draw, 7.5, 4.6, "Roofline of a boot40 bootstrap on an H200")


def day(record: dict[str, Any]) -> str:
    return str(record["provenance"]["date"])[:10]


def eager_bootstrap(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    found = data(name)
    return found, next(r for r in found["results"] if not r["graph"] and r["batch"] == 1)


def timeline() -> str:
    """Stages one after the other, each as long as the ceilings make it at least; the measured whole below."""
    account = data(ACCOUNT)
    measured, row = eager_bootstrap("boot40-h200-boot.json")

    def draw(axes: Any) -> None:
        left = 0.0
        for i, stage in enumerate(account["by_stage"]):
            width = 1e3 * stage["bound"]
            axes.barh(1, width, left=left, color=COLOURS[i], height=0.55)
            text = f"{stage['name'].replace('_', ' ')}\n{width:.2f} ms, {stage['launches']} launches"
            high = 0.62 if i % 2 else 0.38
            axes.annotate(
                text,
                (left + width / 2, 1 + (0.28 if i % 2 else -0.28)),
                xytext=(left, 1 + (high if i % 2 else -high)),
                ha="left",
                va="bottom" if i % 2 else "top",
                fontsize=8.5,
            )
            left += width
        axes.barh(-0.35, row["latency_us"] / 1e3, color=COLOURS[7], height=0.4)
        axes.text(
            row["latency_us"] / 2e3,
            -0.35,
            f"measured {day(measured)}: {row['latency_us'] / 1e3:.2f} ms",
            ha="center",
            va="center",
            color="#000000",
        )
        axes.set_yticks([1, -0.35], ["bound of each stage", "whole"])
        axes.set_ylim(-0.7, 2.1)
        axes.set_xlabel("milliseconds")

    return drawn(
        draw,
        8.5,
        3.4,
        "Time line of a boot40 bootstrap on an H200: bounds of its stages, and the measured whole",
    )


LIMBS = "one bootstrap's limbs"


def gpus() -> str:
    """Times faster than one GPU, by how many there are: the model of crenel gpus, and what was measured."""
    model, gates = data("gpus-boot40-model.json"), data("gpus-bool128-model.json")

    def draw(axes: Any) -> None:
        most = 8
        axes.plot([1, most], [1, most], ":", color="grey", label="as many times as there are GPUs")
        spread = ((model, "bootstraps a second", "o-"), (gates, "gates of bool128 a second", "d--"))
        for i, (found, what, line) in enumerate(spread):
            rows = [r for r in found["spread"] if r["gpus"] <= most]
            x, y = [r["gpus"] for r in rows], [r["speedup"] for r in rows]
            axes.plot(x, y, line, color=COLOURS[3 * i], label=f"spread: {what}")
        one = next(r["latency"] for r in model["divided"] if r["gpus"] == 1)
        for i, way in enumerate(("gathered", "aggregated")):
            rows = [r for r in model["divided"] if r["way"] == way and r["gpus"] <= most]
            x, y = [r["gpus"] for r in rows], [one / r["latency"] for r in rows]
            axes.plot(x, y, "s-", color=COLOURS[1 + i], label=f"one bootstrap's limbs, {way}")
        for label, points in measured_times().items():
            what, _, card = label.partition(", ")
            mark, beside = MARKS[what]
            colour, side = CARDS[card == model["device"]]
            x, y = [count * beside**side for count, _ in points], [times for _, times in points]
            axes.plot(x, y, mark, markersize=7, fillstyle="none", color=colour, label=f"measured: {label}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axes.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", ""])
        axes.set_xlabel("GPUs of one host; measurements beside their number")
        axes.set_ylabel("times one GPU")
        axes.legend(loc="upper left", fontsize="x-small")

    return drawn(
        draw,
        7.5,
        4.6,
        "Bootstraps of boot40 and gates on several GPUs: the model of crenel gpus, and what was measured",
    )


# Marks, and how far beside their number of GPUs they stand, so that one hides no other.
MARKS = {
    "bootstraps a second": ("*", 1.07),
    "gates a second": ("v", 1.16),
    "one bootstrap's limbs": ("P", 1.07),
}
CARDS = (("#b03060", -1), ("#222222", 1))  # others to the left, the card that launches were counted on right


def measured_times() -> dict[str, list[tuple[int, float]]]:
    """What was measured on which card: (GPUs, times one GPU) of every record."""
    found: dict[str, list[tuple[int, float]]] = {}

    def card(record: Any) -> str:
        return str(record["provenance"]["device_description"]).partition(",")[0]

    for file in sorted(RESULTS.glob("pool-*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        kinds = {"bootstrap": "bootstraps a second", "nand": "gates a second"}
        for r in record["results"]:
            if r["name"] in kinds and r["devices"] > 1 and r["together"] in (None, 1):
                label = f"{kinds[r['name']]}, {card(record)}"
                found.setdefault(label, []).append((r["devices"], r["times_one_device"]))
    for file in sorted(RESULTS.glob("split-boot40-*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        rows = [r for r in record["results"] if not r["graph"]]
        alone = min(r["latency_us"] for r in rows if "device" not in r)
        for r in rows:
            if "device" in r:
                label = f"{LIMBS}, {card(record)}"
                found.setdefault(label, []).append((r["device"].count("+") + 1, alone / r["latency_us"]))
    return found


def memory() -> str:
    """What a bootstrap keeps on the device, by parameter set."""
    found = {}
    for file in sorted(RESULTS.glob("boot[0-9]*-h200-boot*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        row = content["results"][0]
        if content.get("memory") and "scale_bits" in row:
            found[f"{row['params']}, {row['keys']} keys"] = content["memory"]
    parts = {"keys": "key_bytes", "plaintexts": "plaintext_bytes", "workspace": "workspace_bytes_peak"}

    def draw(axes: Any) -> None:
        left = dict.fromkeys(found, 0.0)
        for i, (label, key) in enumerate(parts.items()):
            sizes = {name: sizes[key] / GIB for name, sizes in found.items()}
            axes.barh(
                list(found), list(sizes.values()), left=list(left.values()), label=label, color=COLOURS[i]
            )
            left = {name: left[name] + sizes[name] for name in found}
        rest = [sizes["driver_bytes"] / GIB - left[name] for name, sizes in found.items()]
        axes.barh(
            list(found), rest, left=list(left.values()), label="driver, tables, idle pool", color="#9994"
        )
        axes.set_xlabel("GiB of device memory, by the driver's count")
        axes.legend(loc="lower right", ncols=2, bbox_to_anchor=(1, 1))

    return drawn(draw, 7.5, 3.6, "Device memory of a bootstrap by parameter set")


def errors() -> str:
    """Histograms of measured errors over the normal curve of the stated deviation."""
    found = data("errors-cpu.json")

    def draw(axes: Any) -> None:
        from numpy import exp, linspace, pi, sqrt

        reach = found["range_deviations"]
        for i, each in enumerate(found["histograms"]):
            counts = each["counts"]
            step = 2 * reach / len(counts)
            at = [-reach + step * (k + 0.5) for k in range(len(counts))]
            label = f"{each['name']}: rms 2^{each['deviation_log2'] + 0.5:.2f}, "
            label += f"expected 2^{each['expected_rms_log2']:.2f}"
            axes.semilogy(
                at,
                [c / each["parts"] / step or None for c in counts],
                drawstyle="steps-mid",
                label=label,
                color=COLOURS[i],
            )
        x = linspace(-reach, reach, 201)
        axes.semilogy(x, exp(-x * x / 2) / sqrt(2 * pi), ":", color="grey", label="normal distribution")
        axes.set_xlabel("error of a real or imaginary part, in standard deviations")
        axes.set_ylabel("density")
        axes.legend(fontsize=8.5, loc="lower center")

    return drawn(draw, 7.5, 4.2, "Histograms of errors after encryption, rotation and product")


def noise() -> str:
    """Growth of the error along a chain of products: measured, expected, at most."""
    chain = data("errors-cpu.json")["chain"]

    def draw(axes: Any) -> None:
        at = range(len(chain["rms_log2"]))
        axes.plot(
            at,
            chain["bound_largest_log2"],
            "--",
            color=COLOURS[3],
            label="largest error, bound for any input",
        )
        axes.plot(
            at, chain["expected_rms_log2"], color=COLOURS[0], label="rms, expected before anything runs"
        )
        axes.plot(at, chain["rms_log2"], "o", color=COLOURS[1], label="rms, measured")
        axes.set_xlabel("products, each relinearised and rescaled")
        axes.set_ylabel("log2 of the error")
        axes.legend()

    return drawn(draw, 7.5, 3.8, "Growth of the error along a chain of products")


def stated() -> str:
    """Bootstraps of different kinds of messages by what the options say of them: the largest error that is
    stated and the one measured."""
    records = {
        "default options": data("boot40-cpu-errors-unknown.json"),
        "given": data("boot40-h200-boot-kinds.json"),
    }

    def draw(axes: Any) -> None:
        for at, (title, record) in enumerate(records.items()):
            of = record["results"][0] if record["results"] else record["configuration"]
            kinds = record["precision_by_message"]
            rows = [row + 0.2 * (at - 0.5) for row in range(len(kinds))]
            mean = [k["mean_max_error_log2"] for k in kinds.values()]
            expected = [k["expected_max_log2"] for k in kinds.values()]
            axes.plot(expected, rows, "|", markersize=10, color=COLOURS[at])
            label = f"message ratio 2^{of['message_ratio']}, {title}"
            axes.plot(mean, rows, "o", markersize=4, color=COLOURS[at], label=label)
        names = [name.replace("_", " ") for name in kinds]
        axes.set_yticks(list(range(len(names))), names)
        axes.set_xlabel(
            "log2 of the largest error of a slot: measured, mean (dot), and stated before it runs (bar)"
        )
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small")

    return drawn(draw, 7.5, 4.2, "Largest error of a bootstrap by kind of message and options")


def area() -> str:
    """Parts of the FHECore unit, each box as large as its cells."""
    results = {r["design"]: r for r in data("fhecore-asap7.json")["results"]}
    unit = results["array_periphery"]
    element, count = next(iter(unit["boxes"].items()))
    one = results[element]["area"]

    def draw(axes: Any) -> None:
        whole = unit["area"] + count * one
        side = whole**0.5
        columns = 16
        height = count * one / side
        for k in range(count):
            size = (side / columns, height / (count // columns))
            at = ((k % columns) * size[0], (k // columns) * size[1])
            axes.add_patch(rectangle(at, size, COLOURS[0]))
        axes.add_patch(rectangle((0, height), (side, side - height), COLOURS[1]))
        axes.set_title(f"above: registers and control, {unit['area']:,.0f} µm²", fontsize=10)
        text = f"{count} elements of {one:,.0f} µm²"
        axes.text(
            side / 2, height / 2, text, ha="center", va="center", color="#000000", backgroundcolor="#ffffffcc"
        )
        axes.set_xlim(0, side)
        axes.set_ylim(0, side)
        axes.set_aspect("equal")
        axes.set_xlabel(f"µm; {whole:,.0f} µm² of cells in all")

    return drawn(draw, 5.6, 5.6, "Areas of the FHECore unit's parts, to scale")


def rectangle(at: tuple[float, float], size: tuple[float, float], colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(at, *size, facecolor=colour, edgecolor="#ffffff", linewidth=0.5)
