# The commands of a newcomer and of CI. Everything that a machine lacks is
# built or installed by these targets; see README.md.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

# Compilers that wait longer before they collect garbage take a quarter less of the processors'
# time, and more memory: where there are more than 3 GiB for each processor.
GOGC ?= $(shell { awk -v cpus="$$(nproc)" '/^MemTotal/ && $$2 > cpus * 3145728 { print 400 }' /proc/meminfo; } 2>/dev/null)
export GOGC

# The Go that compiles everything; the machine's own Go fetches it as a module.
export GOTOOLCHAIN := go1.27.3

# Go as the bundle's programs are compiled: no package is compiled twice, and what
# another checkout compiled is not compiled again. Symbols for debuggers take time to link.
GO := CGO_ENABLED=0 GOFLAGS='-trimpath -ldflags=-s' go
ENGINE := $(GO) run -C ci/dev/engine .
BUNDLE := $(GO) run -C ci/dev/bundle .
# Installs the Debian packages of missing commands: COMMAND=PACKAGE … A source that cannot be updated
# may be one that is not needed: the install says what is missing.
NEED := bash -euc 'missing=; for it; do command -v "$${it%%=*}" >/dev/null || missing+=" $${it\#*=}"; done; \
	test -z "$$missing" || { apt-get -q update || true; DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $$missing || { echo "install as root:$$missing" >&2; exit 1; }; }' need
# The digest of what slipway is compiled from, which `lock verify` compares; given systems, whether
# it compiles for them.
SOURCES := $(GO) run -C ci/dev ./sources
# The bundle that this checkout built last, for other checkouts share the store; and the
# digest that it had then, whatever is in its folder now.
OWN_BUNDLE := sed -n 's/^BUNDLE=//p' .env
OWN_DIGEST := sed -n 's/^bundleDigest=//p' .env
# The environment in which dagger finds the engine, and programs find the bundle.
WITH_ENGINE := eval "$$($(ENGINE) env)";
WITH_BUNDLE = SLIPWAY_BUNDLE="$$($(OWN_BUNDLE))" SLIPWAY_BUNDLE_DIGEST="$$($(OWN_DIGEST))"

# With kustomize's Go plugins, which nothing here uses, each test program would be linked by gcc.
RACE := -trimpath -race -tags kustomize_disable_go_plugin_support -ldflags='-s -w'

# The packages that are tested with the race detector, and those whose tests link none of the large
# libraries, which the race detector would compile a second time.
RACED := ./...
LARGE := k8s\.io|helm\.sh|cloud\.google\.com|github\.com/(argoproj|aws|Azure|sigstore)
LIGHT = $(shell go list -test -f '{{.ImportPath}} {{.Deps}}' ./... | grep -vE '[ []($(LARGE))/' | sed -n 's/^\([^ ]*\)\.test .*/\1/p')

# The Go modules of this repository, as folder:packages. The Dagger module itself
# compiles only with the code that Dagger generates.
MODULES := .:... ci:origin/... ci/dev:... ci/test:... containers/node:... \
	examples/embed:... examples/platform/apps:...

# The platform releases that the bundle is for; none: the reference platform. Given on the command
# line.
PLATFORM :=
# These name all that is on demand.
EXAMPLES := $(addprefix examples/platform/,1.0.0 manifests/1.0.0 addons/1.0.0)

# The architecture of the bundle, if not this machine's: amd64 or arm64. Given on the command
# line. One of another architecture is nothing for this checkout's runs.
ARCH :=
FOREIGN = $(if $(ARCH),$(filter-out $(shell go env GOARCH),$(ARCH)))

# Where the CLI has to compile besides here.
PLATFORMS := darwin/arm64 darwin/amd64 linux/arm64 windows/amd64

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 18

.PHONY: install
install: engine bundle ## Set everything up and install the reference platform on a local Kubernetes
	@$(WITH_ENGINE) dagger call --progress=$${PROGRESS:-auto} install

.PHONY: quickstart
quickstart: PLATFORM := examples/platform/manifests/1.0.0
quickstart: engine bundle ## Set less up, in less time, and install a platform without Argo CD and Gitea on a local Kubernetes
	@$(WITH_ENGINE) dagger call --progress=$${PROGRESS:-auto} install --config examples/platform/manifests/slipway.yaml --platform $(PLATFORM)

