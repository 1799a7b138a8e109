# What a developer and the gate run; `make help` lists it. `make verify` never writes, `make fix` does.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test test-long verify fix unit protocol-tests compat prepare release bench

TARGET ?= ours
ROUNDS ?= 3
RELEASE = $(or $(CARGO_TARGET_DIR),target)/release/monedula

# Suites of real clients, and what only `make test-long` runs.
SUITES := kcat golden confluent-python java-clients prometheus dump-log compaction kill9 franz-go librdkafka kafka-itests
LONG := FULL=1 compat/librdkafka, RECORDS=50000 compat/franz-go, fuzz/run 300, protocol-tests and the suites on Apache Kafka

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 18

run: release ## build and start one node in ./data; stop it with Ctrl-C
	@$(RELEASE) start

release:
	cargo build --release --locked -p monedula

test: ## everything that fits into 45 minutes; installs what it needs
	@echo "left to make test-long: $(LONG)"
	.ci/test $(SUITES)

test-long: release ## what takes too long for make test: whole suites, and the tests on Apache Kafka
	FULL=1 LIMIT=400 compat/run librdkafka ours
	RECORDS=50000 compat/run franz-go ours
	fuzz/run 300
	TARGET=kafka .ci/parts protocol-tests $(addprefix compat/,$(filter-out prometheus,$(SUITES)))

verify: ## format, lints and the rules of the tree; writes nothing
	.ci/parts fmt clippy tidy

unit: ## tests of the crates and of the shell
	.ci/parts unit

protocol-tests: ## black box tests; TARGET=ours|kafka
	.ci/parts $(if $(filter ours,$(TARGET)),release) protocol-tests

compat: ## one suite of real clients: make compat CLIENT=kcat TARGET=ours|kafka
	$(if $(filter ours,$(TARGET)),cargo build --release --locked -p monedula)
	compat/run $(CLIENT) $(TARGET)

prepare: ## download and build what the suites need
	compat/prepare

bench: release ## ours beside Apache Kafka, alternating; ROUNDS=3
	bench/run --rounds $(ROUNDS)

fix: ## format, and apply what clippy can repair
	cargo fmt --all
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	MONEDULA_TIDY=write cargo test -p monedula --test tidy
