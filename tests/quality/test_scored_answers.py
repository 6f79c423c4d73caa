"""Answers fed through plain decoding: a server in this process says how likely each token is, or says nonsense."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from quality_journals import ROOT

from paribus.catalog import Catalog, Job, PromptLine, resolve
from paribus.catalog.surroundings import Surroundings
from paribus.cli import lossless
from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.engines.adapters.sglang import SGLangScoring
from paribus.engines.registry import engine
from paribus.engines.scoring import Scoring, gap, token_ids
from paribus.engines.vllm.scoring import VllmScoring
from paribus.quality.lossless import judge
from paribus.quality.lossless_run import Given, answers, compared, score, with_scores
from paribus.results.gate import gate_rows
from paribus.wire import Endpoint

PROMPT, TOP = [1, 2, 3], 7
ASKED = [PromptLine(id=f"p{n}", messages=[{"role": "user", "content": f"question {n}"}]) for n in range(14)]
ENGINES = [VllmScoring(), SGLangScoring()]


@dataclass
class Model:
    """What the server answers: token 7 is always the likeliest; any other lies `far` below it."""

    far: float = 2.0
    writes: int = TOP
    wrong: Any = None
    """A reply in place of the right one, for what scores."""
    status: int = 200
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def reply(self, path: str, body: dict[str, Any]) -> Any:
        self.seen.append((path, body))
        if path == "/tokenize":
            return {"tokens": PROMPT, "count": 3}
        given = body.get("prompt") or body["input_ids"]
        if body.get("prompt_logprobs") or body.get("return_logprob"):
            return self.wrong if self.wrong is not None else self._scores(path, given)
        written = [self.writes] * body.get("max_tokens", body.get("sampling_params", {}).get("max_new_tokens"))
        if path == "/generate":
            return {"text": "x", "output_ids": written, "meta_info": {}}
        return {"choices": [{"text": "x", "token_ids": written, "finish_reason": "length"}]}

    def _scores(self, path: str, given: list[int]) -> Any:
        places = [(t, -0.1 if t == TOP else -0.1 - self.far) for t in given[1:]]
        if path == "/generate":
            own = [[None, given[0], None], *([p, t, None] for t, p in places)]
            best = [None, *([[-0.1, TOP, None]] for _ in places)]
            return {"output_ids": [1], "meta_info": {"input_token_logprobs": own, "input_top_logprobs": best}}
        rows = [{str(t): {"logprob": p, "rank": 1}, str(TOP): {"logprob": -0.1, "rank": 1}} for t, p in places]
        return {"choices": [{"text": "x", "prompt_logprobs": [None, *rows]}]}


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def endpoint(model: Model) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = model.reply(self.path, body)
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(model.status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Endpoint(
        f"http://127.0.0.1:{server.server_port}/v1",
        "m",
        extra_body={"chat_template_kwargs": {"enable_thinking": False}},
    )
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("scoring", ENGINES)
@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_known_gaps_are_found_and_judged(model: Model, endpoint: Endpoint, scoring: Scoring, wrong: int) -> None:
    plain = answers(endpoint, ASKED, max_tokens=5, at_once=2, scoring=scoring)
    assert all((one.prompt, one.tokens) == ((1, 2, 3), (TOP,) * 5) for one in plain)
    subject = [
        Given(one.id, "x", one.prompt, (4,) * wrong + one.tokens[wrong:]) if n < 9 else one
        for n, one in enumerate(plain)
    ]
    scored = [score(endpoint, scoring, side) for side in (plain, subject)]
    assert [one.violations for one in scored[0]] == [0] * 14
    assert [one.violations for one in scored[1]] == [wrong] * 9 + [0] * 5
    assert all(one.tokens == 5 for one in scored[1])
    assert scored[1][0].gaps == [2.0] * wrong
    rows = with_scores(compared(ASKED, plain, plain, subject), *scored)
    assert judge(rows)[0] == (9 if wrong else 0)
    assert judge(rows)[3] == ("failed" if wrong else "passed")


@pytest.mark.parametrize("scoring", ENGINES)
def test_a_tie_is_no_violation(model: Model, endpoint: Endpoint, scoring: Scoring) -> None:
    model.far = 0.4
    (found,) = score(endpoint, scoring, [Given("p", "x", (1, 2), (4, 4, TOP))])
    assert (found.violations, found.gaps, found.tokens) == (0, [0.4, 0.4], 3)


def test_what_is_asked_is_what_the_engines_document(model: Model, endpoint: Endpoint) -> None:
    """Greedy, in tokens, the switch for thinking in the template only, one answer's tokens at a time."""
    given = answers(endpoint, ASKED[:1], max_tokens=2, at_once=1, scoring=VllmScoring())
    score(endpoint, VllmScoring(), given)
    switch = {"chat_template_kwargs": {"enable_thinking": False}}
    messages = {"messages": ASKED[0].messages}
    common = {"model": "m", "temperature": 0.0}
    assert model.seen == [
        ("/tokenize", {"model": "m", **messages, "add_generation_prompt": True, **switch}),
        ("/v1/completions", {**common, "prompt": PROMPT, "max_tokens": 2, "return_token_ids": True}),
        ("/v1/completions", {**common, "prompt": [*PROMPT, 7, 7], "max_tokens": 1, "prompt_logprobs": 1}),
    ]
    model.seen.clear()
    given = answers(endpoint, ASKED[:1], max_tokens=2, at_once=1, scoring=SGLangScoring())
    score(endpoint, SGLangScoring(), given)
    assert [path for path, _ in model.seen] == ["/tokenize", "/generate", "/generate"]
    assert model.seen[0][1] == {"model": "m", **messages, **switch}
    assert model.seen[2][1]["sampling_params"] == {"temperature": 0, "max_new_tokens": 1}
    assert (model.seen[2][1]["logprob_start_len"], model.seen[2][1]["top_logprobs_num"]) == (0, 1)


