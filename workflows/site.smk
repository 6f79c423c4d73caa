# The site: static pages, rendered from the database.


rule site:
    input:
        flow.database,
    output:
        flow.site,
    log:
        "build/logs/site.log",
    resources:
        machine=1,
    message:
        "Rendering the site"
    shell:
        "paribus site > {log} 2>&1"
