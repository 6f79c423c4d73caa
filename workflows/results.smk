# Results: a run is sealed when all its starts are there; the database is built from all sealed runs.


rule seal:
    input:
        flow.starts,
    output:
        f"{flow.folder}/manifest.json",
    log:
        f"build/logs/{flow.folder}/seal.log",
    priority: 1_000_000
    resources:
        machine=1,
    params:
        run=flow.run_of,
        catalog=flow.private,
    message:
        "Sealing {wildcards.system}, {wildcards.measure}"
    shell:
        "paribus seal {params.run}{params.catalog} > {log} 2>&1"


rule build:
    input:
        flow.sealed(),
        flow.verdicts(),
        flow.sealed_after_races,
    output:
        flow.database,
    log:
        "build/logs/build.log",
    resources:
        machine=1,
    message:
        "Building the results database"
    shell:
        "paribus build > {log} 2>&1"
