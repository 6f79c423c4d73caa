# Weights and items, fetched once and checked against their pinned hashes. All fetching comes before measuring, which
# is offline. A marker's {precision} ends in a hash of what the weights are, and {build} is one of what the items are:
# where their file names others, the old ones don't count.


rule weights:
    input:
        ancient(flow.proof),
    output:
        "build/weights/{model}--{precision}.json",
    log:
        "build/logs/weights/{model}--{precision}.log",
    priority: 2_000_000
    resources:
        machine=1,
    params:
        catalog=flow.private,
    message:
        "Fetching the weights of {wildcards.model}, {wildcards.precision}"
    shell:
        "paribus fetch weights {wildcards.model}--{wildcards.precision}{params.catalog} > {log} 2>&1"


rule items:
    input:
        ancient(flow.proof),
    output:
        "build/items/{task}-{build}.json",
    log:
        "build/logs/items/{task}-{build}.log",
    priority: 2_000_000
    resources:
        machine=1,
    params:
        catalog=flow.private,
    message:
        "Fetching the items of {wildcards.task}"
    shell:
        "paribus fetch items {wildcards.task}{params.catalog} > {log} 2>&1"
