"""What this installation found on this machine, and why it does not use what it does not use.

``crenel doctor`` prints it. Nothing is changed and nothing leaves the machine; every path to the outside
(files of the kernel, libraries of the driver) may be missing, and is stated as unknown then.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

# What extras bring where the package is not installed and its metadata cannot be asked.
EXTRAS: dict[str, tuple[str, ...]] = {
    "demo": ("scikit-learn",),
    "plot": ("matplotlib",),
    "torch": ("torch",),
    "onnx": ("onnx",),
    "text": ("tokenizers",),
    "weights": ("safetensors",),
}
REQUIREMENT = re.compile(r"""([\w.-]+)[^;]*;.*\bextra\s*==\s*['"]([\w-]+)['"]""")
DEVELOPMENT = ("test",)  # extras that are for this project's own work
# Flags of /proc/cpuinfo that the wider code of the cpu backend needs, widest first.
INSTRUCTIONS = {"AVX-512": ("avx512f", "avx512dq", "avx512bw", "avx512vl"), "AVX2": ("avx2", "fma")}
UNLIMITED = 1 << 60  # bytes from which a limit is none: the kernel has several words for that


@dataclass(frozen=True)
class Finding:
    """A remark: `note` is how it is, `problem` keeps the library from its work; and what to do about it."""

    kind: Literal["note", "problem"]
    text: str
    advice: str = ""


@dataclass
class Diagnosis:
    """Facts by section, and remarks; `healthy` is whether none of these is a problem."""

    facts: dict[str, dict[str, str | int | list[str] | None]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        """No finding is a problem."""
        return all(finding.kind != "problem" for finding in self.findings)

    def to_json(self) -> str:
        """The whole as a JSON object: format, healthy, facts, findings."""
        whole = {"format": 1, "healthy": self.healthy, "facts": self.facts}
        return json.dumps({**whole, "findings": [asdict(f) for f in self.findings]}, indent=1)

    def note(self, text: str, advice: str = "") -> None:
        """Adds a remark."""
        self.findings.append(Finding("note", text, advice))

    def problem(self, text: str, advice: str = "") -> None:
        """Adds what has to be mended."""
        self.findings.append(Finding("problem", text, advice))


def diagnose(root: Path = Path("/")) -> Diagnosis:
    """Looks at everything. `root`: where /proc, /sys and /dev are looked for; tests have their own."""
    found = Diagnosis()
    for part in (_installation, _processor, _memory, _secrets, _gpu, _extras, _computing):
        part(found, root)
    return found


def _read(path: Path) -> str:
    """Text of a file; empty where there is none or it may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def commit() -> str | None:
    """Of the sources: from the wheel's bill of materials, or from the checkout that the package lies in."""
    try:
        distribution = importlib.metadata.distribution("crenel")
        bill = next(f for f in distribution.files or () if f.name == "crenel.cdx.json")
        properties = json.loads(bill.read_text())["metadata"]["component"].get("properties", [])
        return next((str(p["value"]) for p in properties if p["name"] == "crenel:commit"), None)
    except (importlib.metadata.PackageNotFoundError, StopIteration, OSError, ValueError, KeyError):
        pass
    folder = Path(__file__).resolve().parent
    if not (folder.parents[1] / "tools" / "run.py").is_file():  # no checkout of this project
        return None
    try:
        command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _installation(found: Diagnosis, _: Path) -> None:
    import crenel
    from crenel import _crenel

    built = crenel.build_info()
    found.facts["installation"] = {
        "version": crenel.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}",
        "module": getattr(_crenel, "__file__", None),
        "compiler": f"{built['compiler']}, {built['build_type']}",
    }
    if built["build_type"] != "Release":
        found.note(f"built as {built['build_type']}: slower than a Release build")


def _processor(found: Diagnosis, root: Path) -> None:
    import crenel

    used = crenel.device_info("cpu").description
    flags = re.search(r"^flags\s*:(.*)$", _read(root / "proc/cpuinfo"), re.MULTILINE)
    has = set(flags[1].split()) if flags else None
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    quota = _read(root / "sys/fs/cgroup/cpu.max").split()
    share = int(quota[0]) / int(quota[1]) if len(quota) == 2 and quota[0].isdigit() else None
    found.facts["processor"] = {
        "used": used,
        "cores for this process": len(cores) or os.cpu_count(),
        "cores by the control group": None if share is None else f"{share:.1f}",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY"),
        "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT"),
    }
    for name, needed in INSTRUCTIONS.items():
        if name in used:
            break
        missing = [flag for flag in needed if has is not None and flag not in has]
        if missing:
            found.note(f"{name} is not used: this processor has no {', '.join(missing)}")
        else:
            found.note(f"{name} is not used, and why is not known", "it may be this build, or an emulator")
    if share is not None and cores and share < len(cores) and not os.environ.get("OMP_NUM_THREADS"):
        threads = max(1, int(share))
        text = f"{len(cores)} threads will share {share:.1f} cores, which the control group allows"
        found.note(text, f"set OMP_NUM_THREADS={threads}")


