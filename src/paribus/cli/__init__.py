"""The command line: `paribus <command>`. One module a command; imported only when it is called."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import NoReturn

import click

from paribus import __version__
from paribus.conditions import EnvironmentFault, ParibusError, harmless

COMMANDS: dict[str, str] = {
    "speed": "measure the speed of an endpoint or of a system from the catalog",
    "quality": "generate answers to a quality task",
    "score": "score generated answers (no server needed)",
    "check": "recompute every number of a run from its raw observations; or check a catalog file",
    "compare": "compare two runs, like with like",
    "cite": "one figure with its conditions, ready to be cited",
    "claim": "one published claim: its conditions, what was left out, how to run it",
    "plan": "what a profile would run: jobs, hours, downloads, disk",
    "status": "what is done, running and missing",
    "doctor": "whether this machine can run a profile, and what it lacks",
    "show": "list systems, hardware, scenarios, claims, tuning",
    "tune": "decide a race from its candidates' runs",
    "lossless": "compare a decoder's answers with plain decoding's, at temperature 0",
    "fetch": "fetch weights or build an engine's environment",
    "data": "verify the items of the quality tasks that are on this machine",
    "fingerprint": "make the reference of a diffusion model's sampler out of a start on Transformers",
    "seal": "write a run's manifest and summary when all its starts are there",
    "build": "build the results database",
    "site": "render the site",
    "export": "write quality runs in the formats of others",
    "sandbox": "prove that the sandbox for model code holds on this machine",
    "schemas": "write the JSON Schemas of every file format",
}
"""Every command and its one-line help. `paribus.cli.<command>` holds `command`, a click command."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's interface)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"paribus.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        # The table above, without importing every command.
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def app() -> None:
    """Paribus: how fast language models are, all else being equal."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run a command and exit with its code; a user's mistake is one sentence on stderr, never a traceback."""
    try:
        _check_outputs()
        code = app.main(argv, prog_name="paribus", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = 130
    except click.ClickException as error:
        error.show()
        code = 2
    except BrokenPipeError:
        # The reader of our output went away (`paribus show | head`); nothing is wrong.
        _let_go_of_output()
        code = 0
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _let_go_of_output()
        print(f"paribus: can't write what there is to say: {error.strerror}", file=sys.stderr)
        code = EnvironmentFault.exit_code
    except ParibusError as error:
        print(f"paribus: {harmless(str(error))}", file=sys.stderr)
        code = error.exit_code
    raise SystemExit(code if isinstance(code, int) else 0)


def _check_outputs() -> None:
    """Refuse to begin where standard output or error is closed.

    What a command says would be lost without a word, and the first file that it opens would take the place.
    """
    for name, stream in (("output", sys.stdout), ("error", sys.stderr)):
        if stream is None:
            raise EnvironmentFault(f"standard {name} is closed: send it somewhere, such as to /dev/null")


def _let_go_of_output() -> None:
    """What is still held back for standard output goes nowhere: Python would try once more as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
