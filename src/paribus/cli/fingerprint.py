"""`paribus fingerprint`: make the reference of a diffusion model's sampler out of a start on Transformers."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import ValidationError

from paribus.catalog.faults import one_sentence
from paribus.conditions import Manifest, UsageError
from paribus.engines.fingerprinting import FOLDER, reference_from


@click.command(
    epilog="""\b
Example:
  paribus fingerprint results/h100/m-x7k2q/some-model--bf16--transformers--card/c1-short/0a1b2c3d4e5f.1/start-1 \\
      > systems/fingerprints/some-model--bf16--card.json"""
)
@click.argument("start", type=click.Path(path_type=Path), metavar="START")
def command(start: Path) -> None:
    """Print the reference that other engines' samplers are held against.

    START is the folder of a start that was measured on Transformers: the denoising passes of 64 canvases are in its
    manifest. The reference belongs into systems/fingerprints/<model>--<precision>--<decoder>.json.
    """
    path = start / "manifest.json"
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    except ValidationError as error:
        raise UsageError(f"{path}: {one_sentence(error)}") from error
    found = reference_from(manifest)
    click.echo(found.model_dump_json(indent=1))
    click.echo(f"reference {found.id}: {FOLDER}/{found.model}--{found.precision}--{found.decoder}.json", err=True)