def _memory(found: Diagnosis, root: Path) -> None:
    import resource

    lines = dict(re.findall(r"^(\w+):\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE))
    group = _read(root / "sys/fs/cgroup/memory.max").strip()
    limit = int(group) if group.isdigit() and int(group) < UNLIMITED else None
    address = resource.getrlimit(resource.RLIMIT_AS)[0]
    available = 1024 * int(lines["MemAvailable"]) if "MemAvailable" in lines else None
    found.facts["memory"] = {
        "bytes": 1024 * int(lines["MemTotal"]) if "MemTotal" in lines else None,
        "available bytes": available,
        "limit of the control group": limit,
        "limit of addresses (ulimit -v)": None if address == resource.RLIM_INFINITY else address,
    }
    room = min((value for value in (available, limit) if value is not None), default=None)
    if room is not None and room < 10 << 30:
        found.note("sets with bootstrapping at N = 2^16 need about 10 GiB: docs/guide/memory.md")


def _secrets(found: Diagnosis, _: Path) -> None:
    import crenel

    memory = crenel.secret_memory()
    unlimited = memory.lock_limit >= UNLIMITED
    found.facts["secrets"] = {
        "may be locked": "without limit" if unlimited else memory.lock_limit,
        "not locked now": memory.unlocked_bytes,
    }
    if memory.lock_limit < 1 << 20:
        text = f"{memory.lock_limit:,} bytes may be locked into memory: secret keys may reach the swap"
        found.note(text, "raise the limit by `ulimit -l`, or turn swap off")


def _driver() -> str | None:
    """Version of CUDA that the driver's library knows, as '13.0'; None without one."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        version = ctypes.c_int()
        if library.cuDriverGetVersion(ctypes.byref(version)):
            return None
    except (OSError, AttributeError):
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def _gpu(found: Diagnosis, root: Path) -> None:
    import crenel

    built = crenel.build_info()
    module = re.search(r"Kernel Module\D*([\d.]+)", _read(root / "proc/driver/nvidia/version"))
    nodes = sorted(p.name for p in (root / "dev").glob("nvidia[0-9]*"))
    devices = [d for d in crenel.devices() if d.kind == "cuda"]
    reason = crenel.cuda_unavailable_reason()
    found.facts["gpu"] = {
        "CUDA of this build": built["cuda_toolkit"] or None,
        "architectures of this build": built["cuda_architectures"] or None,
        "kernel module": module[1] if module else None,
        "CUDA of the driver": _driver(),
        "device files": nodes,
        "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "devices": [f"{d.name}: {d.description}" for d in devices],
        "why none is used": reason or None,
    }
    if reason:
        found.note(f"no GPU is used: {reason}", _remedy(found.facts["gpu"], root))


def _remedy(gpu: dict[str, str | int | list[str] | None], root: Path) -> str:
    """What would bring a GPU into use, as far as can be told."""
    nodes = gpu["device files"]
    if not gpu["CUDA of this build"]:
        there = " (there is an NVIDIA driver here)" if gpu["kernel module"] or nodes else ""
        return f"install the wheel with CUDA, or build with nvcc on PATH{there}"
    if gpu["CUDA_VISIBLE_DEVICES"] in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU: unset it"
    if gpu["CUDA of the driver"] is None and not gpu["kernel module"]:
        return "no driver: install NVIDIA's, and in a container pass the GPU through (--gpus all)"
    if gpu["CUDA of the driver"] is None:
        return "the kernel has a driver, but libcuda.so.1 is not here: pass the GPU through (--gpus all)"
    if isinstance(nodes, list) and not all(
        os.access(root / "dev" / node, os.R_OK | os.W_OK) for node in nodes
    ):
        return "this user may not open /dev/nvidia*"
    return f"this build has code for compute capabilities {gpu['architectures of this build']}"


def extras() -> dict[str, tuple[str, ...]]:
    """Distributions that each extra of the package brings."""
    try:
        lines = importlib.metadata.requires("crenel") or []
    except importlib.metadata.PackageNotFoundError:
        return EXTRAS
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        if (match := REQUIREMENT.match(line)) and match[2] not in DEVELOPMENT:
            found[match[2]] = (*found.get(match[2], ()), match[1])
    return found or EXTRAS


def _extras(found: Diagnosis, _: Path) -> None:
    facts: dict[str, str | int | list[str] | None] = {}
    lacking = []
    for extra, names in extras().items():
        versions = {name: _version(name) for name in names}
        missing = [name for name, version in versions.items() if version is None]
        there = [f"{name} {version}" for name, version in versions.items() if version is not None]
        facts[extra] = f"missing: {', '.join(missing)}" if missing else ", ".join(there)
        lacking += [extra] if missing else []
    found.facts["extras"] = facts
    if lacking:
        text = f"optional parts are not installed: {', '.join(lacking)}"
        found.note(text, f"pip install 'crenel[{','.join(lacking)}]'")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _computing(found: Diagnosis, _: Path) -> None:
    """A product of encrypted numbers on every kind of device that is here."""
    import numpy as np

    from crenel import ckks

    facts: dict[str, str | int | list[str] | None] = {}
    for device in ("cpu", *(name for name in ("cuda",) if not found.facts["gpu"]["why none is used"])):
        try:
            params = ckks.Params(log_n=13, scale_bits=28, depth=1)
            context = ckks.Context(params, device=device)
            client = context.keygen()
            ev = context.evaluator(client.evaluation_keys())
            x = np.linspace(-1, 1, params.slots)
            error = float(np.abs(client.decrypt(ev(client.encrypt(x)) * ev(client.encrypt(x))) - x * x).max())
        except Exception as failure:  # whatever it is, it is what was asked for
            facts[device] = f"{type(failure).__name__}: {' '.join(str(failure).split())}"
            found.problem(f"computing on {device} fails: {facts[device]}")
            continue
        facts[device] = f"a product of encrypted numbers, error 2^{np.log2(error):.1f}"
        if error > 2**-10:
            found.problem(f"a product on {device} is wrong by {error:.3g}", "do not use this installation")
    found.facts["computing"] = facts
