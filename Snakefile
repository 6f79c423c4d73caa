# The front door: configuration, stages and the named targets.
#
#   snakemake --profile cpu                     measure what the profile plans, and continue what was begun
#   snakemake --profile cpu -n                  only list what would be done
#   snakemake --profile h100 --config scale=quick systems='qwen*'
#
# Rules hold no logic: what depends on a job comes from the plan (src/paribus/catalog/workflow.py).
from snakemake.utils import min_version

from paribus.cli import _snakefile

min_version("9.27")

flow = _snakefile.open_workflow(workflow, config, checkpoints)


wildcard_constraints:
    **flow.constraints,


resource_scopes:
    machine="local",
    gpu="local",


include: "workflows/machine.smk"
include: "workflows/fetch.smk"
include: "workflows/engines.smk"
include: "workflows/tune.smk"
include: "workflows/speed.smk"
include: "workflows/quality.smk"
include: "workflows/results.smk"
include: "workflows/site.smk"


localrules:
    all,
    fetch,
    tune,
    speed,
    quality,
    claims,


rule all:
    default_target: True
    input:
        flow.sealed(),
        flow.verdicts(),
        flow.sealed_after_races,
        flow.shown(),


rule fetch:
    input:
        flow.fetched(),


rule tune:
    input:
        flow.verdicts(),


rule speed:
    input:
        flow.sealed("race", "speed"),
        flow.verdicts(),
        flow.speed_sealed_after_races,


rule quality:
    input:
        flow.sealed("quality"),


rule claims:
    input:
        flow.claimed(),


onstart:
    flow.began = _snakefile.start(flow)


onsuccess:
    shell(f"paribus status --closing --since {flow.began:.0f}")


onerror:
    shell(f"paribus status --failed --since {flow.began:.0f}")
