"""The HTTP side of the Transformers server, with a stand-in for its model: no torch, no weights."""

import http.client
import json
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.wire import Client, Endpoint, read_answer
from paribus.wire import run as run_client

SOURCE = Path(__file__).parents[2] / "envs" / "transformers"
sys.path.insert(0, str(SOURCE))

from serving import asked as requests  # noqa: E402
from serving.asked import Prompt  # noqa: E402
from serving.meters import COUNTERS, Meters  # noqa: E402
from serving.run import Halt, Run  # noqa: E402
from serving.settings import Settings, Unfit, code_hash  # noqa: E402
from serving.text import Decoder, Piece, StopStrings, Teller  # noqa: E402
from serving.web import Handler, Server  # noqa: E402

FIELDS = frozenset({"temperature", "seed"})
END = 0
TEXT = b"One two three four five six seven eight nine ten."


def decode(tokens):
    """One token a byte, as byte-level tokenizers have it at worst."""
    return bytes(tokens).decode(errors="replace")


def teller(stops=(), marks=None, thinks=False):
    return Teller(decode, stops, marks, thinks)


class Model:
    """Writes TEXT in blocks of eight tokens, then ends; what it does on the way can be changed."""

    def __init__(self, blocks=None, marks=None):
        self.settings = SimpleNamespace(alias="tiny", context=4096)
        self.family = SimpleNamespace(fields=FIELDS)
        self.meters = Meters(frozenset(COUNTERS))
        self.blocks = blocks or [[*TEXT[i : i + 8]] for i in range(0, len(TEXT), 8)] + [[END] * 8]
        self.marks = marks
        self.each = lambda: None
        self.given_up = threading.Event()
        self.began = []

    def render(self, asked):
        if asked.messages and asked.messages[0]["content"] == "broken":
            raise RuntimeError("the template is broken")
        return json.dumps(asked.messages or asked.prompt)

    def prompt(self, asked):
        tokens = list(self.render(asked).encode())
        return Prompt(tokens, asked.most or 100)

    def properties(self):
        return {"server": "stand-in", "admitted": 1}

    def answer(self, asked, prompt, tell, gone):
        self.meters.add(requests=1, prompt_tokens=len(prompt.tokens))
        self.began.append(asked.messages[0]["content"] if asked.messages else asked.prompt)
        run = Run(
            prompt=prompt.tokens, most=prompt.room, sampling=asked.sampling, ends=frozenset({END}),
            teller=teller(asked.stops, self.marks), meters=self.meters, tell=tell, gone=gone,
        )  # fmt: skip
        try:
            for block in self.blocks:
                self.each()
                run.passed(denoising=3)
                run.commit(block, canvas=True)
            run.end()
        except Halt:
            if run.finish is None:
                self.given_up.set()
        return run


@pytest.fixture
def serve():
    """Starts servers; returns their ports."""
    servers = []

    def start(model=None):
        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        if model is not None:
            server.open(model)
        return server.server_port

    yield start
    for server in servers:
        if server.desk is not None:
            server.desk.stop(5)
        server.shutdown()
        server.server_close()


