"""The tables of `build/paribus.duckdb` and of the data files: every column with its type and meaning.

One place: the database, the Parquet and CSV files and the site's data page are all made from `TABLES`.
Milliseconds, tokens a second, shares of 1; times are UTC, ISO 8601 text. NULL where a number is undefined.
"""

from __future__ import annotations

from paribus.results.columns import Table
from paribus.results.columns import table as _table

DATABASE = "build/paribus.duckdb"
DATA = "build/data"
"""Where the tables and the data files lie, below the repository's root."""

SCHEMA = 1
"""Version of these tables. A change that breaks a reader's query is a new version."""


META = _table(
    "meta",
    "What this database is: schema, edition, protocol, version, content, licence, runs.",
    "key",
    ("key", "VARCHAR", "name of the fact"),
    ("value", "VARCHAR", "the fact, as text"),
)

DICTIONARY = _table(
    "dictionary",
    "Every column of every table: this very list.",
    "table_name position",
    ("table_name", "VARCHAR", "table"),
    ("position", "INTEGER", "place of the column in its table, from 1"),
    ("column_name", "VARCHAR", "column"),
    ("type", "VARCHAR", "DuckDB type"),
    ("doc", "VARCHAR", "meaning"),
)

RUNS = _table(
    "runs",
    "One run: all starts of one measure of one system on one machine.",
    "run",
    ("run_id", "VARCHAR", "permanent id: r and ten base32 characters"),
    ("run", "VARCHAR", "path of the run below its results folder"),
    ("kind", "VARCHAR", "speed, race (a candidate of a race between decoders) or quality"),
    ("hardware", "VARCHAR", "hardware profile"),
    ("machine", "VARCHAR", "label of the machine"),
    ("system", "VARCHAR", "full name of the system"),
    ("stack", "VARCHAR", "the system without its decoder: <model>--<precision>--<engine>[--think]"),
    ("model", "VARCHAR", "model"),
    ("precision", "VARCHAR", "precision of the weights"),
    ("engine", "VARCHAR", "engine"),
    ("decoder", "VARCHAR", "decoder with its parameters"),
    ("think", "BOOLEAN", "whether thinking was on"),
    ("measure", "VARCHAR", "measure as in the path (with .greedy and .<scale> where not the default)"),
    ("scenario_or_task", "VARCHAR", "id of the scenario or quality task"),
    ("sampling", "VARCHAR", "sampling profile: served (as the model card says) or greedy"),
    ("scale", "VARCHAR", "how much was measured: full, quick, small, demo, ..."),
    ("conditions", "VARCHAR", "hash of the declared conditions (12 hex digits)"),
    ("answer_class", "VARCHAR", "hash of everything that decides the answers"),
    ("n", "INTEGER", "which repeat of the same conditions, from 1"),
    ("starts", "INTEGER", "number of fresh server starts"),
    ("started_at", "VARCHAR", "when the first start began"),
    ("ended_at", "VARCHAR", "when the last start ended"),
    (
        "ranked",
        "BOOLEAN",
        "whether its figures may stand in a ranking (no invalid flag, catalog origin, not superseded)",
    ),
    ("origin", "VARCHAR", "catalog (a server that Paribus started) or endpoint"),
    ("demo", "BOOLEAN", "from the demo's results folder, not from the published results"),
    ("superseded_by", "VARCHAR", "run id of the run that replaces this one; empty: it was taken back; NULL: it stands"),
    ("card", "VARCHAR", "the card or CPU as observed"),
    ("contributor", "VARCHAR", "who measured it"),
    ("trust", "VARCHAR", "self_reported, audited, reproduced, disputed or unresolved"),
    ("strip", "VARCHAR", "the conditions strip: every condition in one line, always in the same order"),
    ("summary", "JSON", "the run's summary.json, whole"),
    ("declared", "JSON", "declared conditions"),
    ("observed", "JSON", "observed conditions that all starts share"),
)