.PHONY: test
test: ## Run the scanners, the unit tests and, on a real engine, the install, its second run, faults, upgrades and the destroy
	@raced="$(or $(WITH_RACE),$(LIGHT))"; test -n "$$raced"; failed=0; \
	for part in unit/race unit/others scan e2e; do $(MAKE) $$part RACED="$$raced" || failed=1; done; exit $$failed # one at a time: each uses all processors

# Free disk that test-all needs, in GiB: of builds with the race detector some 15, of the engine 27.
ROOM := 45
.PHONY: room
room:
	@free=$$(df -Pk "$(HOME)" | awk 'NR == 2 {print int($$4 / 1048576)}'); \
	if [ "$$free" -lt $(ROOM) ]; then echo "make test-all needs $(ROOM) GiB of free disk, and $$free GiB are free. To make room: make engine-stop, then remove old builds in ~/.cache/slipway/objects; or go clean -cache. Both are built again." >&2; exit 1; fi

.PHONY: test-all
test-all: export SLIPWAY_E2E := all
test-all: export E2E_LIMIT := 150m
test-all: WITH_RACE := ./...
test-all: export SHUFFLE := -shuffle=on
test-all: export PATH := $(CURDIR)/bin:$(PATH)
test-all: room lint builds cosign engine docker bundle/arm64 test ## Run golangci-lint and the tests, and end-to-end ones for which CI has no time: more of upgrades, rollbacks and tests of a platform, and the bundle for arm64

# Whether tests run in another order each time, in which case no result of theirs is taken from
# Go's cache.
SHUFFLE ?=

.PHONY: unit
unit: ## Run the unit tests of every module, those of the program with the race detector; type-check the CLI for every platform
	@$(MAKE) -j3 -Otarget unit/race unit/others # some compute while others read

.PHONY: unit/race unit/others unit/rest unit/modules unit/types
unit/others: unit/rest unit/modules unit/types

unit/race:
	@CGO_ENABLED=1 go test $(RACE) $(SHUFFLE) -p 4 $(RACED)
	CGO_ENABLED=1 go test -C ci $(RACE) ./origin
	CGO_ENABLED=1 go test -C ci/dev $(RACE) ./build/...

unit/rest:
	@rest="$$(comm -13 <(go list $(RACED) | sort) <(go list ./... | sort))"; test -z "$$rest" || { set -x; $(GO) test $(SHUFFLE) -p 4 $$rest; }

unit/modules:
	@$(NEED) jq=jq strace=strace
	$(GO) test -C containers/node ./...
	$(GO) test -C ci/dev ./engine ./bundle/... ./release ./sources ./vulnerabilities
	$(GO) test -C examples/embed ./...
	$(GO) test -C examples/platform/apps ./...
	$(GO) test -C ci/test ./bench ./cisystems ./slipway ./s3
	$(GO) test -C ci/test -count=1 ./hostile # of the program, which Go does not see in the test

unit/types:
	$(SOURCES) $(PLATFORMS)

.PHONY: builds
builds: $(addprefix builds/,$(PLATFORMS)) ## Compile and link the CLI for every platform

.PHONY: $(addprefix builds/,$(PLATFORMS))
$(addprefix builds/,$(PLATFORMS)):
	GOOS=$(notdir $(@D)) GOARCH=$(@F) $(GO) build -ldflags "-s -w" -o /dev/null .

# What a release is, given on the command line.
VERSION :=
OUT := dist
KEY :=
TARGETS := linux/amd64 $(PLATFORMS)
DRY :=

.PHONY: release
release: ## Make a release: VERSION=v1.2.3 [OUT=dist] [KEY=FILE] [TARGETS='OS/ARCH …']; DRY=1 only tries
	@$(GO) run -C ci/dev ./release -version '$(VERSION)' -out '$(abspath $(OUT))' -key '$(if $(KEY),$(abspath $(KEY)))' \
		-targets '$(TARGETS)' $(if $(DRY),-dry)

# How long the end-to-end tests may take.
E2E_LIMIT ?= 60m

.PHONY: e2e
e2e: PLATFORM := $(EXAMPLES)
e2e: engine bundle ## Run the end-to-end tests on the real engine, and the report's in a browser
	@$(NEED) chromium=chromium tmux=tmux
	@$(WITH_ENGINE) SLIPWAY_E2E="$${SLIPWAY_E2E:-1}" $(WITH_BUNDLE) $(GO) test -C ci/test/e2e -count=1 -timeout $(E2E_LIMIT) -parallel 16 -v .

