"""A made-up site in the form of a NetConfig, with known rates, and the faults that can be planted in it.

Arrivals are Poisson and receivers exponential, so that each destination is a queue of which the depth is known:
ρ² ÷ (1 − ρ) messages wait on average.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qsctl.netconfig.lint import SiteRule

TRANSACTIONS = (
    "ADT_A01",
    "ADT_A02",
    "ADT_A03",
    "ADT_A04",
    "ADT_A08",
    "ADT_A11",
    "ORM_O01",
    "ORU_R01",
    "SIU_S12",
    "DFT_P03",
)
QUIET_DAYS, OUTAGE_DAYS, BUSY_DAYS = 10, 4, 2
DAY_S = 86_400
BEGAN_S = 1_760_000_000 // DAY_S * DAY_S
STATIC, ELSE = "_HCI_static_route_", "_HCI_static_else_route_"


@dataclass
class MadeDetail:
    to: list[str]
    translation: str = ""
    pre: list[str] = field(default_factory=list)
    is_enabled: bool = True


@dataclass
class MadeRoute:
    name: str
    details: list[MadeDetail]
    weight: float = 1.0
    is_wildcard: bool = False


@dataclass
class MadeThread:
    name: str
    process: str
    rate: float = 0.0
    routes: list[MadeRoute] = field(default_factory=list)
    service: float = 0.0
    port: int = 0
    is_server: bool = False
    host: str = ""
    logging: bool = True
    works_as_inbound: bool = False
    outbound_only: bool = False
    procedures: list[str] = field(default_factory=list)
    has_archive: bool = False
    types: dict[str, float] = field(default_factory=dict)
    """Parts of what it receives, by transaction id."""


@dataclass
class MadeSite:
    processes: list[str]
    threads: list[MadeThread]
    seed: int
    durations: dict[str, str] = field(default_factory=dict)
    """Rows of the table of procedures, by name."""
    planted: list[tuple[SiteRule, str]] = field(default_factory=list)

    def thread(self, name: str) -> MadeThread:
        return next(each for each in self.threads if each.name == name)

    def sent(self) -> dict[str, float]:
        """Messages a second to each destination."""
        found: dict[str, float] = {}
        for thread in self.threads:
            for name, part in thread.types.items():
                for route in routes_for(thread.routes, name):
                    for detail in route.details:
                        for to in detail.to:
                            found[to] = found.get(to, 0.0) + thread.rate * part
        return found

    def depths(self) -> dict[str, float]:
        """Messages that wait for each receiver, on average."""
        found = {}
        for name, rate in self.sent().items():
            load = rate / self.thread(name).service
            found[name] = load * load / (1 - load)
        return found


def routes_for(routes: Sequence[MadeRoute], name: str) -> list[MadeRoute]:
    found = [
        each
        for each in routes
        if each.name in {name, STATIC} or (each.is_wildcard and name.startswith(each.name.removesuffix(".*")))
    ]
    return found or [each for each in routes if each.name == ELSE]


def made_site(threads: int, seed: int = 1, per_s: float = 0.4) -> MadeSite:
    """Return a site without a fault: a fifth of its threads are inbound, and all inbound rates together are `per_s`."""
    draw = random.Random(seed)
    count = max(2, threads // 5)
    processes = [f"p{number:02d}" for number in range(max(3, threads // 25))]
    site = MadeSite(processes, [], seed)
    names = [f"out_{number:03d}" for number in range(threads - count)]
    rates = [draw.lognormvariate(0.0, 0.8) for _ in range(count)]
    for number in range(count):
        thread = MadeThread(
            f"in_{number:03d}", processes[number % len(processes)], per_s * rates[number] / sum(rates),
            port=20_000 + number, is_server=True, procedures=draw.sample(["check_hl7", "strip", "log_it"], 2),
            has_archive=number % 2 == 0,
        )  # fmt: skip
        # Each destination is fed by one thread or two.
        mine = [name for at, name in enumerate(names) if at % count == number or draw.random() < 0.5 / count]
        chosen = draw.sample(TRANSACTIONS, draw.randint(2, 4))
        for name in chosen:
            thread.routes.append(MadeRoute(name, [], draw.uniform(0.5, 3.0)))
        kind = number % 4
        if kind == 1:
            thread.routes.append(MadeRoute(STATIC, []))
        elif kind == 2:
            thread.routes.append(MadeRoute(ELSE, [], 0.4))
        elif kind == 3 and not any(name.startswith("MDM") for name in chosen):
            thread.routes.append(MadeRoute("MDM_T.*", [], 0.6, is_wildcard=True))
        for at, name in enumerate(mine):
            route = thread.routes[at % len(thread.routes)]
            pre = ["drop_test"] if at % 7 == 3 else []
            translation = f"map_{at % 5}.xlt" if at % 3 else ""
            route.details.append(MadeDetail([name], translation, pre))
        thread.routes = [each for each in thread.routes if each.details]
        weights: dict[str, float] = {}
        for route in thread.routes:
            if route.name == ELSE:
                weights["ZZZ_Z01"] = route.weight
            elif route.is_wildcard:
                weights["MDM_T02"] = route.weight
            elif route.name != STATIC:
                weights[route.name] = route.weight
        if not weights:
            weights = {chosen[0]: 1.0}
        total = sum(weights.values())
        thread.types = {name: weight / total for name, weight in weights.items()}
        site.threads.append(thread)
    sent = site.sent()
    for number, name in enumerate(names):
        rate = sent.get(name, 0.0)
        site.threads.append(
            MadeThread(
                name,
                processes[number % len(processes)],
                service=max(1e-3, rate / draw.uniform(0.4, 0.8)),
                port=30_000 + number,
                host=f"10.1.{number // 250}.{number % 250 + 1}",
                procedures=["frame_it"],
            )
        )
    site.durations = {
        "check_hl7": "5ms,exponential", "strip": "2ms,constant", "log_it": "1ms,constant", "frame_it": "3ms,constant",
        "drop_test": "1ms,constant", "map_*.xlt": "40ms,exponential",
    }  # fmt: skip
    unfed = {name for name in names if name not in sent}
    site.threads = [each for each in site.threads if each.name not in unfed]
    return site


def plant_faults(site: MadeSite) -> None:
    """Plant twenty faults, one of each kind at least, in parts that the depths do not depend on."""
    inbound = [each for each in site.threads if each.routes]
    outbound = [each for each in site.threads if not each.routes]

    def planted(rule: SiteRule, thread: str) -> None:
        site.planted.append((rule, thread))

    for number, thread in enumerate(inbound[:2]):
        thread.routes[0].details.append(MadeDetail([f"{outbound[number].name}x"]))
        planted(SiteRule.UNKNOWN_DESTINATION, thread.name)
    inbound[2].routes.append(MadeRoute("BAR_P01", [MadeDetail([outbound[3].name], is_enabled=False)]))
    inbound[3].routes.append(MadeRoute("BAR_P02", []))
    planted(SiteRule.UNROUTED_TRANSACTION, inbound[2].name)
    planted(SiteRule.UNROUTED_TRANSACTION, inbound[3].name)
    observed = next(
        each for each in inbound if each.has_archive and all(r.name not in {STATIC, ELSE} for r in each.routes)
    )
    observed.types = {name: part * 0.95 for name, part in observed.types.items()} | {"QRY_A19": 0.05}
    planted(SiteRule.UNROUTED_TRANSACTION, observed.name)
    site.threads.append(
        MadeThread(
            "only_out",
            site.processes[0],
            outbound_only=True,
            routes=[MadeRoute("ADT_A01", [MadeDetail([outbound[0].name])])],
        )
    )
    planted(SiteRule.UNREACHED_ROUTE, "only_out")
    beside = next(each for each in inbound if any(route.name == STATIC for route in each.routes))
    beside.routes.append(MadeRoute(ELSE, [MadeDetail([outbound[1].name])]))
    planted(SiteRule.UNREACHED_ROUTE, beside.name)
    for name in ("forgotten_a", "forgotten_b"):
        site.threads.append(MadeThread(name, site.processes[1], service=1.0, port=41_000 + len(name), host="10.9.9.9"))
        planted(SiteRule.UNFED_THREAD, name)
    twin, same = outbound[4], outbound[5]
    other = next(each for each in site.processes if each != twin.process)
    site.threads.append(MadeThread(twin.name, other, service=1.0, port=42_000, host="10.9.9.8"))
    site.threads.append(MadeThread(same.name, same.process, service=1.0, port=42_001, host="10.9.9.7"))
    planted(SiteRule.THREAD_TWICE, twin.name)
    planted(SiteRule.THREAD_TWICE, same.name)
    outbound[6].process = "p_gone"
    planted(SiteRule.UNKNOWN_PROCESS, outbound[6].name)
    site.processes.append("p_empty")
    planted(SiteRule.EMPTY_PROCESS, "p_empty")
    # A thread that works as inbound and leads back to itself by another one.
    ring_a = MadeThread(
        "ring_a", site.processes[0], works_as_inbound=True, routes=[MadeRoute(STATIC, [MadeDetail(["ring_b"])])]
    )
    ring_b = MadeThread(
        "ring_b", site.processes[1], works_as_inbound=True, routes=[MadeRoute(STATIC, [MadeDetail(["ring_a"])])]
    )
    loop_in = MadeThread(
        "loop_in",
        site.processes[2],
        port=43_000,
        is_server=True,
        routes=[MadeRoute(STATIC, [MadeDetail(["loop_out"])])],
    )
    loop_out = MadeThread("loop_out", site.processes[2], service=1.0, port=43_000, host="127.0.0.1")
    site.threads += [ring_a, ring_b, loop_in, loop_out]
    planted(SiteRule.CYCLE, "ring_a")
    planted(SiteRule.CYCLE, "loop_in")
    again = MadeThread(
        "again_in", site.processes[2], port=43_001, is_server=True,
        routes=[
            MadeRoute("ADT_A01", [MadeDetail([outbound[0].name], pre=["as_a08"])]),
            MadeRoute("ADT_A08", [MadeDetail([outbound[0].name], pre=["as_a01"])]),
        ],
    )  # fmt: skip
    site.threads.append(again)
    site.durations |= {"as_a08": "0ms,constant,reroute,ADT_A08", "as_a01": "0ms,constant,reroute,ADT_A01"}
    planted(SiteRule.CYCLE, "again_in")
    unlogged = next(
        each for each in outbound[7:] if any(each.name in d.to for t in inbound for r in t.routes for d in r.details)
    )
    unlogged.logging = False
    planted(SiteRule.UNLOGGED_DESTINATION, unlogged.name)
    inbound[4].routes.append(MadeRoute("ORU_(R01", [MadeDetail([outbound[2].name])], is_wildcard=True))
    planted(SiteRule.NO_EXPRESSION, inbound[4].name)
    site.threads.append(
        MadeThread(
            "port_in",
            site.processes[1],
            port=inbound[0].port,
            is_server=True,
            routes=[MadeRoute(STATIC, [MadeDetail([outbound[0].name])])],
        )
    )
    planted(SiteRule.PORT_TWICE, "port_in")
    heaviest = sorted(inbound, key=lambda each: -each.rate)
    moved, total = 0.0, sum(each.rate for each in inbound)
    for thread in heaviest:
        if moved < 0.85 * total:
            moved += thread.rate
            thread.process = site.processes[0]
    planted(SiteRule.PROCESS_LOAD, site.processes[0])


def netconfig_text(site: MadeSite) -> str:
    """Return the site's NetConfig."""
    lines = ["prologue", "    who: nobody", "    type: net", "    version: 3.11", "end_prologue", ""]
    for name in site.processes:
        lines += [f"process {name} {{", "    { AUTOSTART 1 }", "    { CMDPORT {} }", "}", ""]
    for thread in site.threads:
        lines += [f"protocol {thread.name} {{", *(f"    {each}" for each in _thread_lines(thread)), "}", ""]
    return "\n".join(lines)


