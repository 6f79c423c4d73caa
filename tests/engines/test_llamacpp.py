"""The adapter of llama.cpp: its command, its counters, what it reads back; golden, from recorded pages."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.catalog import Catalog, Decoder, ModelFile, System
from paribus.conditions import EnvironmentFault, SystemName, UsageError
from paribus.engines import Engine, Launch, Running, engine, engines
from paribus.engines.counters import grown, parse_metrics

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)

METRICS = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 205
llamacpp:prompt_tokens_cached_total 0
llamacpp:tokens_predicted_total 304
llamacpp:n_decode_total 56
llamacpp:spec_decode_num_draft_tokens_total 273
llamacpp:spec_decode_num_accepted_tokens_total 248
llamacpp:spec_decode_num_drafts_total 35
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 35
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 33
llamacpp:requests_processing 3
llamacpp:requests_deferred 1
"""
"""Recorded from xllamacpp 2026.10.11549 (two requests with ngram-simple), shortened."""


def launch_of(system: System, slots: int = 16, drafter: Path | None = None, **settings) -> Launch:
    return Launch(
        root=Path("/repo"),
        python=Path("/env/bin/python"),
        system=system,
        weights=Path("/w/m.gguf"),
        settings={**system.use.launch, "threads": 2, **settings},
        slots=slots,
        port=8123,
        drafter=drafter,
    )


def wanted(system: System, slots: int = 16, drafter: Path | None = None, **settings) -> dict:
    command = engine("llamacpp").command(launch_of(system, slots, drafter, **settings))
    assert command[:3] == ["/env/bin/python", "-u", "/repo/envs/llamacpp/serve.py"]
    return json.loads(command[3])


def system_with(decoder: Decoder) -> System:
    model = CATALOG.models["smollm2-135m"]
    use = model.engines["llamacpp"].model_copy(update={"decoders": {"x": decoder}})
    changed: ModelFile = model.model_copy(update={"engines": {"llamacpp": use}})
    return System(changed, SystemName(model.model, use.precisions[0], "llamacpp", "x"))


def test_the_command_of_plain_decoding():
    assert wanted(CATALOG.system("smollm2-135m--q4-1--llamacpp--plain")) == {
        "model": "/w/m.gguf",
        "alias": "smollm2-135m",
        "host": "127.0.0.1",
        "port": 8123,
        "slots": 16,
        "context_per_slot": 4096,
        "threads": 2,
        "batch": 2048,
        "ubatch": 512,
        "poll": 0,
        "kv_unified": False,
        "cache_prompt": False,
        "options": {},
        "sampling": {
            "temp": 1.0,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "presence_penalty": 0.0,
            "repeat_penalty": 1.0,
        },
        "speculative": {},
    }


PROGRAM = """\
/usr/bin/llama-server --model /w/m.gguf --alias smollm2-135m --host 127.0.0.1 --port 8123 --parallel 16
--ctx-size 65536 --threads 2 --batch-size 2048 --ubatch-size 512 --poll 0 --cache-ram 0 --fit off --log-colors off
--temp 1.0 --top-p 1.0 --top-k 0 --min-p 0.0 --presence-penalty 0.0 --repeat-penalty 1.0
--no-kv-unified --no-cache-prompt --metrics --no-webui --offline"""


def flags(system: System, **more) -> str:
    launch = replace(launch_of(system, **more), how="binary", program=Path("/usr/bin/llama-server"))
    return " ".join(engine("llamacpp").command(launch))


def test_a_program_on_the_path_is_told_the_same_in_flags():
    plain = CATALOG.system("smollm2-135m--q4-1--llamacpp--plain")
    golden = PROGRAM.replace("\n", " ")
    assert flags(plain) == golden
    assert flags(plain, prefix_caching=True) == golden.replace("--no-cache-prompt", "--cache-prompt")
    card = flags(plain, n_gpu_layers=99, flash_attn="on", cache_type_k="q8_0")
    assert "--n-gpu-layers 99 --flash-attn on --cache-type-k q8_0 --temp 1.0" in card


