# Quality: answers are generated on the server, and scored afterwards without one.


rule generate:
    input:
        ancient(flow.needs),
    output:
        f"{flow.folder}/start-{{start}}/manifest.json",
    log:
        f"build/logs/{flow.folder}/start-{{start}}.log",
    wildcard_constraints:
        measure=flow.measures("quality"),
    priority: flow.order
    resources:
        machine=1,
        gpu=flow.cards,
    params:
        job=flow.job_of,
        says=flow.says,
    message:
        "Asking {wildcards.system}: {params.says}"
    shell:
        "paribus quality --job {params.job} > {log} 2>&1"


rule score:
    input:
        ancient(flow.answers),
    output:
        f"{flow.folder}/start-{{start}}/score.json",
    log:
        f"build/logs/{flow.folder}/start-{{start}}.score.log",
    priority: 1_000_000
    resources:
        machine=1,
    params:
        run=flow.run_of,
        catalog=flow.private,
    message:
        "Scoring {wildcards.measure}"
    shell:
        "paribus score {params.run}{params.catalog} > {log} 2>&1"