STARTS = _table(
    "starts",
    "One start of a run: one freshly started server.",
    "run_id start",
    ("run_id", "VARCHAR", "run"),
    ("start", "INTEGER", "number of the start, from 1"),
    ("started_at", "VARCHAR", "when it began"),
    ("ended_at", "VARCHAR", "when it ended"),
    ("engine_start_s", "DOUBLE", "seconds until the server answered"),
    ("warm_up_s", "DOUBLE", "seconds of warm-up"),
    ("measuring_s", "DOUBLE", "seconds of measuring"),
    ("rest_s", "DOUBLE", "seconds of everything else"),
    ("observed", "JSON", "observed conditions of this start"),
    ("counters", "JSON", "the engine's own counters over the measured part"),
    ("versions", "JSON", "versions of Paribus, Python, the engine, ..."),
    ("summary", "JSON", "the start's own summary (speed: summary.json, quality: score.json)"),
    ("files", "JSON", "the files that its manifest lists: name, bytes, sha256, raw"),
)

FIGURES = _table(
    "figures",
    "One published number: a metric of one run, or a ratio of two comparable runs.",
    "run_id other_run_id metric",
    ("figure_id", "VARCHAR", "permanent id: f and ten base32 characters"),
    ("run_id", "VARCHAR", "the run that the number is about"),
    ("other_run_id", "VARCHAR", "for a ratio or a difference: the run it is compared with; else NULL"),
    ("metric", "VARCHAR", "the metric, e.g. time_to_100, throughput, speedup_time_to_100"),
    ("title", "VARCHAR", "the metric in words"),
    ("unit", "VARCHAR", "ms, s, tokens/s, standard tokens/s, x (a ratio), share, points, ..."),
    ("better", "VARCHAR", "higher or lower; empty where neither is better"),
    ("value", "DOUBLE", "the number"),
    ("low", "DOUBLE", "lower end of the 95% interval on this machine; NULL where one start allows none"),
    ("high", "DOUBLE", "upper end of the 95% interval"),
    (
        "basis",
        "VARCHAR",
        "what the interval rests on: starts and prompts, prompts, kinds, starts, batches, questions, none",
    ),
    ("coverage", "DOUBLE", "share of the requests (or prompts) that the number covers"),
    ("headline", "BOOLEAN", "whether it leads its run or comparison"),
    ("kind_low", "DOUBLE", "ratios: the smallest ratio over the kinds of text"),
    ("kind_high", "DOUBLE", "ratios: the largest ratio over the kinds of text"),
    ("ranked", "BOOLEAN", "whether the number may stand in a ranking"),
    (
        "superseded_by",
        "VARCHAR",
        "id of the figure that newer runs give in its place; empty: none does (a run was taken back); NULL: it stands",
    ),
    ("sentence", "VARCHAR", "the number in one sentence"),
    ("detail", "JSON", "ratios: value for each kind of text, k, prompts used; differences: questions, detectable"),
)

REQUESTS = _table(
    "requests",
    "One measured request of a speed or race run.",
    'run_id start "index"',
    ("run_id", "VARCHAR", "run"),
    ("start", "INTEGER", "number of the start"),
    ("index", "INTEGER", "number of the request in its start"),
    ("prompt_id", "VARCHAR", "prompt"),
    ("kind", "VARCHAR", "kind of text"),
    ("length", "VARCHAR", "short or long answers"),
    ("counted", "BOOLEAN", "one of the measured requests; the others (soak) only load the engine"),
    ("ok", "BOOLEAN", "whether it was answered without an error"),
    ("error", "VARCHAR", "why not, in one permanent word"),
    ("finish_reason", "VARCHAR", "why the answer ended"),
    ("capped", "BOOLEAN", "whether the token cap ended it"),
    ("degenerate", "BOOLEAN", "whether the answer is a loop"),
    ("sent_ms", "DOUBLE", "when it was sent, since the load began"),
    ("late_ms", "DOUBLE", "how late it was sent"),
    ("tokens", "DOUBLE", "the model's tokens delivered"),
    ("standard_tokens", "INTEGER", "the same text in standard tokens (o200k_base)"),
    ("prompt_tokens", "INTEGER", "prompt tokens as the engine counts them"),
    ("arrivals", "INTEGER", "distinct arrivals (pieces less than 1 ms apart are one)"),
    ("ttft_ms", "DOUBLE", "until the first text, reasoning included"),
    ("ttfa_ms", "DOUBLE", "until the first text of the visible answer"),
    ("e2e_ms", "DOUBLE", "until the last text"),
    ("time_to_32_ms", "DOUBLE", "until the 32nd standard token"),
    ("time_to_100_ms", "DOUBLE", "until the 100th standard token"),
    ("time_to_300_ms", "DOUBLE", "until the 300th standard token"),
    ("time_to_800_ms", "DOUBLE", "until the 800th standard token"),
    ("check", "BOOLEAN", "whether the answer was right; NULL where it can't be verified"),
)