def _thread_lines(thread: MadeThread) -> list[str]:
    lines = ["{ AUTOSTART 1 }", "{ BITMAP thread }", "{ COORDS {100 200} }"]
    if thread.routes:
        lines += ["{ DATAXLATE {", *(f"    {each}" for route in thread.routes for each in _route_lines(route)), "} }"]
    lines += [
        f"{{ OBWORKASIB {int(thread.works_as_inbound)} }}",
        f"{{ OUTBOUNDONLY {int(thread.outbound_only)} }}",
        f"{{ PROCESSNAME {thread.process} }}",
        f"{{ PROTOCOL {{ {{ HOST {thread.host or '{}'} }} {{ ISSERVER {int(thread.is_server)} }} "
        f"{{ PORT {thread.port or '{}'} }} {{ TYPE tcpip }} }} }}",
    ]
    if thread.procedures:
        place = "IN_DATA" if thread.routes else "OUT_DATA"
        arguments = " ".join("{}" for _ in thread.procedures)
        lines.append(
            f"{{ SMS {{ {{ {place} {{ {{ ARGS {{{arguments}}} }} {{ PROCS {{{' '.join(thread.procedures)}}} }} "
            "{ PROCSCONTROL {} } } } } }"
        )
    lines.append(f"{{ USERECOVERDB {int(thread.logging)} }}")
    return lines


