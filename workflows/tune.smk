# Races: the decoder that is measured in full is found on tuning prompts, with the same budget for every candidate.
# A checkpoint, because only the verdict says which runs follow.


checkpoint race:
    input:
        flow.candidates,
    output:
        f"{flow.folder}/race.json",
    log:
        f"build/logs/{flow.folder}/race.log",
    priority: 1_000_000
    resources:
        machine=1,
    message:
        "Deciding {wildcards.measure}"
    shell:
        "paribus tune {output} > {log} 2>&1"
