# Engines, each in its own environment, built from its lock file, or in a container image, pulled by its digest.


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


rule image:
    input:
        ancient(flow.proof),
    output:
        "build/images/{engine}-{build}.json",
    log:
        "build/logs/images/{engine}-{build}.log",
    priority: 2_000_000
    resources:
        machine=1,
    params:
        catalog=flow.private,
    message:
        "Pulling the image of {wildcards.engine}"
    shell:
        "paribus fetch image {wildcards.engine} {wildcards.build}{params.catalog} > {log} 2>&1"
