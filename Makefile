# `make` alone lists the targets. Everything lives in .venv and build/; `make unlink` undoes the links of set-up.

SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv/bin
export PATH := $(CURDIR)/$(VENV):$(PATH)
export UV_PYTHON_DOWNLOADS := never

.PHONY: help setup demo test test-system test-engines lint bench lossless quality-sample system-packages unlink

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

setup: ## make .venv, link the hardware profiles; done again, it takes seconds
	@scripts/setup

demo: setup ## the whole pipeline on a small real model, on the CPU, in minutes
	@snakemake --profile hardware/cpu

test: setup ## set up and pass the tests, with a tiny run of the whole pipeline on the real engine
	@pytest -n 2 --dist loadfile -m "not system and not engines and not tiny"
	@pytest -m tiny

test-system: setup ## tests with real engines, interruptions, a sandbox, a browser (a quarter of an hour)
	@pytest -m system

test-engines: setup ## real runs of vLLM and Transformers on the CPU, and of llama.cpp's drafters (4 GB to install; ENGINES=, PYTEST=)
	@scripts/test-engines $(PYTEST)

lint: setup ## formats, types, import contracts, workflow
	@ruff check .
	@ruff format --check .
	@snakefmt --check Snakefile workflows
	@python scripts/lint-workflow
	@mypy
	@lint-imports

bench: setup ## benchmarks that are run by hand: ratios and times on this machine
	@for file in benchmarks/*.py; do echo "== $$file"; python "$$file" || exit; done

lossless: setup ## compare speculative decoding with plain at temperature 0 on the CPU's model (minutes; not part of the demo)
	@paribus fetch env llamacpp
	@paribus fetch weights smollm2-135m--q4-1
	@paribus lossless 'smollm2-135m--q4-1--llamacpp--ngram-*'

quality-sample: setup ## real questions to the CPU's model, end to end (needs PARIBUS_DATA; twenty minutes; never published)
	@paribus fetch env llamacpp
	@paribus fetch env tau2
	@paribus fetch weights smollm2-135m--q4-1
	@scripts/quality-sample

system-packages: ## install the Debian packages that the tests of the sandbox and the browser need (root)
	@scripts/system-packages

unlink: ## remove the links that set-up made
	@python scripts/profiles unlink
