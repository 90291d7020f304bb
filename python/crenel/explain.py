"""Parameters as rows of facts, and as a file."""

from __future__ import annotations

from collections.abc import Sequence

from crenel._crenel import Params, security_text


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
        ("one key", f"{p.key_bytes()} bytes (relinearisation, conjugation, each rotation)"),
        ("secret", secret),
        ("security", security_text(p)),
        ("id", p.id),
    ]
    if p.max_level > p.normal_top_level:
        rows[3] = ("levels", f"{p.normal_top_level} normal, {p.max_level - p.normal_top_level} bootstrapping")
        boot = {keys: p.key_bytes(bootstrap=keys) for keys in ("hoisted", "minimal")}
        at = [name for name, _ in rows].index("one key") + 1
        rows.insert(at, ("boot keys", f"{boot['hoisted']} bytes; minimal ones {boot['minimal']}"))
    return [("name", p.name), *rows] if p.name else rows


def to_toml(params: Params) -> str:
    """The parameters as a file of params/."""

    def block(values: Sequence[int | tuple[int, int]]) -> str:
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