@pytest.mark.parametrize(
    ("decoder", "drafter", "said"),
    [
        (
            {"method": "ngram", "parameters": {"type": "ngram-map-k4v", "size_n": 4, "size_m": 8, "min_hits": 2}},
            None,
            "--spec-type ngram-map-k4v --spec-ngram-map-k4v-size-n 4 --spec-ngram-map-k4v-size-m 8 "
            "--spec-ngram-map-k4v-min-hits 2",
        ),
        (
            {"method": "ngram", "parameters": {"type": "ngram-mod", "n_match": 24, "n_min": 48, "n_max": 64}},
            None,
            "--spec-type ngram-mod --spec-ngram-mod-n-match 24 --spec-ngram-mod-n-min 48 --spec-ngram-mod-n-max 64",
        ),
        ({"method": "ngram", "parameters": {"type": "ngram-cache"}}, None, "--spec-type ngram-cache"),
        (
            {"method": "draft", "parameters": {"n_max": 8}},
            None,
            "--spec-type draft-simple --spec-draft-n-max 8 --spec-draft-model /w/m.gguf",
        ),
        ({"method": "mtp", "parameters": {"n_max": 3}}, None, "--spec-type draft-mtp --spec-draft-n-max 3"),
        (
            {"method": "mtp", "parameters": {"n_max": 3, "p_min": 0.5}},
            "/w/mtp.gguf",
            "--spec-type draft-mtp --spec-draft-n-max 3 --spec-draft-p-min 0.5 --spec-draft-model /w/mtp.gguf",
        ),
        (
            {"method": "eagle3", "acceptance": "rejection", "parameters": {"n_min": 1, "sampling": "probabilistic"}},
            "/w/e.gguf",
            "--spec-type draft-eagle3 --spec-draft-n-min 1 --spec-draft-sampling probabilistic "
            "--spec-draft-model /w/e.gguf",
        ),
        (
            {"method": "dflash", "parameters": {"n_max": 3, "p_split": 0.1}},
            "/w/d.gguf",
            "--spec-type draft-dflash --spec-draft-n-max 3 --spec-draft-p-split 0.1 --spec-draft-model /w/d.gguf",
        ),
    ],
)
def test_every_way_of_drafting_has_its_flags_and_its_parameters(decoder, drafter, said):
    system = system_with(Decoder(**{"acceptance": "strict", **decoder}))
    assert flags(system, drafter=drafter and Path(drafter)).endswith(f"--offline {said}")
    spoken = wanted(system, drafter=drafter and Path(drafter))["speculative"]
    kind = spoken.pop("type")
    assert spoken.pop("drafter", None) == (drafter or ("/w/m.gguf" if decoder["method"] == "draft" else None))
    assert f"--spec-type {kind}" in said
    assert spoken == {k: v for k, v in decoder["parameters"].items() if k != "type"}


def test_a_gguf_file_of_a_hub_repository_is_the_model_both_ways(tmp_path):
    file = tmp_path / "files" / "model-Q4_K_M.gguf"
    launch = replace(launch_of(CATALOG.system("smollm2-135m--q4-1--llamacpp--plain")), weights=file)
    assert json.loads(engine("llamacpp").command(launch)[3])["model"] == str(file)
    binary = engine("llamacpp").command(replace(launch, how="binary", program=Path("llama-server")))
    assert binary[:3] == ["llama-server", "--model", str(file)]


def test_every_system_of_the_catalog_that_is_raced_has_a_command():
    systems = [s for s in CATALOG.systems.values() if s.name.engine == "llamacpp" and not s.decoder.not_tried]
    systems = [s for s in systems if s.unsupported_on() is None]
    assert len(systems) >= 4
    for system in systems:
        spoken = wanted(system, drafter=Path("/w/d.gguf") if system.drafter else None)["speculative"]
        assert dict(system.decoder.parameters).items() <= spoken.items()
        assert bool(spoken) == (system.decoder.method != "plain")


