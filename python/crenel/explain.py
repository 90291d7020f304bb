"""Parameters in words and tables of plain text."""

from __future__ import annotations

from crenel._crenel import Params, max_log_pq


def security_line(params: Params) -> str:
    """Estimate and the bound that the parameters are checked against."""
    bound = max_log_pq(params.log_n, 128, params.hamming_weight)
    limit = "no 128-bit bound is known for this ring" if bound is None else f"bound {bound:.0f}"
    if params.insecure:
        return f"INSECURE, about {params.security_bits:.0f} bits: for tests only ({limit} for 128 bits)"
    return f"about {params.security_bits:.0f} bits (classical; {limit} for 128 bits)"


def facts(params: Params) -> list[tuple[str, str]]:
    """Names and values of the main numbers."""
    p = params
    secret = f"sparse, weight {p.hamming_weight}" if p.hamming_weight else "dense ternary"
    rows = [
        ("ring degree", f"N = 2^{p.log_n} = {p.ring_dim}"),
        ("slots", str(p.slots)),
        ("scale", f"2^{p.log_scale} (deviation of levels at most 2^{p.scale_deviation:.4f})"),
        ("levels", f"{p.normal_top_level} to consume"),
        ("limbs", f"{len(p.main_primes)} main + {len(p.terminal_primes)} terminal + {p.alpha} special"),
        ("log PQ", f"{p.log_pq:.1f} (log Q {p.log_pq - p.log_p:.1f}, log P {p.log_p:.1f})"),
        ("key switching", f"{p.dnum} digits of {p.alpha} limbs"),
        ("secret", secret),
        ("security", security_line(p)),
        ("id", p.id),
    ]
    if p.max_level > p.normal_top_level:
        rows[3] = ("levels", f"{p.normal_top_level} normal, {p.max_level - p.normal_top_level} bootstrapping")
    return [("name", p.name), *rows] if p.name else rows


def level_rows(params: Params) -> list[tuple[str, ...]]:
    """One row a level, the top first: level, limbs, log Q, log scale, log of the rescale ratio."""
    from math import log2

    rows: list[tuple[str, ...]] = []
    for level in range(params.max_level, -1, -1):
        main, terminal = params.levels[level]
        normal = level <= params.normal_top_level
        scale = f"{log2(params.scale(level)):.4f}" if normal else "-"
        ratio = f"{log2(params.rescale_ratio(level)):.4f}" if level else "-"
        counts = f"{main} + {terminal}"
        rows.append((str(level), counts, f"{params.log_q(level):.2f}", scale, ratio))
    return rows


LEVEL_HEADER = ("level", "main + terminal limbs", "log Q", "log scale", "log rescale ratio")


def explain(params: Params) -> str:
    """What the parameters offer and cost, in words, and a table of levels."""
    p = params
    top = p.normal_top_level
    limb = 4 * p.ring_dim  # bytes of one polynomial modulo one prime
    limbs_at_top = sum(p.levels[p.max_level])
    ciphertext = 2 * limbs_at_top * limb
    key = 2 * p.dnum * (p.chain_limbs + p.alpha) * limb
    kind = f"sparse ternary with {p.hamming_weight} non-zero" if p.hamming_weight else "dense ternary"
    lines = [
        f"{p.name or 'generated parameters'}",
        "",
        f"Vectors: {p.slots} complex or real numbers in a ciphertext (ring degree N = 2^{p.log_n}).",
        f"Levels: {top}. A product consumes one; at level 0 nothing can be multiplied any more.",
    ]
    if p.max_level > top:
        lines.append(f"Above them lie {p.max_level - top} levels for bootstrapping.")
    lines += [
        f"Scale: 2^{p.log_scale}, so numbers keep {p.log_scale - p.log_n} bits or more after the point;",
        f"the scales of the levels differ from it by a factor of at most 2^{p.scale_deviation:.4f}.",
        f"Modulus: {len(p.main_primes)} primes near 2^30, {len(p.terminal_primes)} near 2^25 and "
        f"{p.alpha} special ones; log PQ = {p.log_pq:.1f}.",
        f"Secret: {kind} coefficients. Security: {security_line(p)}.",
        f"Memory: {ciphertext / 2**20:.2f} MiB a ciphertext at the top level, "
        f"{key / 2**20:.2f} MiB a key ({p.dnum} digits); about half of each on the wire while fresh.",
        "",
        *_columns([LEVEL_HEADER, *level_rows(p)]),
    ]
    if p.provenance:
        lines += ["", f"Provenance: {' '.join(p.provenance.split())}"]
    return "\n".join(lines)


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]


def to_toml(params: Params) -> str:
    """The parameters as a file of params/."""

    def block(values: list) -> str:
        items = [f"[{v[0]}, {v[1]}]" if isinstance(v, tuple) else str(v) for v in values]
        width = 10 if values and isinstance(values[0], tuple) else 8
        chunks = [items[i : i + width] for i in range(0, len(items), width)]
        return "[\n" + "".join(f"  {', '.join(chunk)},\n" for chunk in chunks) + "]"

    p = params
    n, s, d = p.log_n, p.log_scale, p.normal_top_level
    name = p.name or f"leveled-n{n}-s{s}-d{d}"
    provenance = p.provenance.strip() or f"found by crenel params generate ({n}, {s}, {d})"
    provenance = provenance.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return "\n".join(
        [
            f'name = "{name}"',
            f'description = "leveled, N = 2^{n}, scale 2^{s}, depth {d}"',
            f"log_n = {n}",
            f"log_scale = {s}",
            f"normal_top_level = {d}",
            f"hamming_weight = {p.hamming_weight}",
            f'provenance = "{provenance}"',
            "",
            "# (main, terminal) primes in use, level 0 first.",
            f"levels = {block(p.levels)}",
            f"main = {block(p.main_primes)}",
            f"terminal = {block(p.terminal_primes)}",
            f"auxiliary = {block(p.special_primes)}",
            "",
            "[expected]",
            f"limbs = {p.chain_limbs}",
            f"log_pq = {p.log_pq:.2f}",
            f"max_scale_deviation = {p.scale_deviation:.4f}",
            "",
        ]
    )
