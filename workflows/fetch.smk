# Weights, fetched once and checked against their pinned hash. All fetching comes before measuring.


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
    message:
        "Fetching the weights of {wildcards.model}, {wildcards.precision}"
    shell:
        "paribus fetch weights {wildcards.model}--{wildcards.precision} > {log} 2>&1"