def _route_lines(route: MadeRoute) -> list[str]:
    lines = ["{", "    { ROUTE_DETAILS {"]
    for detail in route.details:
        pre = f"{{ {{ ARGS {{}} }} {{ PROCS {{{' '.join(detail.pre)}}} }} {{ PROCSCONTROL {{}} }} }}"
        what = (
            f"{{ POSTPROCS {{}} }} {{ PREPROCS {pre} }} {{ TYPE xlate }} {{ XLATE {detail.translation} }}"
            if detail.translation else f"{{ PROCS {pre} }} {{ TYPE raw }}"
        )  # fmt: skip
        lines.append(
            f"        {{ {{ DEST {{{' '.join(detail.to)}}} }} {{ DETAILS_ENABLED {int(detail.is_enabled)} }} {what} }}"
        )
    return [
        *lines,
        "    } }",
        f"    {{ TRXID {{{route.name}}} }}",
        f"    {{ WILDCARD {'ON' if route.is_wildcard else 'OFF'} }}",
        "}",
    ]


def durations_text(site: MadeSite) -> str:
    """Return the table of procedures."""
    lines = ["name,takes,spread,does,transaction"]
    for name, row in site.durations.items():
        cells = row.split(",")
        lines.append(",".join([name, *cells, *[""] * (4 - len(cells))]))
    return "\n".join(lines) + "\n"