def test_prefix_caching_is_what_the_measure_says():
    system = CATALOG.system("smollm2-135m--q4-1--llamacpp--plain")
    assert wanted(system, prefix_caching=True)["cache_prompt"] is True
    assert wanted(system)["cache_prompt"] is False


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        (Decoder(method="suffix"), "the catalog says suffix without a type"),
        (Decoder(method="ngram"), "the catalog says ngram without a type"),
        (Decoder(method="eagle3", acceptance="strict"), r"eagle3 needs the weights of a draft model \(`drafter`\)"),
        (Decoder(method="draft", acceptance="rejection"), "greedy drafts are checked by strict acceptance, and the"),
        (Decoder(method="mtp", acceptance="strict", parameters={"draft_max": 4}), "parameter of mtp draft_max; known"),
        (
            Decoder(method="draft", acceptance="strict", parameters={"sampling": "lucky"}),
            "sampling of drafts is greedy or probabilistic, not 'lucky'",
        ),
        (Decoder(method="draft", acceptance="synthetic"), "the catalog says synthetic"),
        (Decoder(method="ngram", parameters={"type": "ngram-odd"}), "the catalog says ngram ngram-odd"),
        (Decoder(method="ngram", parameters={"type": "ngram-cache", "draft_max": 4}), "draft_max; known: type"),
        (
            Decoder(method="ngram", parameters={"type": "ngram-mod", "size_n": 4}),
            "size_n; known: n_match, n_max, n_min",
        ),
        (Decoder(method="plain", parameters={"size_n": 4}), "no parameter of plain decoding size_n"),
        (Decoder(method="plain", lossy={"steps": 4}), "no lossy decoding settings"),
    ],
)
def test_what_the_engine_cannot_do_is_refused_in_words(decoder, said):
    with pytest.raises(UsageError, match=said):
        wanted(system_with(decoder))


def test_counters_and_gauges_have_our_names():
    adapter = engine("llamacpp")
    assert adapter.counters(METRICS) == {
        "prompt_tokens": 205,
        "cached_prompt_tokens": 0,
        "generated_tokens": 304,
        "draft_tokens": 273,
        "accepted_tokens": 248,
        "drafts": 35,
    }
    assert adapter.gauges(METRICS) == {"running": 3, "waiting": 1}


def test_an_endpoint_is_read_with_every_engines_names():
    page = 'vllm:num_requests_running{model_name="m"} 2.0\nvllm:generation_tokens_total{model_name="m"} 7.0\n'
    assert engine("endpoint").gauges(page) == {"running": 2.0}
    assert engine("endpoint").counters(page + METRICS)["accepted_tokens"] == 248


def test_labels_add_up_and_what_is_no_sample_is_passed_over():
    page = 'a_total{x="1"} 2\na_total{x="2 }"} 3 1700000000\n# a_total 9\nb NaN\nc +Inf\nnonsense\nd 1e3\n'
    assert parse_metrics(page) == {"a_total": 5.0, "d": 1000.0}


@given(st.text(max_size=400))
def test_any_page_is_read_without_an_error(text):
    assert all(isinstance(value, float) for value in parse_metrics(text).values())


@given(st.dictionaries(st.from_regex(r"[a-z_:]{1,12}", fullmatch=True), st.floats(-1e12, 1e12), max_size=8))
def test_a_written_page_reads_back(values):
    page = "".join(f"# TYPE {name} counter\n{name} {value!r}\n" for name, value in values.items())
    assert parse_metrics(page) == values


def test_counters_that_went_back_mean_a_restarted_server():
    assert grown({"a": 1.0, "gone": 2.0}, {"a": 4.0, "new": 9.0}) == {"a": 3.0}
    with pytest.raises(ValueError, match=r"went back \(a\)"):
        grown({"a": 4.0}, {"a": 3.0})


def test_every_engine_is_found_and_whole():
    assert {"llamacpp", "endpoint"} <= engines().keys()
    assert all(isinstance(each, Engine) for each in engines().values())
    with pytest.raises(UsageError, match="no adapter for the engine 'vllmm'; known: endpoint, hosted, llamacpp, mlx"):
        engine("vllmm")


QWEN = "qwen3.6-35b-a3b--q4-k-m--llamacpp--plain"


def test_a_cards_penalty_is_sent_and_what_the_program_calls_otherwise_is_not():
    """Its `repetition_penalty` does nothing: llama.cpp's own word is `repeat_penalty`."""
    fields = engine("llamacpp").sampling_fields(CATALOG.system(QWEN))
    assert CATALOG.system(QWEN).sampling.fields().keys() <= fields
    assert "repetition_penalty" not in fields


@pytest.mark.parametrize("name", sorted(s for s in CATALOG.systems if "--llamacpp" in s))
def test_what_a_card_leaves_out_has_no_effect_whatever_the_model(name):
    system = CATALOG.system(name)
    if system.unsupported_on() is not None:
        pytest.skip("it can't run")
    neutral = {"temp": 1, "top_p": 1, "top_k": 0, "min_p": 0, "presence_penalty": 0, "repeat_penalty": 1}
    assert wanted(system, drafter=Path("/w/d.gguf") if system.drafter else None)["sampling"] == neutral
    with pytest.raises(UsageError, match="llamacpp knows no launch setting min_p"):
        wanted(system, min_p=0.05)


