"""TFHE parameters in words and tables of plain text."""

from __future__ import annotations

from crenel._crenel import TfheParams

TFHE_HEADER = ("name", "messages", "n", "k", "N", "q", "noise path", "arithmetic", "p_fail", "security")


def security_line(params: TfheParams) -> str:
    """Security and failure probability, with a warning where today's norm is not met."""
    line = f"{params.security_bits:.1f} bits; a bootstrap fails with probability 2^{params.p_fail_log2:.1f}"
    return f"{line}. BELOW THE NORM: {params.warning}" if params.warning else line


def _path(params: TfheParams) -> str:
    d = params.numbers
    if d["path"] == "raising":
        return f"raising 2^{d['log_modulus']} to 2^{d['log_raised_modulus']}"
    return f"gadget 2^{d['log_modulus']}, base 2^{d['base_log']}, {d['digits']} digits"


def _messages(params: TfheParams) -> str:
    if params.padded:
        return f"{(params.plain_modulus // 2).bit_length() - 1} bits"
    return "gates" if params.plain_modulus == 4 else f"modulo {params.plain_modulus}"


def _groups(d: dict[str, int | str]) -> str:
    bits = f"{d['group']} secret bit{'s' if d['group'] != 1 else ''}, {d['step']} a step"
    return f"{bits}, by differences" if d["differences"] else bits


def tfhe_row(params: TfheParams) -> tuple[str, ...]:
    """A line of `crenel params list`."""
    d = params.numbers
    security = "INSECURE" if params.security_bits == 0 else f"{params.security_bits:.0f}"
    dimensions = (str(d["lwe_dim"]), str(d["glwe_dim"]), str(d["poly_size"]), f"2^{d['log_lwe_modulus']}")
    rest = (_path(params), params.arithmetic, f"2^{params.p_fail_log2:.0f}", security)
    return (params.name, _messages(params), *dimensions, *rest)


def tfhe_facts(params: TfheParams) -> list[tuple[str, str]]:
    """Names and values of the main numbers."""
    d = params.numbers
    moduli = f"Q_KS = 2^{d['log_switch_modulus']}, base 2^{d['switch_base_log']}, {d['switch_digits']} digits"
    return [
        ("name", params.name),
        ("for", params.description),
        ("messages", _messages(params)),
        ("LWE", f"n = {d['lwe_dim']}, q = 2^{d['log_lwe_modulus']}, {d['secret']} secret"),
        *([("groups", _groups(d))] if d["group"] else []),
        ("GLWE", f"k = {d['glwe_dim']}, N = {d['poly_size']}"),
        ("noise path", _path(params)),
        ("primes", " ".join(map(str, params.primes))),
        ("key switch", moduli),
        (
            "messages a mask",
            "1" if d["group"] else f"{params.slots}; Context(..., packing=r) changes it, 1 to 16",
        ),
        ("arithmetic", params.arithmetic),
        (
            "p_fail holds for",
            f"gates of two inputs, and sums with squared factors up to {params.max_norm2:g}",
        ),
        ("security", security_line(params)),
        ("id", params.id),
    ]


def tfhe_explain(params: TfheParams) -> str:
    """What the set offers, in words."""
    d = params.numbers
    group, step = int(d["group"]), int(d["step"])
    keys = 2**step if group else 2 if d["secret"] == "ternary" else 1
    columns = int(d["glwe_dim"]) + params.slots
    steps = int(d["lwe_dim"]) // (step or 1)
    polynomials = steps * keys * int(d["digits"]) * columns**2
    rest = int(d["glwe_dim"]) * int(d["poly_size"]) if group else int(d["lwe_dim"])
    lines = [
        f"{params.name}: {params.description}.",
        "",
        f"Messages: {_messages(params)}. A ciphertext at rest is {rest + params.slots} words modulo "
        f"2^{d['log_lwe_modulus']} for {params.slots} message{'s' * (params.slots > 1)}.",
        f"A bootstrap rotates {columns} polynomials of {d['poly_size']} coefficients "
        f"{steps} times, by a key of {polynomials:,} polynomials "
        f"({_path(params)}, {params.arithmetic}).",
        f"Security: {security_line(params)}.",
        "",
        "Where the numbers come from:",
        params.provenance.strip(),
    ]
    return "\n".join(lines)
