"""Plays llama.cpp's launcher for tests: same argument, same pages. How it behaves is written in the weights file.

well; dies (while loading); mute (never ready); empty (answers nothing); port (can't bind); full (no disk space); told
(ended by somebody); is-ended (by somebody, on its second question); crashes (on its second question, with the words
that follow); leaves-a-daemon; compiles (on every question); odd (pages that make no sense).
"""

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

wanted = json.loads(sys.argv[1])
behaviour = Path(wanted["model"]).read_text().strip()
asked = 0

METRICS = """# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total {tokens}
llamacpp:prompt_tokens_total {tokens}
llamacpp:spec_decode_num_drafts_total 0
llamacpp:requests_processing 0
"""


class Handler(BaseHTTPRequestHandler):
    def answer(self, body, status=200):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        props = {
            "total_slots": wanted["slots"],
            "build_info": "b1",
            "default_generation_settings": {"n_ctx": wanted["context_per_slot"], "params": {"temperature": 1.0}},
        }
        pages = {
            "/health": "{}",
            "/metrics": METRICS.format(tokens=10 * asked),
            "/props": "[]" if behaviour == "odd" else json.dumps(props),
        }
        self.answer(pages.get(self.path, "{}"), 200 if self.path in pages else 404)

    def do_POST(self):
        global asked  # noqa: PLW0603 (a script of one server)
        asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        if behaviour.startswith("crashes") and asked > 1:
            print(behaviour.removeprefix("crashes").strip() or "out of luck on question 2", flush=True)
            os._exit(9)
        if behaviour == "is-ended" and asked > 1:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(600)
        if behaviour == "compiles":
            print(f"compiled a graph for question {asked}", flush=True)
        text = "" if behaviour == "empty" else "blue"
        tokens = 0 if behaviour == "empty" else 1
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        self.answer(json.dumps({"choices": [choice], "usage": {"completion_tokens": tokens}}))

    def log_message(self, *_):
        pass


print("xllamacpp 0.0-played", flush=True)
print(f"loading {wanted['model']}, listening for 203.0.113.7", flush=True)
if behaviour == "dies":
    print("error: the model is not a model", flush=True)
    sys.exit(3)
if behaviour == "full":
    print("OSError: [Errno 28] No space left on device", flush=True)
    sys.exit(1)
if behaviour == "told":
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)
if behaviour == "port":
    print("couldn't bind HTTP server socket", flush=True)
    sys.exit(1)
if behaviour == "mute":
    time.sleep(600)
if behaviour == "leaves-a-daemon" and os.fork() == 0:
    os.setsid()
    Path(wanted["model"] + ".daemon").write_text(str(os.getpid()))
    time.sleep(600)
ThreadingHTTPServer(("127.0.0.1", wanted["port"]), Handler).serve_forever()
