"""What GPUs beyond one host would do: NVLink domains, and InfiniBand between them.

`crenel.gpus` is of GPUs that reach each other's memory, and measured on up to four. Here are more of them
in one domain, and several domains with a network between. Nothing of it was measured: rates of links are of
classes (``ceilings.json``), each with its source and whether it is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crenel import analyze, gpus
from crenel.analyze import Ceilings
from crenel.errors import ParameterError
from crenel.gpus import Accounts, Links
from crenel.launch_times import LaunchTimes

MOST_HOSTS = 1024  # domains: no network's rates are known beyond
POOL = 8  # GPUs of one process: more of them would wait for the first one's links


@dataclass(frozen=True)
class Network:
    """Between domains: bytes a second of each GPU's adapter in each direction, and the seconds in which all
    GPUs of all domains know that what was sent has come."""

    name: str
    rate: float
    meeting: float
    assumed: bool


@dataclass(frozen=True)
class Plan:
    """`hosts` domains of `domain` GPUs each. Throughput: bootstraps a second, each whole on one GPU.
    Latency: one bootstrap, its limbs over all of them; ``compute``, ``nvlink`` and ``network`` are its parts,
    and ``nccl`` the latency where a collective call of NCCL stands for each exchange between domains."""

    domain: int
    hosts: int
    rate: float
    speedup: float
    compute: float
    nvlink: float
    network: float
    latency: float
    nccl: float
    assumed: bool

    @property
    def gpus(self) -> int:
        return self.domain * self.hosts


def names() -> list[str]:
    """Of networks between hosts."""
    return [name for name, found in analyze.data()["links"]["classes"].items() if "most" not in found]


def load_network(name: str) -> Network:
    """Raises ParameterError for a name that is no network's."""
    if name not in names():
        raise ParameterError(f"link {name}, expected one of {', '.join(names())}", {"link": name})
    found = analyze.data()["links"]["classes"][name]
    return Network(name, found["nominal"] * found["reached"], found["meeting"], found["assumed"])


def load_domain(size: int) -> tuple[Links, bool]:
    """Links of a domain of so many GPUs, and whether they are assumed. ParameterError beyond the largest."""
    classes = analyze.data()["links"]["classes"]
    if size <= classes["nvlink"]["most"]:
        return gpus.load_links(), classes["nvlink"]["assumed"]
    found = classes["nvlink-domain"]
    if size > found["most"]:
        raise ParameterError(f"domain {size}, expected at most {found['most']} GPUs", {"domain": size})
    rate = ((1.0, found["nominal"] * found["reached"]),)
    return Links(rate, rate, found["meeting"]), found["assumed"]


def throughput(
    one: float, bytes_in: int, bytes_out: int, domain: int, hosts: int, each: int, network: Network
) -> float:
    """Things a second of `one` second each, whole on a GPU.

    Assumed of one domain: processes of up to `POOL` GPUs, each a `ckks.DevicePool` with `each` things a GPU
    in a call. Of several: a process a GPU, as of `crenel.distributed`, to which things come by its own
    adapter, and go back, before and after the work; all of them start and end at one domain, whose adapters
    together are the limit.
    """
    moved = bytes_in + bytes_out
    if hosts > 1:
        rate = domain * hosts / (one + moved / network.rate)
        return min(rate, domain * network.rate / moved)
    size = min(domain, POOL)
    return domain / size * gpus.spread(one, bytes_in, bytes_out, size, each, load_domain(domain)[0]).rate


def plan(
    accounts: Accounts,
    ring_dim: int,
    moved: tuple[int, int],
    shape: tuple[int, int],
    each: int,
    network: Network,
    ceilings: Ceilings,
    times: LaunchTimes,
) -> Plan:
    """One operation's accounts, its bytes (in, out), and (GPUs of a domain, domains).

    Assumed of limbs over all of them, beside what `crenel.gpus.divided` does (gathered): in an exchange a
    GPU sends its share to one GPU of each other domain, and each stores to the peers of its domain its own
    share and what came to it, so that all adapters work and no byte comes to a domain twice; adapters
    first, then links; one meeting of the network and one of the domain. EvalMod's parts are on half of an
    even number of domains each, or of one domain.
    """
    domain, hosts = shape
    links, assumed = load_domain(domain)
    count = domain * hosts
    if hosts > 1 and hosts % gpus.GROUPS:  # a group would end inside a domain
        accounts = replace(accounts, apart=False)
    compute = nvlink = across = 0.0
    exchanges = 0
    for launch in gpus.launches(accounts, ring_dim, count, "gathered", ceilings, times):
        compute += launch.seconds
        if not launch.sent:
            continue
        near = min(domain, launch.group)  # GPUs of the group in one domain
        far = launch.group // near  # domains that it is in
        exchanges += 1
        if near > 1 or (launch.moved and hosts == 1):
            stored = launch.whole * (near - 1) / near + (launch.moved if hosts == 1 else 0)
            nvlink += links.stored(stored) + links.barrier
        if far > 1:
            across += launch.whole / launch.group * (far - 1) / network.rate + network.meeting
            across += launch.moved / network.rate
    call = float(analyze.data()["links"]["nccl"]["call"])
    one = sum(gpus.shares(accounts.one, 1, "gathered", ceilings, times))
    rate = throughput(one, *moved, domain, hosts, each, network)
    latency = compute + nvlink + across
    nccl = latency + (exchanges * (call - network.meeting) if hosts > 1 else 0.0)
    return Plan(
        domain=domain,
        hosts=hosts,
        rate=rate,
        speedup=rate * one,
        compute=compute,
        nvlink=nvlink,
        network=across,
        latency=latency,
        nccl=nccl,
        assumed=assumed or (hosts > 1 and network.assumed),
    )