KINDS = _table(
    "kinds",
    "One kind of text of one speed run.",
    "run_id kind",
    ("run_id", "VARCHAR", "run"),
    ("kind", "VARCHAR", "kind of text"),
    ("ok", "INTEGER", "answered requests"),
    ("time_to_32_ms", "DOUBLE", "mean time to the 32nd standard token"),
    ("time_to_100_ms", "DOUBLE", "mean time to the 100th standard token"),
    ("time_to_300_ms", "DOUBLE", "mean time to the 300th standard token"),
    ("time_to_800_ms", "DOUBLE", "mean time to the 800th standard token"),
    ("output_speed", "DOUBLE", "tokens a second, first wait included"),
    ("standard_tokens_mean", "DOUBLE", "mean length of an answer in standard tokens"),
    ("checked", "INTEGER", "answers that could be verified"),
    ("check_passed", "INTEGER", "answers that were right"),
)

FLAGS = _table(
    "flags",
    "One flag on one run.",
    "run_id flag text",
    ("run_id", "VARCHAR", "run"),
    ("flag", "VARCHAR", "permanent id of the flag"),
    ("severity", "VARCHAR", "note (shown), warning (shown, ranked), invalid (not ranked)"),
    ("text", "VARCHAR", "what the reader must know"),
)

RACES = _table(
    "races",
    "One candidate of one race between the decoders of a stack.",
    "verdict position",
    ("verdict", "VARCHAR", "path of the race.json below its results folder"),
    ("demo", "BOOLEAN", "from the demo's results folder"),
    ("hardware", "VARCHAR", "hardware profile"),
    ("machine", "VARCHAR", "label of the machine"),
    ("stack", "VARCHAR", "<model>--<precision>--<engine>[--think]"),
    ("scenario", "VARCHAR", "race scenario"),
    ("measure", "VARCHAR", "measure as in the path"),
    ("position", "INTEGER", "place in the race.json, from 1"),
    ("decoder", "VARCHAR", "candidate"),
    ("run_id", "VARCHAR", "the candidate's run; NULL where it wasn't tried"),
    ("run", "VARCHAR", "path of the candidate's run"),
    ("metric", "VARCHAR", "what was raced for"),
    ("unit", "VARCHAR", "its unit"),
    ("value", "DOUBLE", "the candidate's result"),
    ("low", "DOUBLE", "lower end of its 95% interval"),
    ("high", "DOUBLE", "upper end of its 95% interval"),
    ("acceptance_length", "DOUBLE", "tokens a pass that drafted"),
    ("winner", "BOOLEAN", "whether it is the best speculative candidate"),
    ("plain_is_faster", "BOOLEAN", "whether plain decoding beat every speculative candidate"),
    ("left_out", "VARCHAR", "why it was left out or not tried; NULL when it raced"),
    ("decided_at", "VARCHAR", "when the race was decided"),
)

