"""Between a job and a container: the container's standard input stays open just as long as this small process lives.

Run as a script with the standard library only: `python container_client.py docker run --interactive ...`. The program
in the container ends when its input ends (see `paribus.engines.containers`), so that a container never outlives the job
that started it, however the job died: the job's guard takes this process down, and the input closes.
"""

import subprocess
import sys


def main() -> int:
    """Run the command with an input that never ends; its exit code (128 + n when signal n ended it)."""
    client = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
    code = client.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
