"""The program `my-server` of docs/add-an-engine.md: a small server that streams, counts and tells what it runs."""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
for name in ("--model", "--host"):
    parser.add_argument(name)
for name in ("--port", "--slots", "--context"):
    parser.add_argument(name, type=int)
asked = parser.parse_args()
assert Path(asked.model).is_file()
counted = {"tokens": 0, "running": 0}
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def whole(self, body):
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        info = {"version": "1.2", "slots": asked.slots, "context": asked.context}
        metrics = f"my_tokens_generated_total {counted['tokens']}\nmy_requests_running {counted['running']}\n"
        self.whole({"/metrics": metrics, "/info": json.dumps(info)}.get(self.path, "{}"))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = WORDS[: request["max_tokens"]]
        counted["tokens"] += len(words)
        usage = {"prompt_tokens": 5, "completion_tokens": len(words), "total_tokens": 5 + len(words)}
        if not request.get("stream"):
            choice = {"message": {"role": "assistant", "content": " ".join(words)}, "finish_reason": "stop"}
            self.whole(json.dumps({"choices": [choice], "usage": usage}))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = [{"choices": [{"index": 0, "delta": {"content": f" {word}"}}]} for word in words]
        pieces += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
        for text in [*map(json.dumps, pieces), "[DONE]"]:
            self.piece(f"data: {text}\n\n".encode())
        self.wfile.write(b"0\r\n\r\n")

    def piece(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *_):
        pass


ThreadingHTTPServer((asked.host, asked.port), Handler).serve_forever()