.PHONY: pictures
pictures: PLATFORM := $(EXAMPLES)
pictures: engine bundle ## Make the pictures in docs/images from real runs: the form, a failed run's report, its reproduction, a matrix
	@$(NEED) chromium=chromium tmux=tmux
	@$(WITH_ENGINE) SLIPWAY_E2E=all SLIPWAY_PICTURES='$(CURDIR)/docs/images' $(WITH_BUNDLE) $(GO) test -C ci/test/e2e -count=1 -timeout 80m -v \
		-run '^(TestForm|TestLifecycle|TestUpgradeMatrix)$$' .

.PHONY: build
build: ## Build the command line tool into bin/slipway
	@mkdir -p bin
	$(GO) build -ldflags "-s -w -X main.version=$$(git describe --tags --always --dirty 2>/dev/null || echo dev) -X main.source=$$($(SOURCES))" -o bin/slipway .

.PHONY: engine
engine: ## Make a Dagger engine reachable: the one that answers, else one built from Go modules
	@$(ENGINE) start

REGISTRY :=
.PHONY: engine-image
engine-image: ## Build the engine's image for Docker and load it there; REGISTRY=HOST/PATH pushes it
	@$(ENGINE) image $(if $(REGISTRY),--push '$(REGISTRY)')

.PHONY: engine-stop
engine-stop: ## End the engine that `make engine` started
	@$(ENGINE) stop

.PHONY: engine-env
engine-env: ## Print the environment in which dagger and slipway find the engine
	@$(ENGINE) env

.PHONY: env
env: ## Print what a shell needs for dagger, slipway, kubectl, helm and terraform: eval "$(make -s env)"
	@$(ENGINE) env
	@dir="$$($(MAKE) -s bundle-path)"; digest="$$($(OWN_DIGEST))"; \
	if [ -z "$$digest" ]; then echo ".env has no digest of the bundle: run make bundle" >&2; exit 1; fi; \
	printf 'export SLIPWAY_BUNDLE=%q\nexport SLIPWAY_BUNDLE_DIGEST=%q\n' "$$dir" "$$digest"; \
	case "$$PATH" in "$$dir/bin:"*) ;; *) printf 'export PATH=%q:"$$PATH"\n' "$$dir/bin" ;; esac

.PHONY: bundle
bundle: ## Build the bundle that a run uses in place of registries; PLATFORM=DIR builds it for that platform release; ARCH=arm64 builds, and names, that for engines of another architecture
	@built="$$($(BUNDLE) build $(if $(ARCH),--arch '$(ARCH)') $(foreach dir,$(PLATFORM),--platform $(abspath $(dir))))"; \
	$(if $(FOREIGN),echo "$$built"; exit;) touch .env; { grep -vE '^(BUNDLE|bundleDigest)=' .env || test $$? = 1; echo "$$built"; } >.env.new && mv .env.new .env; $(OWN_BUNDLE)

# Its programs are started by the tests, under QEMU.
.PHONY: bundle/arm64
bundle/arm64:
	@$(NEED) qemu-aarch64-static=qemu-user-static
	@$(MAKE) bundle ARCH=arm64 PLATFORM="examples/platform/1.0.0 examples/platform/manifests/1.0.0"

.PHONY: pins
pins: ## Pin the Debian packages of the bundle in containers/lock/lock.yaml; ARCH=arm64: those of another architecture
	@$(BUNDLE) pin $(if $(ARCH),--arch '$(ARCH)')

.PHONY: bundle-path
bundle-path: ## Print the path of the bundle that this checkout built last
	@dir="$$($(OWN_BUNDLE) 2>/dev/null || true)"; \
	if [ -z "$$dir" ] || [ ! -f "$$dir/bundle.json" ]; then echo "this checkout has no bundle$${dir:+ at $$dir}: run make bundle" >&2; exit 1; fi; echo "$$dir"

# With Docker and a registry the tests run the engine's image; with cosign they verify run packages,
# bundles and releases as others do.
.PHONY: docker cosign
docker:
	@$(NEED) dockerd=docker.io docker-registry=docker-registry

