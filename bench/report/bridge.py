"""Between CKKS and TFHE: time of each way, and errors against the model."""

import math

from report.text import provenance_line, table


def bridge_sections(files: dict[str, dict]) -> str:
    """One section a file of `crenel bench bridge`."""
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-bench" or data.get("suite") != "bridge":
            continue
        sizes = [data[f"{scheme}_key_bytes"] / 2**20 for scheme in ("bridge", "ckks", "tfhe")]
        text += f"\n## Between CKKS and TFHE: {data['params']} and {data['tfhe_params']}, "
        text += f"{data['slots']:,} slots\n\n`{name}`. From level {data['level']} to level "
        text += f"{data['output_level']}; a result is there when the device is done. Keys on the device: "
        text += (
            f"of the bridge {sizes[0]:.1f} MiB, of CKKS {sizes[1]:,.0f} MiB, of TFHE {sizes[2]:.0f} MiB.\n\n"
        )
        header = ["what", "ms", "ms a slot", "wrong slots", "error, rms", "by the model", "largest error"]
        text += table(header, [_row(r, data["slots"]) for r in data["results"]])
        text += "\n" + provenance_line(data["provenance"])
    return text


def _row(r: dict, slots: int) -> list[str]:
    model = "" if r["expected_rms"] is None else f"2^{math.log2(r['expected_rms']):.1f}"
    return [
        *(r["name"], f"{1e3 * r['seconds']:.1f}", f"{1e3 * r['seconds'] / slots:.4f}", str(r["wrong"])),
        *(f"2^{math.log2(r['rms']):.1f}", model, f"2^{math.log2(r['largest']):.1f}"),
    ]
