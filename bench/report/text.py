"""Numbers, tables and names, the same in every part of the page."""

from __future__ import annotations

SERVER = {
    "hmult": "HMult + relinearise",
    "hmult_rescale": "HMult + relin. + rescale, fused",
    "hmult_then_rescale": "the same, separate",
    "relinearise": "Relinearise",
    "hrot": "HRot",
    "conjugate": "Conjugate",
    "rescale": "Rescale",
    "hadd": "HAdd",
    "pmult": "PMult",
    "rotate_many_8": "8 rotations, hoisted",
    "rotate_sum_8": "Sum of 8 rotations",
}
PEER_OPERATIONS = ["hmult", "hmult_rescale", "hrot", "rescale", "hadd", "pmult"]
NEAR = 2  # numbers of limbs that may be compared differ by this much at most


def number(value: float) -> str:
    """Three significant digits, without exponents."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def duration(us: float) -> str:
    if us >= 1e6:
        return f"{number(us / 1e6)} s"
    return f"{number(us / 1e3)} ms" if us >= 1e4 else f"{number(us)} us"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def provenance_line(p: dict) -> str:
    commit = (p.get("commit") or "")[:10] or "unknown commit"
    parts = [p.get("device_description"), p.get("host_processor"), p.get("compiler"), p.get("build_type")]
    parts += [f"CUDA {p['cuda_toolkit']}" if p.get("cuda_toolkit") else None]
    parts += [f"driver, clocks: {p['driver_and_clocks']}" if p.get("driver_and_clocks") else None]
    parts += [f"{p['host_threads']} threads" if p.get("host_threads") else None]
    parts += [f"commit {commit}{' with changes' if p.get('dirty') else ''}", p.get("date", "")[:10]]
    return f"{'; '.join(x for x in parts if x)}. Command: `{p['command']}`\n"
