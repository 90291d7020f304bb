"""The commands that measure our side of the items: what they run, what they need, the file they make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

CRENEL = ("crenel",)
TREE = "a clone of the repository with a C++ compiler"
PROFILER = f"{TREE}, nvcc, and Nsight Compute (ncu) with leave to read counters"
WEIGHTS = "ResNet-20's weights and CIFAR-10's images: --weights FILE --images FOLDER (docs/guide/networks.md)"
MODEL = "a clone of the repository; writes its own files in fhecore/sim/data: type it"
PROBES = "a GPU, nvcc, and probes of memory as docs/theory/gpu.md describes them; made by hand"
# What 64-bit TFHE sets and packings of the papers are measured with.
TFHE_BATCH = "16384"
TOY_BATCH = "16"
FILES = ("data", "weights", "images")  # that a person gives


@dataclass(frozen=True)
class Command:
    """Words of a command; {device}, {out}, {work}, {label} and files that were given ({data}, {weights},
    {images}) are filled in where it runs.

    A word with a file goes, and the option before it, where the file was not given.
    """

    words: tuple[str, ...]
    devices: tuple[str, ...] = ("cuda", "cpu", "ref")
    """Kinds of devices that it runs on; cuda:dry where it only states what it would launch."""
    needs: str = ""
    """What an installation of the package does not have; empty: nothing."""
    requires: tuple[str, ...] = ()
    """Of it, what is looked for before it runs: names of ``running.PRESENT``."""
    then: tuple[str, ...] = ()
    """Words of what makes the record of its files."""
    lines: str = ""
    """A file for the lines of JSON that it prints; empty: it writes its record itself."""
    toy: tuple[str, ...] = ()
    """Words on a toy ring or a small batch, for machines that cannot run the whole."""

    def text(self) -> str:
        """For people to type."""
        files = dict.fromkeys(FILES, "FILE") | {"images": "FOLDER"}
        both = [self.filled("cuda", "bench/results", "h200", files)]
        if self.then:
            both.append(self.filled("cuda", "bench/results", "h200", files, words=self.then))
        return " && ".join(map(shlex.join, both)) + (
            f" > {self.at_lines('bench/results', 'h200')}" if self.lines else ""
        )

    def at_lines(self, out: str, label: str) -> str:
        """The file of ``lines``."""
        return self.lines.format(out=out, label=label)

    def filled(
        self,
        device: str,
        out: str,
        label: str,
        files: Mapping[str, str],
        toy: bool = False,
        words: tuple[str, ...] = (),
    ) -> list[str]:
        """Words with everything in place; of the command, unless others are given."""
        found = list(words or (self.toy if toy and self.toy else self.words))
        for name in FILES:
            while name not in files and f"{{{name}}}" in found:
                at = found.index(f"{{{name}}}")
                del found[at - 1 : at + 1]
        at_device = device if "cuda:dry" not in self.devices or device.startswith("cuda") else "cuda:dry"
        places = {"device": at_device, "out": out, "work": f"{out}/work", "label": label}
        return [word.format(**places, **files) for word in found]


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
    return Command(("./run", *words), devices, needs, ("tree",))


def _counted(part: str, stem: str) -> Command:
    """A part of dev/kernels/counters.sh, and the record of its files."""
    files = (f"{{work}}/{stem}-{{label}}.json", f"{{work}}/{stem}-{{label}}.csv")
    made = ("--json", f"{{out}}/{stem}-{{label}}.json")
    return Command(
        ("env", "OUT={work}", "LABEL={label}", "dev/kernels/counters.sh", part),
        ("cuda",),
        PROFILER,
        ("tree", "nvcc", "ncu"),
        ("python", "bench/compare/ncu_counters.py", *files, *made),
    )


def _all() -> dict[str, Command]:
    sets = ("boot30", "boot35", "boot35-h1024", "boot40", "boot45", "boot48dr", "boot50")
    uniform = ("--values", "centred")  # as the papers' messages
    out = {f"boot:{p}": _boot(p, *uniform, *(("--kinds",) if p == "boot40" else ())) for p in sets}
    out["boot40-default"] = _boot("boot40", "--kinds", name="boot-default")
    out["boot40-minimal"] = _boot("boot40", *uniform, "--minimal", name="boot-minimal")
    slots = "32,256,2048,4096,16384,32768"
    out["boot40-sizes"] = _boot("boot40", *uniform, "--sizes", slots, "--quick", name="sizes")
    out["boot40-tenants"] = _boot("boot40", "--tenants", "4", name="tenants")
    for p in ("boot30", "boot35", "boot40", "boot48dr"):
        quick = ("--iterations", "2")
        out[f"helr:{p}"] = _workload("helr", p, "--batch", "1024", toy=quick)
        out[f"sort:{p}"] = _workload("sort", p, "--count", "16384", toy=("--count", "16"), data=False)
        trained = ("--weights", "{weights}", "--data", "{images}")
        out[f"resnet20:{p}"] = replace(
            _workload("resnet20", p, *trained, toy=(), data=False), toy=(), devices=("cuda", "cpu"),
            needs=WEIGHTS, requires=("weights", "images"),
        )  # fmt: skip
    for p in ("boot35", "boot35-h1024", "boot40"):
        out[f"traffic:{p}"] = _traffic(p, "bootstrap")
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
    out["kernels"] = replace(
        _run("bench", "kernels", "--device", "{device}"), lines="{out}/kernels-{label}.jsonl"
    )
    for p in ("G1", "G2", "G3", "G4", "G5", "M1", "M2", "M6"):
        out[f"tfhe:{p}:1"] = _tfhe(p, 1)
    for p, r in (("M1", 3), ("M2", 2), ("M3", 5), ("M4", 4), ("M5", 5), ("M6", 2)):
        out[f"tfhe:{p}:{r}"] = _tfhe(p, r)
    for p, most in (("M1", 3), ("M2", 2), ("M3", 5), ("M4", 4), ("M5", 5), ("M6", 2)):
        slots = ",".join(map(str, range(1, most + 1)))
        words = ("--set", p, "--slots", slots, "--json", f"{{out}}/tfhe-tune-{p.lower()}-{{label}}.json")
        out[f"tune:{p}"] = _run("bench", "tfhe-tune", "--device", "{device}", *words, devices=("cuda",))
    out["ceilings"] = Command(
        tuple(shlex.split("nvcc -O3 -arch=sm_90 dev/kernels/butterfly_probe.cu")),
        ("cuda",),
        PROBES,
        ("person",),
    )
    out["ncu-account"] = Command(
        ("env", "OUT={work}", "dev/kernels/ncu_account.sh"), ("cuda",), PROFILER, ("tree", "nvcc", "ncu"),
        ("cp", "{work}/ncu-account.json", "{out}/ncu-account-{label}.json"),
    )  # fmt: skip
    out["ncu-rotation"] = _counted("rotation", "rotation-g2")
    out["pipes"] = _counted("kernels", "kernels-once")
    out["stalls"] = _counted("stalls", "rotation-m3")
    return out | _hardware()


def _hardware() -> dict[str, Command]:
    """Of the unit FHECore: on no device, so on any machine that has the tools."""
    out = {
        "fhecore-sim": replace(_run("fhecore-sim", "ingest", needs=MODEL, devices=()), requires=("person",))
    }
    for part, file in (("schedules", "fhecore-schedules"), ("workloads", "fhecore-workloads-h200")):
        out[f"fhecore-{part}"] = _run("fhecore-sim", part, "--out", f"{{out}}/{file}.json", devices=())
    a100 = ("--target", "a100", "--out", "{out}/fhecore-workloads-a100.json")
    out["fhecore-workloads-a100"] = _run("fhecore-sim", "workloads", *a100, devices=())
    for name, designs in SYNTHESES.items():
        told = (*designs, "--check", "--out", f"{{out}}/fhecore-asap7{name}.json")
        out[f"fhecore-syn{name}"] = replace(
            _run(
                "fhecore-syn",
                *told,
                needs=f"{TREE}, and ASAP7's cell library (fhecore/doc/synthesis.md)",
                devices=(),
            )
        )
    words = ("-m", "fhecore.dv.unit", "--long", "--config", "paper", "--out", "{out}/fhecore-unit-paper.json")
    needs = "a clone of the repository with Verilator"
    out["fhecore-unit"] = Command(("python", *words), (), needs, ("tree", "verilator"))
    return out


# Suffix of a record -> the netlists in it.
SYNTHESES = {
    "": ("modmul_pe_cs", "modmul_pe", "array_periphery", "wrapper_periphery"),
    "-tensor": ("tensor_pe", "tensor_pe_fhe"),
}
COMMANDS: Mapping[str, Command] = _all()