cosign:
	@command -v cosign >/dev/null || GOBIN=$(CURDIR)/bin $(GO) install github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5

.PHONY: bench
bench: PLATFORM := examples/platform/1.0.0 examples/platform/manifests/1.0.0
bench: export GOGC := # as users run what is measured
bench: engine bundle ## Compare installs and an upgrade with plain shell scripts and helmfile, and time plans
	$(GO) build -C ci/test/bench/helmfile -buildvcs=false -mod=readonly -o '$(CURDIR)/bin/helmfile' github.com/helmfile/helmfile
	@$(WITH_ENGINE) $(WITH_BUNDLE) $(GO) run -C ci/test ./bench

TIME := 10m

.PHONY: fuzz
fuzz: ## Fuzz each parser of what others wrote, one after another, for ten minutes each; TIME=1m
	@grep -rHo '^func Fuzz[A-Za-z]*' --include='*_test.go' . | sort | while IFS=: read -r file name; do \
		name="$${name#func }"; echo "$$file $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(TIME) -fuzzminimizetime 10x "./$$(dirname "$$file")" </dev/null || exit 1; \
	done

ROUNDS := 30

.PHONY: chaos
chaos: engine bundle ## Disturb 30 real installs at random moments (killed, stopped for two minutes, contended for) and check what comes out; ROUNDS=200 PLATFORM=DIR CHAOS='-kinds NAMES -seed N -bucket'
	@$(WITH_ENGINE) SLIPWAY_E2E=1 $(WITH_BUNDLE) $(GO) test -C ci/test/e2e -count=1 -timeout 0 -v -run '^TestChaos$$' . -rounds $(ROUNDS) $(if $(PLATFORM),-platform '$(abspath $(PLATFORM))') $(CHAOS)

FAULTS := none,kill-at-each-step

.PHONY: matrix
matrix: engine bundle ## Upgrade every release of the reference platform to every later one, in each style, undisturbed and killed at each step (FAULTS=none: not killed); MATRIX='--shard 1/2'
	@$(WITH_ENGINE) export $(WITH_BUNDLE); "$$SLIPWAY_BUNDLE/bin/slipway" upgrade-matrix --bundle "$$SLIPWAY_BUNDLE" --from 1.0.0,1.1.0 --to 1.1.0,2.0.0 \
		--style graceful,in-place --faults $(FAULTS) --parallel 2 $(MATRIX)

.PHONY: lint
lint: ## Run golangci-lint over every module; it also keeps imports pointing down
	@mkdir -p bin
	go build -C ci/dev/lint -trimpath -o ../../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@failed=; for module in $(MODULES); do \
		echo "golangci-lint in $${module%:*}"; \
		(cd "$${module%:*}" && "$(CURDIR)/bin/golangci-lint" run "./$${module#*:}") || failed=1; \
	done; test -z "$$failed"

.PHONY: scan
scan: ## Look for known vulnerabilities in all that a bundle and the engine have, secrets in the history, and faults in Terraform's files
	@$(MAKE) -k -j2 -Otarget scan/vulnerabilities scan/secrets scan/terraform

.PHONY: scan/vulnerabilities scan/secrets scan/terraform scanners
scan/vulnerabilities: scanners
	programs="$$($(ENGINE) programs && $(BUNDLE) programs $(foreach dir,$(EXAMPLES),--platform $(abspath $(dir))))"; $(GO) run -C ci/dev ./vulnerabilities $(CURDIR)/bin/govulncheck $$programs
	$(ENGINE) outdated
	$(BUNDLE) outdated

scan/secrets: scanners
	bin/gitleaks git --verbose --no-banner --redact --platform none --log-opts=HEAD .

scan/terraform: scanners
	failed=; for dir in $$(git ls-files '*.tf' | xargs -n 1 dirname | sort -u); do \
		bin/tflint --chdir="$$dir" --config="$(CURDIR)/.tflint.hcl" || failed=1; \
	done; test -z "$$failed"

scanners:
	@mkdir -p bin
	$(GO) build -C ci/dev/scan -ldflags='-s -w' -o ../../../bin/ tool

.PHONY: generate
generate: ## Write the files that are made from the code: schema, golden files of the program, docs/errors.md, a copy for the Dagger module
	$(GO) test ./cli ./config ./config/platform ./examples/platform ./pipeline/progress ./pipeline/report ./providers/all ./docs -update