def read_back(monkeypatch, **params):
    """What the adapter makes of a server with this sampling of its own."""
    props = {"total_slots": 1, "default_generation_settings": {"n_ctx": 512, "params": params}}
    monkeypatch.setattr("paribus.engines.adapters.llamacpp.ask_json", lambda *_: props)
    launch = launch_of(CATALOG.system("smollm2-135m--q4-1--llamacpp--plain"))
    return engine("llamacpp").observe(Running("http://127.0.0.1:1", "xllamacpp 1.2\n", launch))["sampling_defaults"]


def test_a_server_that_samples_by_itself_after_all_is_not_measured(monkeypatch):
    """`general.sampling.*` in a weights' file sets what nobody set by hand."""
    told = {"temperature": 1.0, "top_k": 0, "min_p": 0.0, "repeat_last_n": 64}
    assert read_back(monkeypatch, **told, seed=1) == told
    with pytest.raises(EnvironmentFault, match=r"has sampling of its own \(top_k 64, min_p 0.05\) where a request"):
        read_back(monkeypatch, **{**told, "top_k": 64, "min_p": 0.05000000074505806})


def test_an_endpoint_is_never_started():
    system = CATALOG.system("smollm2-135m--q4-1--llamacpp--plain")
    launch = Launch(ROOT, ROOT, system, ROOT, {}, 1, 1)
    with pytest.raises(UsageError, match="paribus speed --base-url"):
        engine("endpoint").command(launch)


def test_the_version_names_llama_cpps_build_only_where_it_knows_it(monkeypatch):
    said = []
    launch = Launch(ROOT, ROOT, CATALOG.system("smollm2-135m--q4-1--llamacpp--plain"), ROOT, {}, 1, 1)
    for wheel, build in (
        ("xllamacpp 2026.1.2\n", "b10549-1a2b3c"),
        ("xllamacpp 2026.1.2\n", "b0-unknown"),
        ("xllamacpp 2026.1.2\n", ""),
        ("", "b10549-1a2b3c"),
        ("", "b0-unknown"),
    ):
        params = {"temperature": 1.0, "speculative.types": "none"}
        props = {"total_slots": 2, "build_info": build, "default_generation_settings": {"n_ctx": 512, "params": params}}
        monkeypatch.setattr("paribus.engines.adapters.llamacpp.ask_json", lambda *_, page=props: page)
        running = Running("http://127.0.0.1:1", wheel, launch)
        said.append(engine("llamacpp").observe(running))
    assert [each["engine_version"] for each in said] == [
        "xllamacpp 2026.1.2 (llama.cpp build b10549-1a2b3c)",
        "xllamacpp 2026.1.2",
        "xllamacpp 2026.1.2",
        "llama.cpp b10549-1a2b3c",
        "llama.cpp not stated",
    ]
    assert all("speculation" not in each for each in said), "a request's default is not what the server runs with"


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (3, 2), (16, 15)])
def test_a_core_is_left_to_the_load_generator_where_there_are_more_than_two(monkeypatch, cores, threads):
    monkeypatch.setattr("paribus.engines.adapters.llamacpp.usable_cores", lambda: cores)
    plain = CATALOG.system("smollm2-135m--q4-1--llamacpp--plain")
    assert wanted(plain, threads=0)["threads"] == threads


@pytest.mark.parametrize(("layers", "number"), [("auto", -1), ("all", -2), (99, 99)])
def test_the_launcher_sets_the_layers_on_the_card_as_the_programs_flag_does(monkeypatch, layers, number):
    """common/arg.cpp: `--n-gpu-layers` takes a number, `auto` (-1) or `all` (-2)."""
    monkeypatch.setitem(sys.modules, "xllamacpp", ModuleType("xllamacpp"))
    spec = importlib.util.spec_from_file_location("serve_of_llamacpp", ROOT / "envs" / "llamacpp" / "serve.py")
    launcher = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(launcher)
    plain = CATALOG.system("smollm2-135m--q4-1--llamacpp--plain")
    params = SimpleNamespace()
    launcher.options(params, wanted(plain, n_gpu_layers=layers)["options"])
    assert params.n_gpu_layers == number
    assert f"--n-gpu-layers {layers} " in flags(plain, n_gpu_layers=layers)
