"""The commands that measure our side of the items: what they run, what they need, the file they make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

CRENEL = ("crenel",)
TREE = "a clone of the repository with a C++ compiler"
PROFILER = "Nsight Compute (ncu) with leave to read counters, and nvcc"
COUNTED = f"{PROFILER}; bench/compare/ncu_counters.py makes the record"
GPU = "an NVIDIA GPU"
# What 64-bit TFHE sets and packings of the papers are measured with.
TFHE_BATCH = "16384"
TOY_BATCH = "16"


@dataclass(frozen=True)
class Command:
    """Words of a command; {device}, {out}, {label} and {data} are filled in where it runs.

    A word with {data} goes, and the option before it, where no data were given.
    """

    words: tuple[str, ...]
    devices: tuple[str, ...] = ("cuda", "cpu", "ref")
    """Kinds of devices that it runs on; cuda:dry where it only states what it would launch."""
    needs: str = ""
    """What an installation of the package does not have; empty: nothing."""
    toy: tuple[str, ...] = ()
    """Words on a toy ring or a small batch, for machines that cannot run the whole."""

    def text(self) -> str:
        """For people to type."""
        return shlex.join(self.filled("cuda", "bench/results", "h200", "FILE"))

    def filled(self, device: str, out: str, label: str, data: str | None, toy: bool = False) -> list[str]:
        """Words with everything in place."""
        words = list(self.toy if toy and self.toy else self.words)
        while data is None and any("{data}" in word for word in words):
            at = next(i for i, word in enumerate(words) if "{data}" in word)
            del words[at - 1 : at + 1]
        at_device = device if "cuda:dry" not in self.devices or device.startswith("cuda") else "cuda:dry"
        places = {"device": at_device, "out": out, "label": label, "data": data or ""}
        return [word.format(**places) for word in words]


def _crenel(*words: str, **more: object) -> Command:
    return replace(Command((*CRENEL, *words)), **more)  # type: ignore[arg-type]


def _boot(params: str, *words: str, runs: int = 20, name: str = "boot") -> Command:
    start = ("bench", "boot", "--device", "{device}", "--params")
    toy = (*CRENEL, *start, f"toy-{params}", "--runs", "1", "--quick")
    out = ("--json", f"{{out}}/{params}-{{label}}-{name}.json")
    return _crenel(*start, params, "--runs", str(runs), *words, *out, toy=(*toy, *words, *out))


def _workload(name: str, params: str, *words: str, toy: tuple[str, ...], data: bool = True) -> Command:
    start = ("workload", name, "--device", "{device}", "--params")
    given = ("--data", "{data}") if data else ()
    out = ("--warm", "--json", f"{{out}}/workload-{params}-{{label}}-{name}.json")
    small = (*CRENEL, *start, f"toy-{params}", *toy, *out)
    return _crenel(*start, params, *words, *given, *out, toy=small)


def _tfhe(params: str, slots: int) -> Command:
    operation = {"G4": ("--operation", "lut"), "G5": ("--operation", "floor")}.get(params, ())
    start = ("bench", "tfhe", "--device", "{device}", "--set", params, "--slots", str(slots), *operation)
    out = ("--include-transfers", "--json", f"{{out}}/tfhe-{params.lower()}-r{slots}-{{label}}.json")
    toy = (*CRENEL, *start, "--batch", TOY_BATCH, "--quick", "--no-latency", *out)
    return _crenel(*start, "--batch", TFHE_BATCH, *out, toy=toy)


def _traffic(params: str, operation: str, *words: str, name: str = "") -> Command:
    start = ("analyze", params, "--operation", operation, "--device", "{device}", *words)
    file = f"{{out}}/traffic-{params}{name}-{{label}}.json"
    return _crenel(*start, "--json", file, devices=("cuda", "cuda:dry"))


def _run(*words: str, needs: str = TREE, devices: tuple[str, ...] = ("cuda", "cpu", "ref")) -> Command:
    return Command(("./run", *words), devices, needs)


def _all() -> dict[str, Command]:
    sets = ("boot30", "boot35", "boot40", "boot45", "boot48dr", "boot50")
    out = {f"boot:{p}": _boot(p, *(("--kinds",) if p == "boot40" else ())) for p in sets}
    out["boot40-minimal"] = _boot("boot40", "--minimal", name="boot-minimal")
    out["boot40-sizes"] = _boot("boot40", "--sizes", "32,256,2048,16384,32768", "--quick", name="sizes")
    out["boot40-tenants"] = _boot("boot40", "--tenants", "4", name="tenants")
    for p in ("boot30", "boot35", "boot40", "boot48dr"):
        quick = ("--iterations", "2")
        out[f"helr:{p}"] = _workload("helr", p, "--batch", "1024", toy=quick)
        out[f"sort:{p}"] = _workload("sort", p, "--count", "16384", toy=("--count", "16"), data=False)
        out[f"resnet20:{p}"] = replace(
            _workload("resnet20", p, toy=()), toy=(), devices=("cuda", "cpu"),
            needs="ResNet-20's weights and CIFAR-10's images (docs/guide/networks.md)",
        )  # fmt: skip
    out["traffic:boot40"] = _traffic("boot40", "bootstrap")
    for p in ("boot40", "boot48dr"):
        for operation in ("hrot", "hmult", "rescale"):
            name = f"operation:{operation}" + ("" if p == "boot40" else f":{p}")
            out[name] = _traffic(p, operation, "--level", "11", name=f"-{operation}-11")
    start = ("bench", "ablation", "--device", "{device}", "--params")
    file = ("--json", "{out}/ablation-boot40-{label}.json")
    small = (*CRENEL, *start, "toy-boot40", "--repeats", "1", "--seconds", "0", *file)
    out["ablation"] = _crenel(*start, "boot40", *file, devices=("cuda", "cuda:dry"), toy=small)
    out["operations"] = _run("bench", "ckks", "--device", "{device}", "--json", "{out}/ckks-{label}.json")
    out["batches"] = _run(
        "bench", "ckks", "--batches", "--device", "{device}", "--json", "{out}/ckks-batches-{label}.json"
    )
    # Prints its lines of JSON; who keeps them, as kernels-<label>.jsonl.
    out["kernels"] = _run(
        "bench", "kernels", "--device", "{device}", needs=f"{TREE}; its lines are kept by hand"
    )
    for p in ("G1", "G2", "G3", "G4", "G5", "M1", "M2", "M6"):
        out[f"tfhe:{p}:1"] = _tfhe(p, 1)
    for p, r in (("M1", 3), ("M2", 2), ("M3", 5), ("M4", 4), ("M5", 5), ("M6", 2)):
        out[f"tfhe:{p}:{r}"] = _tfhe(p, r)
    for p, most in (("M1", 3), ("M2", 2), ("M3", 5), ("M4", 4), ("M5", 5), ("M6", 2)):
        slots = ",".join(map(str, range(1, most + 1)))
        words = ("--set", p, "--slots", slots, "--json", f"{{out}}/tfhe-tune-{p.lower()}-{{label}}.json")
        out[f"tune:{p}"] = _run("bench", "tfhe-tune", "--device", "{device}", *words, devices=("cuda",))
    out |= {
        name: Command(tuple(shlex.split(words)), ("cuda",), needs) for name, (words, needs) in BY_HAND.items()
    }
    out["fhecore-sim"] = _run("fhecore-sim", "ingest", devices=())
    out["fhecore-schedules"] = _run("fhecore-sim", "schedules", devices=())
    out["fhecore-workloads"] = _run("fhecore-sim", "workloads", devices=())
    out["fhecore-workloads-a100"] = _run("fhecore-sim", "workloads", "--target", "a100", devices=())
    for name, designs in SYNTHESES.items():
        told = (*designs, "--check", "--out", f"{{out}}/fhecore-asap7{name}.json")
        out[f"fhecore-syn{name}"] = _run("fhecore-syn", *told, devices=())
    return out


# Suffix of a record -> the netlists in it.
SYNTHESES = {
    "": ("modmul_pe_cs", "modmul_pe", "array_periphery", "wrapper_periphery"),
    "-tensor": ("tensor_pe", "tensor_pe_fhe"),
}
# Name -> words and needs of what takes a person: profilers, probes, records that are put together by hand.
BY_HAND = {
    "ceilings": (
        "nvcc -O3 -arch=sm_90 dev/kernels/butterfly_probe.cu",
        "a GPU, nvcc, and probes of memory as docs/theory/gpu.md describes them",
    ),
    "ncu-account": ("OUT=bench/results dev/kernels/ncu_account.sh", PROFILER),
    "ncu-rotation": ("dev/kernels/counters.sh rotation", COUNTED),
    "pipes": ("dev/kernels/counters.sh kernels", COUNTED),
    "stalls": ("dev/kernels/counters.sh stalls", COUNTED),
    "fhecore-unit": (
        "python -m fhecore.dv.unit --long --config paper --out bench/results/fhecore-unit-paper.json",
        "a clone of the repository with Verilator",
    ),
}  # fmt: skip

COMMANDS: Mapping[str, Command] = _all()
