"""`paribus speed`: measure an endpoint, or a job of the plan."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from paribus.catalog import PromptLine, read_prompts
from paribus.cli._asking import extra_of, key_of, sampling_of
from paribus.cli._speed_progress import Progress
from paribus.cli._speed_view import table
from paribus.conditions import CheckFailed, EnvironmentFault, UsageError
from paribus.machine.files import refuse_file
from paribus.machine.locks import lock_alone
from paribus.speed.adhoc import Asked, measure_endpoint
from paribus.speed.summary import SpeedSummary
from paribus.speed.tokenizer import load_tokenizer
from paribus.wire import Endpoint, payload

_FILE = click.Path(path_type=Path)
_WRITTEN = ("summary.json", "requests.parquet", "requests-lite.parquet", "conditions.json", "manifest.json")
DEFAULT_SCENARIO = "c1-long"
DEFAULT_CAP = 1024


@click.command()
@click.option("--base-url", metavar="URL", help="Server to measure, up to and with /v1.")
@click.option("--model", metavar="NAME", help="Model's name, as the server knows it.")
@click.option("--out", type=_FILE, metavar="DIR", help="Folder for the results; nothing in it is overwritten.")
@click.option("--api", type=click.Choice(["chat", "completions"]), default="chat", show_default=True)
@click.option("--prompts", type=_FILE, metavar="FILE.jsonl", help="Prompts (default: the shipped long ones).")
@click.option("--concurrency", type=click.IntRange(1, 4096), default=1, show_default=True, help="Requests at once.")
@click.option("--requests", type=click.IntRange(1), help="Requests to measure (default: each prompt once).")
@click.option("--max-tokens", type=click.IntRange(1), default=DEFAULT_CAP, show_default=True, help="Token cap.")
@click.option("--warmup", type=click.IntRange(0), help="Warm-up requests (default: max(4, concurrency); 0: none).")
@click.option("--warmup-prompts", type=_FILE, metavar="FILE", help="Their prompts (default: the tuning prompts).")
@click.option("--temperature", type=click.FloatRange(0), help="Sent only when given.")
@click.option("--top-p", type=click.FloatRange(0, 1), help="Sent only when given.")
@click.option("--extra-body", metavar="JSON", help="Fields to add to each request; null takes one out.")
@click.option("--tokenizer", type=_FILE, metavar="PATH", help="The model's tokenizer.json: checks the server's counts.")
@click.option("--api-key-env", metavar="VAR", help="Environment variable that holds the API key.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--job", metavar="ID", help="Run one job of a plan instead: a server started from the catalog.")
@click.option("--plan", type=_FILE, default=Path("build/plan.json"), show_default=True, help="The plan of --job.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Measure how fast a server writes: any OpenAI-compatible endpoint, or one job of a plan.

    \b
    Prompts are JSON lines with id, messages or prompt, and if wanted max_tokens and check:
      {"id": "haiku", "prompt": "Write a haiku about a lighthouse.", "max_tokens": 64}

    Every request begins with a line of its own, so that no prefix cache can help. DIR gets summary.json, the raw
    answers with the arrival of every read (requests.parquet), a row a request (requests-lite.parquet) and what was
    asked (conditions.json). The API key comes from the environment only.

    \b
    Examples:
      paribus speed --base-url http://127.0.0.1:8000/v1 --model my-model --out out/first
      paribus speed --base-url http://127.0.0.1:8000/v1 --model my-model --out out/sixteen \\
          --concurrency 16 --requests 96 --max-tokens 512
      paribus speed --base-url https://api.example.com/v1 --model big --api-key-env EXAMPLE_KEY \\
          --prompts mine.jsonl --temperature 0.7 --out out/mine --json
      paribus speed --job rabcdefghij-1

    Exit codes: 0 measured, 1 nothing was answered, 2 wrong usage, 3 the machine lacks something, 130 interrupted.
    """
    if options["job"] is not None:
        _job(context, options["job"], options["plan"])
        return
    missing = [f"--{name.replace('_', '-')}" for name in ("base_url", "model", "out") if options[name] is None]
    if missing:
        raise UsageError(f"give {', '.join(missing)} to measure an endpoint, or --job to run a job of the plan")
    context.exit(_endpoint(Options(**{k: v for k, v in options.items() if k not in ("job", "plan")})))


def _job(context: click.Context, job: str, plan_file: Path) -> None:
    """Run one job of the plan with the server it describes."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in context.params
        if name not in ("job", "plan") and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(f"--job takes everything from the plan: leave out {', '.join(given)}")
    # A server of our own needs much that somebody else's doesn't.
    from paribus.catalog.configuration import catalog_of
    from paribus.cli._planning import read_plan, root_of
    from paribus.engines import run_job
    from paribus.speed.run import measure_speed_start, write_unasked

    plan = read_plan(plan_file)
    root = root_of(plan_file)
    catalog = catalog_of(root, plan)
    run_job(
        root,
        plan,
        job,
        lambda session, planned, to: measure_speed_start(session, planned, catalog, to),
        catalog=catalog,
        write_unasked=lambda planned, to, why: write_unasked(planned, catalog, to, why),
    )


@dataclass(frozen=True)
class Options:
    """The options of an endpoint's measurement, as given."""

    base_url: str
    model: str
    out: Path
    api: str
    prompts: Path | None
    concurrency: int
    requests: int | None
    max_tokens: int
    warmup: int | None
    warmup_prompts: Path | None
    temperature: float | None
    top_p: float | None
    extra_body: str | None
    tokenizer: Path | None
    api_key_env: str | None
    as_json: bool


