"""What Python costs: the import, and single calls on the smallest sets."""

from __future__ import annotations

from report.text import duration, number, provenance_line, table

TITLES = {
    "import": "`import crenel`",
    "ckks_level": "`ct.level`",
    "ckks_add": "`ev.add(a, b)`, N = 2^10",
    "ckks_operand_add": "`ev(a) + ev(b)`, N = 2^10",
    "ckks_operand_times_2": "`ev(a) * 2`, N = 2^10",
    "ckks_rotate": "`ev.rotate(a, 1)`, N = 2^10",
    "ckks_encrypt": "`client.encrypt([0.5])`, N = 2^10",
    "tfhe_not": "`ev.not_(a)`, one bit",
}


def time_of(us: float) -> str:
    return f"{number(1e3 * us)} ns" if us < 1 else duration(us)


def python_sections(files: dict[str, dict]) -> str:
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-bench" or data.get("suite") != "python":
            continue
        body = [[TITLES[r["name"]], time_of(r["latency_us"]), time_of(r["min_us"])] for r in data["results"]]
        text += "\n## Calls from Python\n\nMedian and least of the runs, a process each, toy sets."
        text += f" `{name}`\n\n"
        text += table(["call", "median", "least"], body) + "\n" + provenance_line(data["provenance"])
    return text
