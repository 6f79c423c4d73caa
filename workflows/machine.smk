# The machine is what the profile says: proven before anything is fetched or built for it.


rule machine:
    output:
        "build/machine/{hardware}.json",
    log:
        "build/logs/machine/{hardware}.log",
    priority: 2_000_000
    resources:
        machine=1,
        gpu=flow.cards,
    message:
        "Looking at this machine"
    shell:
        "paribus doctor --plan build/plan.json --out {output} > {log} 2>&1"
