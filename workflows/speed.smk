# Speed: one job is one server, started once; it measures every scenario that shares its launch configuration.
# Its one declared output is written last; what lies beside it survives a failure, and the job continues there.


rule measure:
    input:
        ancient(flow.needs),
    output:
        f"{flow.folder}/start-{{start}}/manifest.json",
    log:
        f"build/logs/{flow.folder}/start-{{start}}.log",
    wildcard_constraints:
        measure=flow.measures("race", "speed"),
    priority: flow.order
    resources:
        machine=1,
        gpu=flow.cards,
    params:
        job=flow.job_of,
        says=flow.says,
    message:
        "Measuring {wildcards.system}, start {wildcards.start}: {params.says}"
    shell:
        "paribus speed --job {params.job} > {log} 2>&1"
