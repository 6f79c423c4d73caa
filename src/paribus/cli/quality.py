"""`paribus quality`: generate answers to a quality task, for a job of the plan or at any endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from paribus.catalog import Catalog
from paribus.catalog.configuration import catalog_of
from paribus.cli._asking import extra_of, key_of, sampling_of
from paribus.cli._planning import read_plan, root_of
from paribus.cli._quality_view import Counting, report
from paribus.conditions import EnvironmentFault, UsageError
from paribus.results.run import find_root

_FILE = click.Path(path_type=Path)
_ONLY_ENDPOINT = ("base_url", "model", "task", "out")


@click.command()
@click.option("--job", metavar="ID", help="Run one job of a plan: a server started from the catalog.")
@click.option("--plan", type=_FILE, default=Path("build/plan.json"), show_default=True, help="The plan of --job.")
@click.option("--base-url", metavar="URL", help="Server to ask instead, up to and with /v1.")
@click.option("--model", metavar="NAME", help="Model's name, as the server knows it.")
@click.option("--task", metavar="TASK", help="Quality task, such as mmlu-pro (`paribus show scenarios` lists them).")
@click.option("--out", type=_FILE, metavar="DIR", help="Folder for journal, samples and score; continued if it exists.")
@click.option("--limit", type=click.IntRange(1), help="Only so many items, an even share of each group.")
@click.option("--repeats", type=click.IntRange(1), help="Answers to each item (default: the budget's).")
@click.option(
    "--budget",
    type=click.Choice(["standard", "full"]),
    default="standard",
    show_default=True,
    help="How often each item is answered, as the task's file says.",
)
@click.option("--max-tokens", type=click.IntRange(1), default=4096, show_default=True, help="Token cap of an answer.")
@click.option("--concurrency", type=click.IntRange(1, 1024), help="Requests at once (default: the task's).")
@click.option("--temperature", type=click.FloatRange(0), help="Sent only when given.")
@click.option("--top-p", type=click.FloatRange(0, 1), help="Sent only when given.")
@click.option("--extra-body", metavar="JSON", help="Fields to add to each request; null takes one out.")
@click.option("--no-seed", is_flag=True, help="Send no seed (for servers that refuse it).")
@click.option("--api-key-env", metavar="VAR", help="Environment variable that holds the API key.")
@click.option("--no-score", is_flag=True, help="Generate only; `paribus score DIR` scores later.")
def command(job: str | None, plan: Path, **options: Any) -> None:
    """Generate answers to a quality task: one job of a plan, or any OpenAI-compatible endpoint.

    \b
    Every answer goes into DIR/journal.jsonl as it comes, so an interrupted run is continued by the same command, and
    scoring needs no server. A request that fails after its retries is a failed item: counted wrong, and named.

    \b
    Examples:
      paribus quality --base-url http://127.0.0.1:8000/v1 --model my-model --task smoke-aime --out out/smoke
      paribus quality --base-url http://127.0.0.1:8000/v1 --model my-model --task mmlu-pro --limit 42 \\
          --max-tokens 2048 --temperature 0.6 --out out/mmlu
      paribus quality --job rabcdefghij-1

    Exit codes: 0 answered, 1 not one request succeeded, 2 wrong usage, 3 the machine lacks something, 130 interrupted.
    """
    if job is not None:
        given = [f"--{name.replace('_', '-')}" for name in _ONLY_ENDPOINT if options[name] is not None]
        if given:
            raise UsageError(f"--job takes everything from the plan: leave out {', '.join(given)}")
        _job(job, plan)
        return
    missing = [f"--{name.replace('_', '-')}" for name in _ONLY_ENDPOINT if options[name] is None]
    if missing:
        raise UsageError(f"give {', '.join(missing)} to ask an endpoint, or --job to run a job of the plan")
    _endpoint(options)


def _job(job: str, plan_file: Path) -> None:
    from paribus.engines import run_job
    from paribus.quality.run import generate_start, prepare, runnable

    plan = read_plan(plan_file)
    root = root_of(plan_file)
    catalog = catalog_of(root, plan)
    found = next((row for row in plan.jobs if row.job == job), None)
    for measure in found.measures if found is not None and found.kind == "quality" else []:
        # Before the server starts: what is missing should not cost its start, nor the harness its time.
        prepare(runnable(catalog.task(measure.id)), root)
    run_job(
        root, plan, job, lambda session, planned, to: generate_start(session, planned, catalog, to), catalog=catalog
    )


def _endpoint(options: dict[str, Any]) -> None:
    from paribus.quality import sandbox
    from paribus.quality.asking import Asking
    from paribus.quality.data import load_items
    from paribus.quality.run import Evaluation, generate, runnable, score_start
    from paribus.wire import Endpoint

    root = find_root()
    catalog = Catalog(root)
    task = runnable(catalog.task(options["task"]))
    if task.sandbox and not options["no_score"]:
        reason = sandbox.available()
        if reason is not None:
            raise EnvironmentFault(f"{task.task} can't be scored here: {reason} (--no-score generates only)")
    sampling = sampling_of(options["temperature"], options["top_p"])
    asking = Asking(
        endpoint=Endpoint(
            options["base_url"],
            options["model"],
            api_key=key_of(options["api_key_env"]),
            extra_body=extra_of(options["extra_body"], sampling, options["max_tokens"]),
        ),
        sampling=sampling,
        cap=options["max_tokens"],
        concurrency=options["concurrency"] or task.concurrency,
        seeds=not options["no_seed"],
    )
    evaluation = Evaluation(
        task=task,
        items=load_items(task, root, options["limit"]),
        repeats=options["repeats"] or task.repeats_of(options["budget"]),
        cap=options["max_tokens"],
        limit=options["limit"],
        scale=None,
        model=options["model"],
        released=None,
        thinking=False,
    )
    generate(evaluation, asking, root, options["out"], Counting("answers"))
    if options["no_score"]:
        click.echo(f"{options['out']}/journal.jsonl; score it with: paribus score {options['out']}")
        return
    click.echo(report(score_start(options["out"], catalog, Counting("graded"))))
    click.echo(f"\n{options['out']}/score.json")