def vllm(places: Any) -> Any:
    return {"choices": [{"prompt_logprobs": places}]}


def place(value: Any) -> Any:
    return {"4": {"logprob": value}}


def sglang(own: Any, best: Any) -> Any:
    return {"meta_info": {"input_token_logprobs": own, "input_top_logprobs": best}}


RIGHT = [[None, 1, None], [-1.0, 4, None]]
HOSTILE = [
    *[(VllmScoring(), reply) for reply in (
        b"no JSON", b"", [], 7, {"error": "x"}, {"choices": []}, vllm(None), vllm([None]), vllm([None, None]),
        vllm([None, {"5": {"logprob": -1.0}}]), vllm([None, place(None)]), vllm([None, place("-1")]),
        vllm([None, place(True)]), b'{"choices": [{"prompt_logprobs": [null, {"4": {"logprob": NaN}}]}]}',
        vllm([None, place(12.5)]), vllm([None, {"4": -1.0}]), vllm([None, place(-1.0), place(-1.0)]),
    )],
    *[(SGLangScoring(), reply) for reply in (
        {}, sglang(None, None), sglang(RIGHT, [None]), sglang(RIGHT, [None, None]), sglang(RIGHT, [None, [[None, 4]]]),
        sglang([[None, 1, None], [-1.0, 5, None]], [None, [[-1.0, 5, None]]]), sglang(RIGHT[:1], [None, [[-1.0, 4]]]),
    )],
]  # fmt: skip


@pytest.mark.parametrize(("scoring", "reply"), HOSTILE)
def test_a_reply_that_is_none_ends_the_gate(model: Model, endpoint: Endpoint, scoring: Scoring, reply: Any) -> None:
    model.wrong = reply
    with pytest.raises(CheckFailed, match=r"'p7' failed .*the gate needs every answer"):
        score(endpoint, scoring, [Given("p7", "x", (1,), (4,))])


def test_a_refusal_is_told_in_the_engines_words(model: Model, endpoint: Endpoint) -> None:
    model.wrong, model.status = {"message": "prompt_logprobs is not allowed"}, 400
    with pytest.raises(CheckFailed, match=r"answered 400.*prompt_logprobs is not allowed"):
        score(endpoint, VllmScoring(), [Given("p", "x", (1,), (4,))])


@pytest.mark.parametrize("value", [None, "7", [1, -2], [1, True], [1.5], [[1]], {"1": 2}])
def test_only_lists_of_ids_are_tokens(value: Any) -> None:
    with pytest.raises(TypeError):
        token_ids(value)


def test_a_gap_is_never_negative_and_the_worst_is_finite() -> None:
    assert gap(-1.0, [-3.0]) == 0.0
    assert gap(-9999.0, [-0.5, -9999.0]) == 9998.5


def test_adapters_say_whether_their_engine_scores_given_text() -> None:
    found = {name: engine(name).scoring() is not None for name in ("vllm", "vllm-cpu", "sglang", "llamacpp")}
    assert found == {"vllm": True, "vllm-cpu": True, "sglang": True, "llamacpp": False}


def test_the_gate_asks_decoders_first_and_plain_decoding_then_scores_them(
    model: Model, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server after the other; the decoder that writes other tokens than the model's fails, the other passes."""
    for name in ("systems", "tasks", "hardware", "pairs.yaml", "claims", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    around = Surroundings(machine="m-test", builds={"llamacpp": "0" * 12})
    asked = {"measures": "c1-short", "systems": "smollm2-135m--q4-1--llamacpp--*", "scale": "demo"}
    plan, catalog = resolve(tmp_path, "cpu", asked, around), Catalog(tmp_path)
    jobs = {job.system: job for job in plan.jobs}
    names = {name.split("--")[3]: name for name in jobs}
    opened = []

    @contextmanager
    def session(_root: Path, job: Job, _catalog: Catalog) -> Iterator[SimpleNamespace]:
        opened.append(job.system)
        model.writes = 4 if job.system == names["ngram-map-k-n4-m4"] else TOP
        yield SimpleNamespace(endpoint=endpoint, accepted={"temperature"}, engine=engine("vllm"))

    monkeypatch.setattr(lossless, "open_session", session)
    subjects = [names["ngram-simple-n4-m4"], names["ngram-map-k-n4-m4"]]
    gate = lossless.Gate(tmp_path, plan, catalog, jobs, list(ASKED), max_tokens=3, at_once=2)
    right, wrong = gate.run(names["plain"], subjects)
    assert opened == [*subjects, names["plain"]]
    assert (right.form, right.standing, wrong.standing) == ("teacher-forced", "passed", "failed")
    assert [row.subject_scored.violations for row in wrong.prompts if row.subject_scored] == [3] * 14
    found = {row["system"]: row["standing"] for row in gate_rows(tmp_path)}
    assert found == {subjects[0]: "passed", subjects[1]: "failed"}

    # Nothing is asked, and no verdict written, on a machine that isn't the profile's card.
    opened.clear()
    monkeypatch.setattr(lossless, "card_names", lambda *_: ["card"])
    elsewhere = replace(gate, plan=plan.model_copy(update={"hardware": "h100"}))
    with pytest.raises(EnvironmentFault, match="h100"):
        next(elsewhere.run(names["plain"], subjects))
    assert opened == []