def _endpoint(options: Options) -> int:
    """Measure an endpoint; returns the exit code."""
    asked = asked_of(options)
    notes = _notes(options, asked)
    with new_results(options.out), Progress(asked.requests, asked.warm_up, quiet=options.as_json) as progress:
        for note in notes:
            progress.say(note)
        try:
            with _terminate_as_interrupt():
                summary, interrupted = measure_endpoint(asked, options.out, progress.on_end)
        except CheckFailed:
            # A table would only say "none"; who reads JSON is owed what was written.
            written = options.out / "summary.json"
            if options.as_json and written.exists():
                _show(options, SpeedSummary.model_validate_json(written.read_bytes()), progress)
            raise
        _show(options, summary, progress)
    if interrupted:
        click.echo(f"interrupted: {options.out} holds what had come by then", err=True)
        return 130
    return 0


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """SIGTERM, and a terminal that is closed, end the block as Ctrl-C does: what has ended by then is written."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]  # nohup ignores SIGHUP
    for number in heard:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _show(options: Options, summary: SpeedSummary, progress: Progress) -> None:
    progress.stop()
    if options.as_json:
        click.echo(json.dumps(summary.model_dump(by_alias=True, mode="json"), indent=1))
    else:
        click.echo(table(summary))
        click.echo(f"\n{options.out}/summary.json")


def _notes(options: Options, asked: Asked) -> list[str]:
    notes = []
    if asked.requests > len(asked.prompts):
        several = "prompts" if len(asked.prompts) > 1 else "prompt"
        notes.append(f"{asked.requests} requests from {len(asked.prompts)} {several}: prompts come again")
    if options.prompts is None:
        notes.append(f"prompts: the {len(asked.prompts)} shipped long ones")
    return notes


@contextmanager
def new_results(out: Path) -> Iterator[None]:
    """The folder, for this run's results alone; one that holds results or that another run writes into is refused."""
    refuse_file(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".writable").touch()
        (out / ".writable").unlink(missing_ok=True)
        handle = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise EnvironmentFault(f"can't write into {out}: {error.strerror}") from error
    try:
        if not lock_alone(handle):
            raise UsageError(f"another `paribus speed` writes into {out}: give another folder")
        held = [name for name in _WRITTEN if (out / name).exists()]
        if held:
            raise UsageError(f"{out} already holds {held[0]}: give another folder, nothing is overwritten")
        yield
    finally:
        os.close(handle)


def asked_of(options: Options) -> Asked:
    """Options as a measurement. Everything wrong with them is found here, before anything is sent."""
    sampling = sampling_of(options.temperature, options.top_p)
    endpoint = Endpoint(
        base_url=options.base_url,
        model=_model(options.model),
        api="completions" if options.api == "completions" else "chat",
        api_key=key_of(options.api_key_env),
        extra_body=extra_of(options.extra_body, sampling, options.max_tokens),
    )
    endpoint.address()
    prompts = read_prompts(options.prompts) if options.prompts else _shipped("measured", "--prompts")
    warm_up = max(4, options.concurrency) if options.warmup is None else options.warmup
    asked = Asked(
        endpoint=endpoint,
        prompts=_unique(prompts),
        warm_up_prompts=_warm_up_prompts(options) if warm_up else [],
        requests=options.requests or len(prompts),
        concurrency=options.concurrency,
        max_tokens=options.max_tokens,
        warm_up=warm_up,
        sampling=sampling,
        tokenizer=load_tokenizer(options.tokenizer) if options.tokenizer else None,
        in_order=options.prompts is not None,
    )
    for prompt in (*asked.prompts, *asked.warm_up_prompts):
        payload(endpoint, prompt, max_tokens=asked.max_tokens, sampling=asked.sampling)
    return asked


def _model(name: str) -> str:
    if not name.strip():
        raise UsageError("--model is empty: give the model's name, as the server knows it")
    return name


def _unique(prompts: list[PromptLine]) -> list[PromptLine]:
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise UsageError(f"the prompt id {prompt.id!r} comes twice: ids must be unique")
        seen.add(prompt.id)
    return prompts


def _warm_up_prompts(options: Options) -> list[PromptLine]:
    return read_prompts(options.warmup_prompts) if options.warmup_prompts else _shipped("tuning", "--warmup-prompts")


def _shipped(split: str, option: str) -> list[PromptLine]:
    """The shipped long prompts of a split, from this clone."""
    from paribus.catalog import Catalog  # whoever brings prompts needs none of it

    for root in (*(p for p in (Path.cwd(), *Path.cwd().parents)), Path(__file__).resolve().parents[3]):
        if (root / "tasks" / "speed" / f"{DEFAULT_SCENARIO}.yaml").is_file():
            catalog = Catalog(root)
            name = catalog.scenario(DEFAULT_SCENARIO).prompts
            return [p for p in catalog.prompt_set(name) if p.split == split and p.length == "long"]
    raise UsageError(f"the shipped prompts are not here: go to a clone of Paribus, or give {option}")
