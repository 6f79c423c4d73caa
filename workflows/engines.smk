# Engines, each in its own environment, built from its lock file.


rule environment:
    input:
        ancient(flow.proof),
    output:
        "build/envs/{engine}-{build}.json",
    log:
        "build/logs/envs/{engine}-{build}.log",
    priority: 2_000_000
    resources:
        machine=1,
    message:
        "Building the environment of {wildcards.engine}"
    shell:
        "paribus fetch env {wildcards.engine} > {log} 2>&1"