PAIRS = _table(
    "pairs",
    "One duel of pairs.yaml under one measure on one machine; its ratios are the figures of (left, right).",
    "pair demo hardware machine measure",
    ("pair", "VARCHAR", "name of the duel"),
    ("title", "VARCHAR", "the duel in words"),
    ("kind", "VARCHAR", "controlled (only the decoding differs) or best-stack (each side's fastest engine)"),
    ("demo", "BOOLEAN", "from the demo's results folder"),
    ("hardware", "VARCHAR", "hardware profile"),
    ("machine", "VARCHAR", "label of the machine"),
    ("measure", "VARCHAR", "measure as in the path"),
    ("left_run_id", "VARCHAR", "the run in front; of one stack against itself: its best speculation"),
    ("right_run_id", "VARCHAR", "its opponent; of one stack against itself: plain decoding"),
    ("refused", "VARCHAR", "why the two can't be compared; NULL when they are"),
    ("notes", "JSON", "what else a reader must know about the comparison"),
)

SCORES = _table(
    "scores",
    "One score of one quality run, as a share of 1.",
    "run_id position",
    ("run_id", "VARCHAR", "run"),
    ("position", "INTEGER", "order of the scores, from 1"),
    ("name", "VARCHAR", "permanent name of the score"),
    ("title", "VARCHAR", "the score in words"),
    ("value", "DOUBLE", "0 to 1"),
    ("low", "DOUBLE", "lower end of the 95% interval over questions"),
    ("high", "DOUBLE", "upper end of the 95% interval over questions"),
    ("headline", "BOOLEAN", "whether it is the task's headline"),
    ("group", "BOOLEAN", "whether it is the score of a group (year, category, domain)"),
)

ITEMS = _table(
    "items",
    "One answer to one question of a quality run.",
    "run_id start item repeat",
    ("run_id", "VARCHAR", "run"),
    ("start", "INTEGER", "number of the start"),
    ("item", "VARCHAR", "id of the question"),
    ("repeat", "INTEGER", "which repeat, from 0"),
    ("correct", "DOUBLE", "1 right, 0 wrong, or a share where the task grades so"),
    ("answer", "VARCHAR", "what was read from the answer; NULL when nothing could be read"),
    ("status", "VARCHAR", "ok, failed, capped, or user: the user simulator broke the dialogue off"),
    ("finish_reason", "VARCHAR", "why the answer ended, in the engine's word"),
    ("prompt_tokens", "INTEGER", "tokens of the prompt as the engine counts them"),
    ("tokens", "INTEGER", "tokens of the answer, reasoning included"),
    ("reasoning_tokens", "INTEGER", "of which reasoning"),
    ("ttft_ms", "DOUBLE", "until the first text"),
    ("answer_time_ms", "DOUBLE", "until the whole answer"),
)

MODELS = _table(
    "models",
    "One model of the catalog.",
    "model",
    ("model", "VARCHAR", "name"),
    ("title", "VARCHAR", "name in words"),
    ("family", "VARCHAR", "family"),
    ("kind", "VARCHAR", "autoregressive, diffusion or concept"),
    ("licence", "VARCHAR", "licence of the weights"),
    ("released", "VARCHAR", "date of release"),
    ("context", "INTEGER", "tokens of context"),
    ("source", "VARCHAR", "address of the model card"),
    ("file", "JSON", "the catalog file, whole"),
)

TASKS = _table(
    "tasks",
    "One speed scenario or quality task.",
    "kind id",
    ("id", "VARCHAR", "id"),
    ("kind", "VARCHAR", "speed, race or quality"),
    ("title", "VARCHAR", "title"),
    ("requests", "INTEGER", "requests at once"),
    ("length", "VARCHAR", "speed: short or long answers"),
    ("thinking", "BOOLEAN", "speed: whether thinking is on"),
    ("cap", "INTEGER", "token cap; NULL: the model card's"),
    ("headline", "BOOLEAN", "whether it leads the front page"),
    ("stand_in", "BOOLEAN", "quality: a stand-in of our own in place of the public task"),
    ("file", "JSON", "the task's file, whole"),
)

