"""What a streamed event costs the load generator: our client beside one that reads line by line, in one run.

    .venv/bin/python benchmarks/client_cost.py [--streams 16] [--rate 400] [--seconds 5]

Each asks the scripted endpoint of the tests (in its own process) for the same streams. A line reader does what most
load generators do: wait for a line, parse its JSON, take the time, once an event; a bare one on asyncio's streams,
and one on aiohttp where that is installed. Printed: CPU microseconds an event (and, for ours, of the parsing
afterwards), how long after the server's write the first token was stamped, and the error of the rate, both against the
server's own clock. Read the ratios; the absolute numbers belong to the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

try:
    import aiohttp
except ImportError:
    aiohttp = None

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from paribus.catalog import PromptLine
from paribus.wire import Client, Endpoint, Outcome, payload, read_answer, run
from scripted import Scripted, start_server

T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """What a client says of one request: the clock at its first and last piece (ns), and how many came."""

    user: str
    first_ns: int
    last_ns: int
    pieces: int


def request(endpoint: Endpoint, index: int) -> bytes:
    prompt = PromptLine(id=str(index), prompt=f"prompt {index}")
    return payload(endpoint, prompt, max_tokens=1 << 20, sampling={}, extra={"user": str(index)})


async def ours(endpoint: Endpoint, streams: int) -> list[Outcome]:
    """Stamp, store, parse later."""
    async with Client(endpoint, epoch_ns=0) as client:
        await client.open(streams)
        bodies = [request(endpoint, index) for index in range(streams)]
        sends = (client.send(b, index=i, prompt_id="p", due_ns=0, phase="measured") for i, b in enumerate(bodies))
        return list(await asyncio.gather(*sends))


async def by_line(endpoint: Endpoint, streams: int) -> list[Seen]:
    """Wait for a line, parse it, take the time: on asyncio's own streams."""

    async def one(index: int) -> Seen:
        address = endpoint.address()
        reader, writer = await asyncio.open_connection(address.host, address.port)
        body = request(endpoint, index)
        head = f"POST {address.prefix}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        seen = await piece_times(index, reader)
        writer.close()
        return seen

    return list(await asyncio.gather(*(one(index) for index in range(streams))))


async def by_aiohttp(endpoint: Endpoint, streams: int) -> list[Seen]:
    """The same on aiohttp."""

    async def one(index: int) -> Seen:
        url = endpoint.base_url + "/chat/completions"
        async with session.post(url, data=request(endpoint, index)) as reply:
            return await piece_times(index, reply.content)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        return list(await asyncio.gather(*(one(index) for index in range(streams))))


async def piece_times(index: int, lines: AsyncIterable[bytes]) -> Seen:
    times = []
    async for line in lines:
        if not line.startswith(b"data: "):
            continue
        if line.startswith(b"data: [DONE]"):
            break
        choices = json.loads(line[6:])["choices"]
        if choices and choices[0]["delta"].get("content"):
            times.append(time.monotonic_ns())
    return Seen(str(index), times[0], times[-1], len(times))


def timed(ask: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    """A client's result and its CPU seconds."""

    async def call() -> tuple[T, float]:
        before = time.process_time()
        return await ask(), time.process_time() - before

    return run(call())


def report(name: str, cpu_s: float, seen: list[Seen], server: Scripted, model: str) -> float:
    """Print a client's line; returns its CPU microseconds an event."""
    truth = {emission.request["user"]: emission for emission in server.log(model)}
    firsts, rates = [], []
    for row in seen:
        writes = [write for write in truth[row.user].writes if write[2]]
        firsts.append((row.first_ns - writes[0][0]) / 1e6)
        rates.append(abs((writes[-1][0] - writes[0][0]) / (row.last_ns - row.first_ns) - 1) * 100)
    cost = cpu_s * 1e6 / sum(row.pieces for row in seen)
    print(
        f"{name:<22} {cost:7.1f} us CPU an event   first token stamped {statistics.median(firsts):.3f} ms "
        f"after its write (worst {max(firsts):.3f})   rate off by {statistics.mean(rates):.3f}%"
    )
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--rate", type=int, default=400, help="events a second of each stream")
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    pieces = int(given.rate * given.seconds)
    model = f"f200-n{pieces}-i{1_000_000 // given.rate}-r"
    with start_server() as server:
        endpoint = server.endpoint(model)
        peers = {"line reader": by_line} | ({"line reader (aiohttp)": by_aiohttp} if aiohttp else {})
        costs = {}
        for name, ask in peers.items():
            seen, cpu = timed(partial(ask, endpoint, given.streams))
            costs[name] = report(name, cpu, seen, server, model)
            server.clear()
        outcomes, our_cpu = timed(partial(ours, endpoint, given.streams))
        before = time.process_time()
        answers = {o: read_answer(o) for o in outcomes}
        parsing = time.process_time() - before
        seen = [
            Seen(str(o.index), o.sent_ns + a.pieces[0].t_ns, o.sent_ns + a.pieces[-1].t_ns, len(a.pieces))
            for o, a in answers.items()
        ]
        our_cost = report("ours", our_cpu, seen, server, model)
        print(f"{'  parsing afterwards':<22} {parsing * 1e6 / sum(s.pieces for s in seen):7.1f} us CPU an event")
        for name, cost in costs.items():
            print(f"{name}: {cost / our_cost:.1f} times our CPU while it measures")


if __name__ == "__main__":
    main()
