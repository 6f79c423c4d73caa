"""`paribus sandbox test`: prove that the sandbox for model code holds on this machine."""

from __future__ import annotations

import os

import click

from paribus.conditions import CheckFailed


@click.group()
def command() -> None:
    """The sandbox in which programs written by models run."""


@command.command()
def test() -> None:
    """Attack the sandbox and say what held. Exit 1 when an attack breaks out, 3 when there is no sandbox.

    \b
    Examples:
      paribus sandbox test
    """
    from paribus.quality import sandbox, sandbox_attacks

    sandbox.require()
    click.echo(f"Sandbox: {sandbox.platform()}")

    def show(finding: sandbox_attacks.Finding) -> None:
        sign = {"held": "held   ", "broke": "BROKE  ", "unclear": "UNCLEAR"}[finding.result]
        click.echo(f"{sign} {finding.attack.name}: {finding.attack.title} ({finding.detail})")

    findings = sandbox_attacks.run_attacks(seen=show)
    for text in sandbox_attacks.unproven():
        click.echo(f"Not limited here: {text}.")
    bad = [finding for finding in findings if finding.result != "held"]
    if bad:
        names = ", ".join(finding.attack.name for finding in bad)
        raise CheckFailed(f"{len(bad)} of {len(findings)} attacks were not held: {names}. Don't run model code here")
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    click.echo(f"{len(findings)} attacks, all held, started as {who}.")
    if limits := sandbox_attacks.proven(findings):
        click.echo(f"Limits that were run into: {'; '.join(limits)}.")