def call(port, path, body=None, raw=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
    connection.request("POST" if data is not None else "GET", path, data, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def chat(**more):
    return {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100, **more}


def events(text):
    return [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]


def test_a_chat_is_answered_whole(serve):
    status, text = call(serve(Model()), "/v1/chat/completions", chat())
    answer = json.loads(text)
    assert status == 200
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": TEXT.decode()}
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == len(TEXT) + 1
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}


def test_a_stream_has_one_piece_a_block_with_the_tokens_so_far(serve):
    _, text = call(serve(Model()), "/v1/chat/completions", chat(stream=True, stream_options={"include_usage": True}))
    said = events(text)
    assert said[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    pieces = [e for e in said if e["choices"] and e["choices"][0]["delta"].get("content")]
    assert [p["choices"][0]["delta"]["content"] for p in pieces][:2] == ["One two ", "three fo"]
    assert [p["usage"]["completion_tokens"] for p in pieces] == [8, 16, 24, 32, 40, 48, 49]
    assert said[-2]["choices"][0]["finish_reason"] == "stop"
    assert said[-1]["choices"] == []
    assert said[-1]["usage"]["completion_tokens"] == len(TEXT) + 1
    assert text.endswith("data: [DONE]\n\n")


def test_without_include_usage_a_stream_carries_none(serve):
    _, text = call(serve(Model()), "/v1/chat/completions", chat(stream=True))
    assert all("usage" not in event for event in events(text))


def test_our_own_client_reads_block_by_block(serve):
    port = serve(Model())

    async def ask():
        endpoint = Endpoint(base_url=f"http://127.0.0.1:{port}/v1", model="tiny")
        async with Client(endpoint) as client:
            body = json.dumps(chat(stream=True, stream_options={"include_usage": True})).encode()
            return await client.send(body, index=0, prompt_id="p", due_ns=0, phase="measured")

    answer = read_answer(run_client(ask()))
    assert answer.error is None
    assert answer.text == TEXT.decode()
    assert [piece.tokens for piece in answer.pieces] == [8, 16, 24, 32, 40, 48, 49]
    assert answer.usage.completion_tokens == 50
    assert answer.done


def test_a_cap_inside_a_block_cuts_the_answer_and_not_the_counters(serve):
    model = Model()
    _, text = call(serve(model), "/v1/chat/completions", chat(max_tokens=10))
    answer = json.loads(text)
    assert answer["choices"][0]["message"]["content"] == "One two th"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 10
    assert model.meters.value("generated_tokens") == 10
    assert model.meters.value("committed_tokens") == 16
    assert model.meters.value("denoising_steps") == 6
    assert model.meters.value("canvases") == 2


def test_what_comes_after_the_end_of_the_sequence_is_no_answer(serve):
    model = Model(blocks=[[*b"Yes.", END, *b"No."]])
    _, text = call(serve(model), "/v1/completions", {"prompt": "Well?"})
    answer = json.loads(text)
    assert (answer["choices"][0]["text"], answer["object"]) == ("Yes.", "text_completion")
    assert answer["usage"]["completion_tokens"] == 5
    assert model.meters.value("committed_tokens") == 5


def test_a_stop_string_over_two_blocks_ends_the_answer_before_it(serve):
    _, text = call(serve(Model()), "/v1/chat/completions", chat(stop=["two three"]))
    answer = json.loads(text)
    assert answer["choices"][0]["message"]["content"] == "One "
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_thinking_is_told_apart_from_the_answer(serve):
    model = Model(blocks=[[1, *b"Hmm.", 2, *b"So: 4", END]], marks=(1, 2))
    _, text = call(serve(model), "/v1/chat/completions", chat())
    assert json.loads(text)["choices"][0]["message"] == {
        "role": "assistant", "content": "So: 4", "reasoning_content": "Hmm.",
    }  # fmt: skip


def test_the_pages(serve):
    model = Model()
    port = serve(model)
    assert call(port, "/health") == (200, '{"status": "ok"}')
    assert json.loads(call(port, "/v1/models")[1])["data"][0]["id"] == "tiny"
    assert json.loads(call(port, "/props")[1])["admitted"] == 1
    assert call(port, "/nothing")[0] == 404
    assert call(port, "/v1/nothing", {})[0] == 404
    template = call(port, "/apply-template", {"messages": [{"role": "user", "content": "hello"}]})
    assert json.loads(template[1])["prompt"] == '[{"role": "user", "content": "hello"}]'
    call(port, "/v1/chat/completions", chat())
    page = call(port, "/metrics")[1]
    assert "# TYPE paribus_generated_tokens_total counter\nparibus_generated_tokens_total 50\n" in page
    assert "\nparibus_requests_running 0\n" in page


def test_while_it_loads_the_server_says_so(serve):
    port = serve()
    assert call(port, "/health")[0] == 503
    assert call(port, "/v1/chat/completions", chat())[0] == 503


def test_requests_take_turns_in_the_order_they_came(serve):
    model, hold = Model(), threading.Event()
    model.each = lambda: hold.wait(10)
    port = serve(model)

    def ask(name):
        call(port, "/v1/chat/completions", chat(messages=[{"role": "user", "content": str(name)}]))

    threads = []
    for name in range(3):
        threads.append(threading.Thread(target=ask, args=(name,)))
        threads[-1].start()
        until = time.monotonic() + 10
        while model.meters.value("requests_running") + model.meters.value("requests_waiting") <= name:
            assert time.monotonic() < until
            time.sleep(0.005)
    assert (model.meters.value("requests_running"), model.meters.value("requests_waiting")) == (1, 2)
    hold.set()
    for thread in threads:
        thread.join(20)
    assert model.began == ["0", "1", "2"]
    assert (model.meters.value("requests_running"), model.meters.value("requests_waiting")) == (0, 0)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_ends_its_answer_and_the_next_one_is_served(serve, stream):
    model, hold = Model(), threading.Event()
    model.each = lambda: hold.wait(10)
    port = serve(model)
    body = json.dumps(chat(stream=stream)).encode()
    with socket.create_connection(("127.0.0.1", port)) as caller:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        caller.sendall(head.encode() + body)
        until = time.monotonic() + 10
        while not model.meters.value("requests_running"):
            assert time.monotonic() < until
            time.sleep(0.005)
    time.sleep(0.5)  # the server looks at a waiting connection five times a second
    hold.set()
    assert model.given_up.wait(10)
    assert call(port, "/v1/chat/completions", chat())[0] == 200


def test_a_fault_while_answering_is_told_and_the_server_goes_on(serve, capsys):
    model = Model()

    def burst():
        raise RuntimeError("out of memory")

    model.each = burst
    port = serve(model)
    status, text = call(port, "/v1/chat/completions", chat())
    assert (status, json.loads(text)["error"]["message"]) == (500, "RuntimeError: out of memory")
    said = events(call(port, "/v1/chat/completions", chat(stream=True))[1])
    assert said[-1]["error"]["message"] == "RuntimeError: out of memory"
    model.each = lambda: None
    assert call(port, "/v1/chat/completions", chat())[0] == 200
    assert call(port, "/v1/chat/completions", chat(messages=[{"role": "user", "content": "broken"}]))[0] == 500
    assert "out of memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"top_k": 5}, "doesn't know, for this model: top_k"),
        ({"temperature": "hot"}, "temperature must be a number from 0 to 100, not 'hot'"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1"),
        ({"n": 2}, "doesn't know, for this model: n"),
        ({"logprobs": True}, "logprobs"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": []}, "messages must be a list of objects"),
        ({"messages": "hello"}, "messages must be a list of objects"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "takes no images or sound"),
        ({"stop": [1]}, "stop must be a text or a list"),
        ({"stream": "yes"}, "stream must be true or false"),
        ({"chat_template_kwargs": 1}, "chat_template_kwargs must be an object"),
    ],
)
def test_what_it_cannot_do_is_refused_with_400(serve, more, said):
    status, text = call(serve(Model()), "/v1/chat/completions", chat(**more))
    assert status == 400
    assert said in json.loads(text)["error"]["message"]


def test_neutral_and_silent_fields_are_fine(serve):
    more = {"n": 1, "presence_penalty": 0.0, "logprobs": False, "user": "me", "top_k": None, "seed": 3}
    assert call(serve(Model()), "/v1/chat/completions", chat(**more))[0] == 200


def test_broken_bodies_are_refused_and_never_hang(serve):
    port = serve(Model())
    assert call(port, "/v1/chat/completions", raw=b"{")[0] == 400
    assert call(port, "/v1/chat/completions", raw=b"[]")[0] == 400
    with socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        caller.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"400" in caller.recv(100)


@given(st.lists(st.binary(max_size=6), max_size=30), st.text(max_size=20))
def test_pieces_add_up_to_the_text(cuts, text):
    whole = b"".join(cuts) + text.encode()
    decoder, told = Decoder(decode), ""
    for cut in cuts:
        told += decoder.feed(list(cut))
    told += decoder.feed(list(text.encode()), last=True)
    assert told.count("\N{REPLACEMENT CHARACTER}") <= decode(list(whole)).count("\N{REPLACEMENT CHARACTER}")
    if all(not cut or cut.isascii() for cut in cuts):
        assert told == decode(list(whole))


@given(st.text(min_size=1, max_size=30), st.integers(1, 7))
def test_no_character_is_ever_told_in_halves(text, size):
    data = list(text.encode())
    decoder = Decoder(decode)
    pieces = [decoder.feed(data[i : i + size]) for i in range(0, len(data), size)]
    assert "".join(pieces) + decoder.feed([], last=True) == text


@given(st.text("ab", max_size=20), st.lists(st.integers(1, 5), max_size=12), st.text("ab", min_size=1, max_size=3))
def test_stop_strings_are_found_wherever_the_text_is_cut(text, cuts, stop):
    watch, told, at = StopStrings([stop]), "", 0
    for cut in cuts:
        told += watch.feed(text[at : at + cut])
        at += cut
    told += watch.feed(text[at:], last=True)
    assert told == text.split(stop)[0]
    assert watch.hit == (stop in text)


def test_an_answer_may_begin_inside_thinking():
    inside = teller(marks=(1, 2), thinks=True)
    assert inside.feed([*b"Hmm"]) == Piece(reasoning="Hmm")
    assert inside.feed([2, *b"Yes"], last=True) == Piece(text="Yes")


def test_settings_are_checked():
    assert Settings.read('{"model": "m", "alias": "a", "port": 1}').trust_remote_code is False
    for text, said in (
        ("{", "no JSON"),
        ("[]", "must be a JSON object"),
        ('{"model": "m", "alias": "a", "port": 1, "colour": 2}', "unknown settings: colour"),
        ('{"model": "m"}', "incomplete"),
        ('{"model": "m", "alias": "a", "port": 1, "reasoning": ["<think>"]}', "reasoning needs two tokens"),
    ):
        with pytest.raises(Unfit, match=said):
            Settings.read(text)


def test_the_servers_own_source_is_a_version():
    assert code_hash() == code_hash()
    assert len(code_hash()) == 12


def test_asked_keeps_what_was_given():
    body = chat(tools=[{"type": "function"}], chat_template_kwargs={"enable_thinking": True}, stop="x", temperature=0)
    asked = requests.read(body, chat=True, fields=FIELDS)
    assert asked.template == {"enable_thinking": True}
    assert (asked.sampling, asked.stops, asked.most, asked.chat) == ({"temperature": 0}, ("x",), 100, True)
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert requests.read(chat(messages=parts), chat=True, fields=FIELDS).messages[0]["content"] == "ab"


@pytest.mark.parametrize("path", sorted((SOURCE / "serving").rglob("*.py")), ids=lambda path: path.stem)
def test_a_newer_model_is_imported_by_its_own_family_only(path):
    """Transformers 4 has no DiffusionGemma: a module that names it can't be imported there."""
    names = "DiffusionGemmaForBlockDiffusion, " in path.read_text() or "models.diffusion_gemma." in path.read_text()
    assert names == (path.stem == "diffusion_gemma")
    assert "import serving.families.diffusion_gemma" not in path.read_text()
    assert "from serving.families.diffusion_gemma" not in path.read_text()
