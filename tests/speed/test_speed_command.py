"""`paribus speed` and `paribus tune` as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from paribus.cli import main
from paribus.cli.speed import new_results
from paribus.conditions import UsageError
from paribus.speed.adhoc import is_local
from paribus.speed.summary import SpeedSummary
from paribus.wire import Endpoint
from scripted import DONE, Script, Step, content, finish, steps, usage, words


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps({"id": f"p{i}", "prompt": f"say {i}"}) + "\n" for i in range(4)))
    return path


def paribus(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


def speed(endpoint, out: Path, prompts: Path, *more: str) -> int:
    return paribus(
        "speed", "--base-url", endpoint.base_url, "--model", endpoint.model, "--out", str(out),
        "--prompts", str(prompts), "--warmup-prompts", str(prompts), *more,
    )  # fmt: skip


def test_it_measures_writes_its_files_and_shows_a_table(scripted, prompts, tmp_path, capsys):
    assert speed(scripted.endpoint("f20-n32-i2000"), tmp_path / "out", prompts) == 0
    shown = capsys.readouterr().out
    assert "4 of 4" in shown
    assert "output speed" in shown
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {"summary.json", "requests.parquet", "requests-lite.parquet", "conditions.json"}
    summary = SpeedSummary.model_validate_json((tmp_path / "out" / "summary.json").read_bytes())
    assert summary.tokens.total == 128
    assert summary.ttft_ms.p50 == pytest.approx(20, abs=5)


def test_json_is_the_summary_and_nothing_else(scripted, prompts, tmp_path, capsys):
    assert speed(scripted.endpoint("f5-n8-i500"), tmp_path / "out", prompts, "--json", "--concurrency", "2") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert printed["requests"]["ok"] == 4
    assert printed["concurrency_seen"] == 2


def test_more_requests_than_prompts_cycle_them_and_say_so(scripted, prompts, tmp_path, capsys):
    assert speed(scripted.endpoint("f5-n8-i500"), tmp_path / "out", prompts, "--requests", "10", "--warmup", "0") == 0
    assert "10 of 10" in (told := capsys.readouterr()).out
    assert "10 requests from 4 prompts: prompts come again" in told.err.replace("\n", " ")
    assert len(scripted.log("f5-n8-i500")) == 10


def test_one_prompt_is_no_prompts(scripted, tmp_path, capsys):
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "a", "prompt": "say"}\n')
    assert speed(scripted.endpoint("f5-n8-i500"), tmp_path / "out", path, "--requests", "3", "--warmup", "0") == 0
    assert "3 requests from 1 prompt: prompts come again" in capsys.readouterr().err.replace("\n", " ")


def test_a_prompt_of_two_minds_is_told_in_our_words(scripted, tmp_path, capsys):
    path = tmp_path / "both.jsonl"
    path.write_text('{"id": "a", "prompt": "say", "messages": []}\n')
    assert speed(scripted.endpoint("f5-n8"), tmp_path / "out", path) == 2
    told = capsys.readouterr().err
    assert "line 1: give either messages or prompt" in told
    assert "Value error" not in told


def test_warm_up_is_four_requests_or_one_for_each_at_once_unless_told(scripted, prompts, tmp_path):
    speed(scripted.endpoint("f5-n8-i500"), tmp_path / "a", prompts)
    assert len(scripted.log("f5-n8-i500")) == 4 + 4
    speed(scripted.endpoint("f5-n8-i600"), tmp_path / "b", prompts, "--concurrency", "6")
    assert len(scripted.log("f5-n8-i600")) == 6 + 4


def test_options_reach_the_server_and_sampling_only_when_given(scripted, prompts, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sesame")
    endpoint = scripted.endpoint("f5-n8-i500")
    more = ["--max-tokens", "7", "--temperature", "0.5", "--extra-body", '{"top_k": 3}', "--api-key-env", "MY_KEY"]
    assert speed(endpoint, tmp_path / "out", prompts, *more, "--warmup", "0") == 0
    seen = scripted.log(endpoint.model)[0]
    assert (seen.request["max_tokens"], seen.request["temperature"], seen.request["top_k"]) == (7, 0.5, 3)
    assert "top_p" not in seen.request
    assert seen.headers["authorization"] == "Bearer sesame"
    assert "sesame" not in (tmp_path / "out" / "conditions.json").read_text()


@pytest.mark.parametrize(("local", "told"), [(True, "usage_mismatch"), (False, "hidden_tokens")])
def test_more_usage_than_text_is_hidden_tokens_of_a_hosted_server_and_a_mismatch_of_ones_own(
    scripted, prompts, tmp_path, monkeypatch, local, told
):
    pieces = steps([content(word) for word in words(40)], first_ms=5, gap_ms=0.5)
    name = scripted.register("padded", Script((*pieces, Step(30, finish() + usage(256) + DONE))))
    monkeypatch.setattr("paribus.speed.adhoc.is_local", lambda endpoint: local)
    assert speed(scripted.endpoint(name), tmp_path / "out", prompts, "--warmup", "0") == 0
    summary = SpeedSummary.model_validate_json((tmp_path / "out" / "summary.json").read_bytes())
    assert {"usage_mismatch", "hidden_tokens"} & {flag.id for flag in summary.flags} == {told}


HOSTS = [
    ("http://127.0.0.1:8000/v1", True),
    ("http://[::1]:8000/v1", True),
    ("http://localhost:8000/v1", True),
    ("http://gpu-box:8000/v1", True),
    ("http://192.168.1.7/v1", True),
    ("http://10.0.0.1/v1", True),
    ("https://api.example.com/v1", False),
    ("http://8.8.8.8/v1", False),
    ("http://[2001:4860:4860::8888]/v1", False),
]


@pytest.mark.parametrize(("address", "local"), HOSTS)
def test_a_server_of_this_machine_or_network_is_local_and_any_other_hosted(address, local):
    assert is_local(Endpoint(address, "m")) == local


def test_completions_endpoints_too(scripted, prompts, tmp_path):
    assert speed(scripted.endpoint("f5-n8-i500"), tmp_path / "out", prompts, "--api", "completions") == 0


def test_nothing_is_overwritten(scripted, prompts, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "summary.json").write_text("mine")
    assert speed(scripted.endpoint("f5-n8"), out, prompts) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    assert (out / "summary.json").read_text() == "mine"
    assert scripted.log("f5-n8") == []


@pytest.mark.parametrize("inside", ["", "sub", "sub/sub"])
def test_a_file_is_no_folder(scripted, prompts, tmp_path, capsys, inside):
    (tmp_path / "notes").write_text("mine")
    assert speed(scripted.endpoint("f5-n8"), tmp_path / "notes" / inside, prompts) == 2
    assert "notes is a file: name a folder" in capsys.readouterr().err.replace("\n", " ")
    assert scripted.log("f5-n8") == []


def test_two_runs_never_write_into_one_folder(tmp_path):
    with new_results(tmp_path / "out"):
        with pytest.raises(UsageError, match="another `paribus speed` writes into"), new_results(tmp_path / "out"):
            pass
        (tmp_path / "out" / "summary.json").touch()
    with pytest.raises(UsageError, match="already holds summary"), new_results(tmp_path / "out"):
        pass


@pytest.mark.parametrize("module", ["numpy", "pyarrow", "bpe_openai"])
def test_a_package_that_reads_answers_and_is_missing_is_told_before_anything_is_sent(
    module, scripted, prompts, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)  # what Python itself takes for one that can't be imported
    endpoint = scripted.endpoint("f5-n8-i700")
    assert speed(endpoint, tmp_path / "out", prompts) == 3
    told = capsys.readouterr().err.replace("\n", " ")
    assert f"for want of {module.replace('_', '-')}: run `uv sync`" in told
    assert "Traceback" not in told
    assert scripted.log(endpoint.model) == []
    assert list((tmp_path / "out").iterdir()) == []


def test_when_nothing_succeeds_it_says_so_and_the_summary_is_there(scripted, prompts, tmp_path, capsys):
    scripted.register("broken", Script(status=503, content_type="application/json", framing="length"))
    assert speed(scripted.endpoint("broken"), tmp_path / "out", prompts, "--warmup", "1") == 1
    assert "no request was answered (http_503)" in capsys.readouterr().err
    summary = SpeedSummary.model_validate_json((tmp_path / "out" / "summary.json").read_bytes())
    assert (summary.requests.ok, summary.requests.failed) == (0, 4)
    assert "failures" in {f.id for f in summary.flags}


REFUSALS = [
    (401, '{"error": {"message": "bad key: %s"}}', ["(http_401)", "bad key: [the key]", "--api-key-env"]),
    (403, '{"error": {"message": "' + "x" * 195 + '%s"}}', ["(http_403)", "x[the"]),
    (404, '{"error": {"message": "model m not found"}}', ["(http_404)", "model m not found", "/v1"]),
    (500, '{"detail": "out of\\u001b[2J memory"}', ["(http_500)", "out of\ufffd[2J memory"]),
]


@pytest.mark.parametrize(("status", "body", "wanted"), REFUSALS)
def test_the_servers_own_words_are_told_and_no_key(
    scripted, prompts, tmp_path, capsys, monkeypatch, status, body, wanted
):
    """A wrong key, a wrong model and a broken server can be told apart without opening a file."""
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    body = body.replace("%s", "sk-secret").encode()
    scripted.register(
        f"r{status}", Script((Step(0, body),), status=status, content_type="application/json", framing="length")
    )
    endpoint, keyed = scripted.endpoint(f"r{status}"), ("--api-key-env", "SOME_KEY")
    assert speed(endpoint, tmp_path / "out", prompts, "--warmup", "1", *keyed) == 1
    told = capsys.readouterr().err.replace("\n", " ")
    assert [words for words in wanted if words not in told] == []
    assert "sk-" not in told, "nor a part of it"


NOBODY = SimpleNamespace(base_url="http://127.0.0.1:9/v1", model="m")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_server_that_is_not_there_is_told_at_once_and_takes_no_folder(more, scripted, prompts, tmp_path, capsys):
    assert speed(NOBODY, tmp_path / "out", prompts, *more) == 1
    told, shown = (text := capsys.readouterr()).err.replace("\n", " "), text.out
    assert "http://127.0.0.1:9/v1 (" in told
    assert "refused" in told.lower()
    assert "no request was answered (connect)" in told
    assert told.rstrip().endswith("nothing was written")
    assert shown == "", "no table of nothing"
    assert list((tmp_path / "out").iterdir()) == []
    assert speed(scripted.endpoint("f5-n8-i500"), tmp_path / "out", prompts, "--warmup", "0") == 0, "once it is there"


def test_a_server_that_answered_with_anything_has_its_answers_kept(scripted, prompts, tmp_path, capsys):
    scripted.register("mute", Script((Step(0, act="reset"),), status=200))
    assert speed(scripted.endpoint("mute"), tmp_path / "out", prompts, "--warmup", "0") == 1
    text = capsys.readouterr()
    assert "the raw answers are in requests.parquet" in text.err.replace("\n", " ")
    assert "output speed" not in text.out
    assert (tmp_path / "out" / "summary.json").exists()


ASKED = ["--base-url", "http://x/v1", "--model", "m", "--out", "x"]
WRONG = [
    (["--out", "x"], "--base-url"),
    (["--base-url", "ftp://x", "--model", "m", "--out", "x"], "must look like"),
    (["--base-url", "http://x/v1", "--model", "m", "--out", "x", "--prompts", "none.jsonl"], "can't read the prompts"),
    (["--base-url", "http://x/v1", "--model", "m", "--out", "x", "--extra-body", "{"], "not JSON"),
    (["--base-url", "http://x/v1", "--model", "m", "--out", "x", "--extra-body", "[1]"], "JSON object"),
    (["--base-url", "http://x/v1", "--model", "m", "--out", "x", "--api-key-env", "NO_SUCH"], "no API key"),
    (["--base-url", "http://x/v1", "--model", "m", "--out", "x", "--tokenizer", "none"], "no tokenizer"),
    (["--base-url", "http://x/v1", "--model", "m", "--out", "x", "--concurrency", "0"], "concurrency"),
    ([*ASKED, "--temperature", "nan"], "--temperature nan"),
    ([*ASKED, "--temperature", "inf"], "--temperature inf"),
    ([*ASKED, "--top-p", "nan"], "--top-p nan"),
    (["--base-url", "http://x/v1", "--model", "", "--out", "x"], "--model is empty"),
    ([*ASKED, "--extra-body", '{"messages": []}'], "'messages'"),
    ([*ASKED, "--extra-body", '{"stream": false}'], "'stream'"),
    ([*ASKED, "--extra-body", '{"model": "other"}'], "'model'"),
    ([*ASKED, "--extra-body", '{"max_tokens": 5}'], "use --max-tokens"),
    ([*ASKED, "--temperature", "1", "--extra-body", '{"temperature": 0}'], "use --temperature"),
    (["--job", "r-1", "--model", "m"], "leave out --model"),
    (["--job", "r-1", "--plan", "none.json"], "there is no plan"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_wrong_usage_is_one_sentence_and_nothing_is_written(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").symlink_to(Path(__file__).resolve().parents[2] / "tasks")
    assert paribus("speed", *arguments) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "x").exists()


def test_n_over_one_is_refused_before_anything_is_sent(scripted, prompts, tmp_path, capsys):
    assert speed(scripted.endpoint("f5-n8"), tmp_path / "out", prompts, "--extra-body", '{"n": 2}') == 2
    assert "n must be 1" in capsys.readouterr().err


def test_a_prompt_that_comes_back_is_refused_before_anything_is_sent(scripted, prompts, tmp_path, capsys):
    assert speed(scripted.endpoint("f5-n8"), tmp_path / "out", prompts, "--extra-body", '{"echo": true}') == 2
    assert "echo is refused" in capsys.readouterr().err
    assert scripted.log("f5-n8") == []


@pytest.mark.parametrize(
    ("extra", "found"),
    [
        ('{"ignore_eos": true, "min_tokens": 60}', "requests set ignore_eos, min_tokens"),
        ('{"nvext": {"ignore_eos": true}}', "requests set ignore_eos"),
        ('{"logit_bias": {"2": -100}}', "requests set logit_bias"),
        ('{"logit_bias": {}, "ignore_eos": false, "min_tokens": 0, "min_p": 0.1, "top_k": 3}', None),
    ],
)
def test_text_that_may_not_end_is_synthetic(extra, found, scripted, prompts, tmp_path):
    assert speed(scripted.endpoint("f5-n8-i500"), tmp_path / "out", prompts, "--extra-body", extra) == 0
    summary = SpeedSummary.model_validate_json((tmp_path / "out" / "summary.json").read_bytes())
    told = {flag.id: (flag.severity, flag.text) for flag in summary.flags}.get("synthetic")
    assert told == (("invalid", f"Synthetic load, not natural text: {found}.") if found else None)


def test_two_prompts_of_one_name_are_refused(scripted, tmp_path, capsys):
    path = tmp_path / "twice.jsonl"
    path.write_text('{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}\n')
    assert speed(scripted.endpoint("f5-n8"), tmp_path / "out", path) == 2
    assert "comes twice" in capsys.readouterr().err


def test_checks_ride_along(scripted, tmp_path):
    path = tmp_path / "checked.jsonl"
    check = {"kind": "number", "parameters": {"value": 4}}
    from paribus.speed.checks import CHECKERS

    if "number" not in CHECKERS:
        pytest.skip("there is no number check")
    path.write_text(json.dumps({"id": "sum", "prompt": "2 + 2?", "check": check}) + "\n")
    from scripted import DONE, Step, content, finish, usage

    said = content("It is 4.") + finish() + usage(5) + DONE
    scripted.register("adds", Script((Step(5, said, 5),)))
    assert speed(scripted.endpoint("adds"), tmp_path / "out", path, "--warmup", "0") == 0
    summary = SpeedSummary.model_validate_json((tmp_path / "out" / "summary.json").read_bytes())
    assert (summary.requests.checked, summary.requests.check_passed) == (1, 1)


def test_the_cap_may_go_by_another_name(scripted, prompts, tmp_path):
    endpoint = scripted.endpoint("f5-n8-i500")
    renamed = '{"max_tokens": null, "max_completion_tokens": 9}'
    more = ("--warmup", "0", "--max-tokens", "9")
    assert speed(endpoint, tmp_path / "out", prompts, "--extra-body", renamed, *more) == 0
    assert scripted.log(endpoint.model)[0].request["max_completion_tokens"] == 9


@pytest.mark.parametrize("extra", ['{"max_completion_tokens": 9}', '{"max_tokens": null, "n_predict": 5}'])
def test_a_cap_that_the_report_would_not_know_is_refused(extra, scripted, prompts, tmp_path, capsys):
    asked = ("--extra-body", extra, "--max-tokens", "9")
    assert speed(scripted.endpoint("f5-n8"), tmp_path / "out", prompts, *asked) == 2
    assert "another cap than is reported" in capsys.readouterr().err
    assert scripted.log("f5-n8") == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_has_ended_and_exits_130(how, scripted, prompts, tmp_path):
    endpoint, out = scripted.endpoint("f5-n40-i5000"), tmp_path / "out"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from paribus.cli import main; main()",
            "speed",
            "--base-url",
            endpoint.base_url,
            "--model",
            endpoint.model,
            "--out",
            str(out),
            "--prompts",
            str(prompts),
            "--requests",
            "5000",
            "--warmup",
            "0",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"COLUMNS": "100"},
    )
    deadline = time.monotonic() + 60
    while len(scripted.log(endpoint.model)) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(how)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert b"Traceback" not in told
    summary = SpeedSummary.model_validate_json((out / "summary.json").read_bytes())
    assert summary.requests.ok >= 2
    assert summary.requests.failed == 0


def test_help_has_examples(capsys):
    assert paribus("speed", "--help") == 0
    assert "paribus speed --base-url http://127.0.0.1:8000/v1 --model my-model --out" in capsys.readouterr().out
    assert paribus("tune", "--help") == 0
    assert "race.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "said"), [(">&-", "standard output is closed"), (">/dev/full", "can't write what there is to say")]
)
def test_figures_that_reach_nobody_are_no_success(where, said, scripted, prompts, tmp_path):
    endpoint = scripted.endpoint("f5-n8-i500")
    more = ["--base-url", endpoint.base_url, "--model", endpoint.model, "--out", str(tmp_path / "out"), "--json"]
    line = [sys.executable, "-c", "from paribus.cli import main; main()", "speed", "--prompts", str(prompts), *more]
    ended = subprocess.run(
        ["sh", "-c", f'"$@" {where}', "sh", *line, "--warmup", "0"],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (3, False)
    assert said in ended.stderr
