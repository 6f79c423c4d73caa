"""A plain load generator that waits for a line, parses it and takes the time, once an event, on
asyncio's own streams. Called by benchmarks/truth.py.

    python benchmarks/line_client.py URL MODEL REQUESTS AT_ONCE OUT.json
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


async def one(url: str, model: str, index: int) -> dict[str, float | int | None] | None:
    """One request on a connection of its own; None when it failed."""
    address = urlsplit(url)
    body = json.dumps(
        {
            "model": model,
            "messages": [{"role": "user", "content": f"prompt {index}"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    began = time.perf_counter()
    writer.write(head.encode() + body)
    times: list[float] = []
    tokens, number = None, None
    async for line in reader:
        if line.startswith(b"data: [DONE]"):
            break
        if not line.startswith(b"data: "):
            continue
        event = json.loads(line[6:])
        number = event.get("id", number)
        if event.get("usage"):
            tokens = event["usage"]["completion_tokens"]
        if event.get("choices") and event["choices"][0]["delta"].get("content"):
            times.append(time.perf_counter() - began)
    writer.close()
    if not times:
        return None
    count = tokens or len(times)
    rest = times[-1] - times[0]
    return {
        "ttft_ms": 1000 * times[0],
        "e2e_ms": 1000 * times[-1],
        "tokens": count,
        "rate": (count - 1) / rest if rest > 0 else None,
        "number": int(number[1:]) if str(number)[1:].isdigit() else None,
    }


async def go(url: str, model: str, requests: int, at_once: int) -> dict[str, object]:
    answers: list[dict[str, float | None]] = []
    todo = iter(range(requests))
    failed = 0

    async def work() -> None:
        nonlocal failed
        for index in todo:
            found = await one(url, model, index)
            if found is None:
                failed += 1
            else:
                answers.append(found)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return {"answers": answers, "failed": failed}


if __name__ == "__main__":
    _, to, name, number, together, out = sys.argv
    Path(out).write_text(json.dumps(asyncio.run(go(to, name, int(number), int(together)))))
