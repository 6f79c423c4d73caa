"""Serve a model with Transformers behind an OpenAI-compatible API, on this machine only.

Usage: server.py '<JSON>'; the keys are the fields of `serving.settings.Settings`. Needs torch, transformers, accelerate
and jinja2, and nothing else. Ends with its parent, and on SIGTERM after the forward pass that is under way.
"""

import ctypes
import os
import signal
import sys
import threading

from serving.settings import Settings, Unfit


def main() -> int:
    """Serve until told to stop or until the parent is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    parent, stop = os.getppid(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = Settings.read(sys.argv[1])
    # Only now: torch takes seconds to import, and wrong settings should not.
    from serving.model import Model
    from serving.web import Handler, Server

    with Server((settings.host, settings.port), Handler) as server:
        threading.Thread(target=server.serve_forever, name="web", daemon=True).start()
        model = Model.load(settings)
        about = model.properties()
        print(f"{about['server']}: {about['architecture']} ({about['family']}) on {about['device']}", flush=True)
        server.open(model)
        print(f"serving at {settings.host}:{server.server_port}", flush=True)
        while os.getppid() == parent and not stop.wait(0.5):
            pass
        if server.desk is not None:
            server.desk.stop(5.0)
        server.shutdown()
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except Unfit as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        code = 1
    sys.stdout.flush()
    # Threads of connections may hang in a read: nothing of theirs has to be waited for.
    os._exit(code)