def statistics_texts(site: MadeSite) -> list[str]:
    """Return four dumps: before and after quiet days, after days in which every receiver was down, and after two more.

    In these, what waited kept the receivers busy: a receiver takes less than two and a half times of what comes.
    """
    draw = random.Random(site.seed + 1)
    sent = site.sent()
    periods = (0, QUIET_DAYS, OUTAGE_DAYS, BUSY_DAYS)
    texts: list[list[str]] = [[] for _ in periods]
    for thread in {each.name: each for each in reversed(site.threads)}.values():
        counts = {"MSGSIN": 0, "MSGSOUT": 0, "BYTESIN": 0, "OBDATAQD": 0}
        rate = sent.get(thread.name, 0.0)
        for number, days in enumerate(periods):
            came = _poisson(draw, thread.rate * days * DAY_S)
            counts["MSGSIN"] += came
            counts["BYTESIN"] += came * 700
            fed = _poisson(draw, rate * days * DAY_S)
            served = (0, fed, 0, _poisson(draw, thread.service * days * DAY_S) if rate else 0)[number]
            counts["MSGSOUT"] += served
            counts["OBDATAQD"] = max(0, counts["OBDATAQD"] + fed - served)
            at = BEGAN_S + sum(periods[: number + 1]) * DAY_S
            pairs = " ".join(f"{{{name} {value}}}" for name, value in counts.items())
            texts[number].append(f"{{{thread.name} {{{{ALIVE 1}} {{LASTEXTRACT {at}}} {{PSTATUS up}} {pairs}}}}}")
    return ["\n".join(lines) + "\n" for lines in texts]


def write_archive(site: MadeSite, folder: Path, messages: int = 1_500) -> None:
    """Write saved messages of the threads that have an archive."""
    draw = random.Random(site.seed + 2)
    folder.mkdir(parents=True, exist_ok=True)
    for thread in site.threads:
        if not thread.has_archive or not thread.types:
            continue
        at_s, offset = float(BEGAN_S), 0
        index, data = [], []
        names, parts = list(thread.types), list(thread.types.values())
        for number in range(messages):
            at_s += draw.expovariate(thread.rate)
            kind, _, event = draw.choices(names, parts)[0].partition("_")
            size = max(60, round(draw.lognormvariate(6.5, 0.4)))
            message = f"MSH|^~\\&|A|B|C|D|20260101||{kind}^{event}|{number}|P|2.3\r".ljust(size)[:size]
            data.append(message)
            index.append(
                f"{{{{MID {{0 0 {number}}}}} {{TYPE DATA}} {{SOURCECONN {thread.name:<16}}} {{DESTCONN {{}}}} "
                f"{{TIME {at_s:.3f}}} {{OFFSET {offset}}} {{LENGTH {size}}}}}"
            )
            offset += size
        (folder / f"{thread.name}.idx").write_text("\n".join(index) + "\n")
        (folder / f"{thread.name}.msg").write_bytes("".join(data).encode())


def _poisson(draw: random.Random, mean: float) -> int:
    """Return a Poisson number; a normal one where the mean is large."""
    if mean > 50:
        return max(0, round(draw.gauss(mean, mean**0.5)))
    count, product = 0, draw.random()
    limit = 2.718281828459045**-mean
    while product > limit:
        count += 1
        product *= draw.random()
    return count
