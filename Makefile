# Copyright 2026 The thole Authors
# SPDX-License-Identifier: Apache-2.0

GO        ?= go
PREFIX    ?= /usr/local
DESTDIR   ?=
FUZZTIME  ?= 5s
BENCHTIME ?= 1s
ROUNDS    ?= 300

# Every command is built the same way: static, and without this machine's paths.
export CGO_ENABLED = 0
BUILD = $(GO) build -trimpath

.DEFAULT_GOAL = build

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the commands into bin/
	@mkdir -p bin
	$(BUILD) -o bin/ ./cmd/...

.PHONY: demo
demo: build ## run a command that reaches for the network, and see it refused
	bin/thole run -- bash -c '(exec 3<>/dev/tcp/192.0.2.1/443) || echo "refused, and the program goes on"'

.PHONY: setup
setup: ## install the programs that tests use, where this is possible
	.ci/setup

.PHONY: test
test: setup ## run all tests (as root: the whole suite) and list what was skipped
	$(GO) run ./common/deptest/gotest $(if $(CI),-strict) -allow .ci/allowed-skips -count=1 -timeout 15m ./...

.PHONY: test-race
test-race: ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 30m ./...

.PHONY: test-vm
test-vm: ## boot other kernels under QEMU, run the tests there and print the table (VM=6.12, VM=6.1/base: a part)
	.ci/vm >/dev/null
	THOLE_VM=1 THOLE_VM_ONLY="$(VM)" $(GO) test -count=1 -timeout 60m -v -run '^TestMatrix$$' ./linux/matrix

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (5s)
	GO="$(GO)" .ci/fuzz $(FUZZTIME)

.PHONY: check
check: ## check generated files, format, vet, staticcheck and the repository's rules
	GO="$(GO)" .ci/check

.PHONY: bench
bench: ## run every benchmark for BENCHTIME (1s)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m ./...

.PHONY: bench-start
bench-start: build ## compare the command's start-up time with an empty Go program
	$(GO) run ./bench/start -n $(ROUNDS) bin/thole version

.PHONY: generate
generate: ## make generated files anew (needs clang, llvm and libbpf-dev)
	$(GO) generate ./...

.PHONY: install
install: build ## copy the commands to PREFIX/bin (/usr/local/bin)
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 bin/thole $(DESTDIR)$(PREFIX)/bin/thole
	if [ -e bin/tholed ]; then install -m 0755 bin/tholed $(DESTDIR)$(PREFIX)/bin/tholed; fi

.PHONY: clean
clean: ## remove bin/
	rm -rf bin
