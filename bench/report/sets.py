"""Names of TFHE sets in records: a set keeps its id when its name passes to another set."""

from __future__ import annotations

from typing import Any

# id that a record states -> what the set is called since
BY_ID: dict[str, str] = {
    "2fbba3596477f124778ca06c0ea05027": "bool128-classic",
    "7d1fac8429e0b805d21ec170bf7698f2": "bool128-classic",  # r = 5
    "3393ab3824535114afff9da747b0c2db": "lut4-128-classic",
    "312d6a4f29e70de0073be9dd400a145d": "bool128",
    "b7f13aaff11d98aabe24bc5978b38407": "lut4-128",
}
# names in records without ids, of the time before
BEFORE = {
    "bool128": "bool128-classic",
    "lut4-128": "lut4-128-classic",
    "bool128g4": "bool128",
    "lut4-128g4": "lut4-128",
}
RENAMED_ON = "2026-11-26"


def under_present_names(record: Any, date: str = "") -> Any:
    """The record with the present names of its sets."""
    if isinstance(record, list):
        return [under_present_names(item, date) for item in record]
    if not isinstance(record, dict):
        return record
    provenance = record.get("provenance")
    if isinstance(provenance, dict):
        date = provenance.get("date", date)
    found = {key: under_present_names(value, date) for key, value in record.items()}
    if found.get("params_id") in BY_ID:
        found["params"] = BY_ID[found["params_id"]]
    elif "params_id" not in found and date < RENAMED_ON:
        for key in ("params", "set"):
            if isinstance(found.get(key), str):
                found[key] = BEFORE.get(found[key], found[key])
    if found.get("tfhe_params_id") in BY_ID:
        found["tfhe_params"] = BY_ID[found["tfhe_params_id"]]
    return found
