# The targets that people and CI run; each brings what it needs.

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := .cache/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
# How many packages are tested at once: their servers and they share the machine.
PROCS ?= 2
FUZZTIME ?= 20s
BENCHTIME ?= 1s
# How long a soak breaks things, and on what: standalone, cluster or sentinel.
SECONDS ?= 600
TOPOLOGY ?= standalone
# What runs on every server there is: make matrix MATRIX='./eventstore'
MATRIX ?= $(addprefix ./,$(wildcard eventstore snapshot preparekey recovery internal/redisstream commandbus eventbus statebus migrate))
# The root module and those below it, such as observe/otel.
MODULES := $(patsubst %/go.mod,%,$(wildcard go.mod */go.mod */*/go.mod))
MODULES := $(patsubst go.mod,.,$(MODULES))

.DEFAULT_GOAL := help
.PHONY: help docs lint test race cover bench soak matrix fuzz example migrate-demo redis

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

redis:
	@scripts/ensure-redis.sh

# each runs a command in every module.
each = @for module in $(MODULES); do (cd $$module && $(1)) || exit 1; done

test: redis ## run all tests, on real servers that they start themselves
	$(call each,go test -p $(PROCS) -timeout 10m ./...)

race: redis ## run all tests with the race detector
	$(call each,go test -race -p $(PROCS) -timeout 15m ./...)

cover: redis ## run all tests and say which part of the code they reach
	go test -p $(PROCS) -timeout 15m -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1

bench: redis ## run the benchmarks, each for BENCHTIME (1s)
	go test -p 1 -timeout 60m -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

soak: redis ## kill, pause, cut and restart everything for SECONDS (600) on TOPOLOGY, and look for every message
	@mkdir -p .cache
	@go test -c -o .cache/soak.test ./internal/soak
	@.cache/soak.test -test.run '^TestSoak$$' -test.timeout 0 -soak.seconds $(SECONDS) -soak.topology $(TOPOLOGY)

matrix: redis ## run the tests of stores, buses and migration on Redis 6.2, 7, 8.2 and Valkey 9
	@scripts/fetch-servers.sh
	@scripts/matrix.sh $(MATRIX)

fuzz: redis ## run every fuzz target for FUZZTIME (20s)
	@scripts/fuzz.sh $(FUZZTIME)

example: ## replay the order log of the example, without any server
	go run ./examples/order-service

migrate-demo: redis ## migrate the order log from an older layout, on a server of its own
	@scripts/migrate-demo.sh

docs: ## write the pages of docs/ that are made from the code
	go test -count 1 -run 'PageIsCurrent$$' . -update

lint: $(GOLANGCI_LINT) ## check format, vet, linters and the headers of scripts
	@unformatted=$$(gofmt -l .) && { [ -z "$$unformatted" ] || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }; }
	@scripts/check-lua.sh
	$(call each,go vet ./...)
	$(call each,$(abspath $(GOLANGCI_LINT)) run --config $(abspath .golangci.yml) ./...)

# Built from source once: two minutes on two cores.
$(GOLANGCI_LINT):
	GOBIN=$(abspath .cache/bin) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv .cache/bin/golangci-lint $@