LOSSLESS = _table(
    "lossless",
    "One lossless gate of one decoder on one machine: its answers beside plain decoding's.",
    "demo path gate",
    ("gate", "VARCHAR", "greedy (temperature 0), served (the served temperature, from speed runs) or canary"),
    ("path", "VARCHAR", "what it was made of, below its results folder: a lossless.json, or the decoder's newest run"),
    ("demo", "BOOLEAN", "from the demo's results folder"),
    ("hardware", "VARCHAR", "hardware profile"),
    ("machine", "VARCHAR", "label of the machine"),
    ("system", "VARCHAR", "the system with the decoder"),
    ("plain", "VARCHAR", "plain decoding of the same answer class"),
    ("answer_class", "VARCHAR", "hash of everything that decides the answers"),
    ("prompts", "INTEGER", "prompts or questions that it rests on"),
    ("differ", "INTEGER", "greedy: prompts whose answer differs from plain decoding's"),
    (
        "control_differ",
        "INTEGER",
        "greedy: prompts whose answer differs between plain decoding and itself at another load",
    ),
    ("standing", "VARCHAR", "passed, failed or undecided"),
    ("sentence", "VARCHAR", "the verdict in words"),
    ("measured_at", "VARCHAR", "when it was asked (of runs: when the newest began)"),
)

SUPERSEDED = _table(
    "superseded",
    "Runs that a later run replaces, or that were taken back: kept, shown, not ranked.",
    "old",
    ("old", "VARCHAR", "run id or path of the replaced run"),
    ("new", "VARCHAR", "run id or path of its replacement (may be empty)"),
    ("date", "VARCHAR", "since when"),
    ("reason", "VARCHAR", "why"),
)

LEFT_OUT = _table(
    "left_out",
    "What the last plan of the clone that built this left out, and why.",
    "name",
    ("name", "VARCHAR", "system, task or scenario"),
    ("hardware", "VARCHAR", "hardware profile of that plan"),
    ("scale", "VARCHAR", "scale of that plan"),
    ("reason", "VARCHAR", "why it was left out"),
)

CLAIMS = _table(
    "claims",
    "What others have published about speed or quality, and how it stands beside what was measured here.",
    "claim",
    ("claim", "VARCHAR", "id of the claim"),
    ("said_by", "VARCHAR", "who published it"),
    ("said_on", "VARCHAR", "when; NULL where it is not known"),
    ("system", "VARCHAR", "the system in the claimant's words"),
    ("hardware", "VARCHAR", "our hardware profile of the claim's card"),
    ("about", "VARCHAR", "speed, latency, speed-up, passes, quality, length, cost, limit or statement"),
    ("metric", "VARCHAR", "the metric in the claimant's words"),
    ("said", "VARCHAR", "the numbers as they were published"),
    ("against", "VARCHAR", "the opponent's numbers, or ratios to it, as they were published"),
    ("low", "DOUBLE", "least value that the first number stands for; NULL for 'up to'"),
    ("high", "DOUBLE", "greatest value that the first number stands for; NULL for 'at least'"),
    ("unit", "VARCHAR", "unit of the first number"),
    ("synthetic", "BOOLEAN", "its load was not natural text, by its own conditions"),
    ("confirmed", "VARCHAR", "where the claim itself was seen: primary, secondary, not found, estimate"),
    ("scenario", "VARCHAR", "the scenario that runs it under its own conditions, as far as they are known"),
    ("standing", "VARCHAR", "not measured, replicated, approximated, or not reproduced (under the run's conditions)"),
    ("differs", "JSON", "conditions of the claim that the run doesn't meet, or that weren't disclosed"),
    ("replica_run_id", "VARCHAR", "our run of that scenario"),
    ("replica_value", "DOUBLE", "what it found, in the claim's unit"),
    ("measured_run_id", "VARCHAR", "our run of c1-long on the same card"),
    ("measured_value", "DOUBLE", "what it found, in the claim's unit"),
    ("file", "JSON", "the claim's file"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        META,
        DICTIONARY,
        RUNS,
        STARTS,
        FIGURES,
        REQUESTS,
        KINDS,
        FLAGS,
        RACES,
        PAIRS,
        SCORES,
        ITEMS,
        LOSSLESS,
        MODELS,
        TASKS,
        SUPERSEDED,
        LEFT_OUT,
        CLAIMS,
    )
}
"""Every table by name, in the order they are made."""

EXPORTS = ("runs", "figures", "requests", "scores", "claims")
"""Tables written to `build/data/` as Parquet and CSV."""
