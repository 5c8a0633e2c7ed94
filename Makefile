# Targets are short: you can type their commands by hand. CI calls the same targets
# (.ci/run). Commands that a machine lacks are installed (.ci/need).

GO ?= go
PREFIX ?= /usr/local
DESTDIR ?=
FUZZTIME ?= 10s
FUZZ_PACKAGES ?= ./...
TESTFLAGS ?=

# Tests of the tracer take two minutes on an idle machine, and far longer on a busy one.
TEST_TIMEOUT ?= 40m

# The committed objects are compiled with Debian 12's clang. Another version makes
# equivalent objects with different bytes, and another clang-format formats differently.
CLANG_VERSION := 14
PINNED = $(shell command -v $(1)-$(CLANG_VERSION) || echo $(1))
CLANG ?= $(call PINNED,clang)
CLANG_FORMAT ?= $(call PINNED,clang-format)
C_FILES = $(shell git ls-files 'bpf/*.[ch]' 'testdata/progs/*.[ch]' 'testdata/progs/*.cpp' 'internal/unwind/*.cpp' 'internal/replay/*.[ch]')

# The version that --version prints and that names packages. A copy of the sources without
# git has one as well.
VERSION ?= $(shell .ci/version)

# Built without cgo and without paths of this machine, so that the programs run
# anywhere and are the same wherever they are built.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X rtrace-bpf/internal/cli.linked=$(VERSION)'
TOOL = $(GO) tool -modfile=tools.mod

# Names of the links to rtrace that `make install` makes: rtrace-NAME for the original
# programs' sp-rtrace-NAME, and other names unchanged.
RTRACE_LINKS := alloc-sizes allocmap calltree convert diff dump from-function function-address graphs heapmap info leaks mprof mptrace pagemap postproc rename replay report resolve sort stacks stats swap-calls swap-heap swap-libraries swap-maps swap-persistent timeline top undump
SP_RTRACE_LINKS := allocmap pagemap postproc resolve timeline
OTHER_LINKS := mptrace rtrace-allocmap-animate rtrace-graphs-function rtrace-graphs-overview

# Packages that work only on Linux. All others must pass vet for any system.
LINUX_ONLY := /tracer(/|$$)|/cmd/rtrace-bpf$$|/internal/linux/|/internal/recording(/|$$)|/internal/survey$$|/vmtest/cmd/

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo 'error: no go command: install Go 1.26 or newer (https://go.dev/dl)' >&2; exit 1; }

.PHONY: build
build: need-go ## build bin/rtrace-bpf and bin/rtrace
	$(BUILD) -o bin/ ./cmd/rtrace-bpf ./cmd/rtrace

.PHONY: run
run: build ## trace a Python program for a few seconds, print its leak, write a page
	@.ci/need 'to have a program to trace' python3=python3
	@.ci/demo

# What `make test` needs: a compiler, python3 and small tools, a download of 142 MB on a new Debian 12.
.PHONY: need-test
need-test: need-go
	@.ci/need 'tests trace programs that they compile' gcc=gcc g++=g++ /usr/include/stdlib.h=libc6-dev
	@.ci/need 'tests compare results with these tools' readelf=binutils gdb=gdb strace=strace git=git cpio=cpio xz=xz-utils /usr/share/doc/libc6-dbg=libc6-dbg
	@[ "$$(uname -m)" != x86_64 ] || .ci/need 'tests trace 32-bit programs' /usr/lib32/crt1.o=gcc-multilib "/usr/lib/gcc/$$(gcc -dumpmachine)/$$(gcc -dumpversion)/32/libstdc++.so=g++-multilib"
	@.ci/need 'tests trace these, also in a container' /usr/bin/python3=python3 sqlite3=sqlite3 musl-gcc=musl-tools unshare=util-linux

# What the other tests need in addition.
.PHONY: need-test-all
need-test-all: need-test
	@.ci/need 'tests compare results with these tools' clang=clang dot=graphviz dwz=dwz llvm-symbolizer=llvm
	@.ci/need 'tests unwind code that is generated at run time' node=nodejs npm=npm javac=default-jdk-headless
	@.ci/need 'tests check that programs in an emulator are refused' $(if $(filter arm64,$(shell $(GO) env GOHOSTARCH)),qemu-i386,qemu-aarch64)=qemu-user
	@.ci/need 'tests open the pages that the program makes, and its screens' chromium=chromium tmux=tmux
	@.ci/need 'the tools read what the program writes' heaptrack_print=heaptrack valgrind=valgrind
	@lib="/usr/lib/$$(gcc -print-multiarch)"; .ci/need 'tests trace and replay with other allocators' "$$lib/libjemalloc.so.2=libjemalloc2" "$$lib/libjemalloc.a=libjemalloc-dev" \
		"$$lib/libtcmalloc_minimal.a=libgoogle-perftools-dev" "$$lib/libtcmalloc_minimal.so.4=libtcmalloc-minimal4" "$$lib/libmimalloc.so.2.0=libmimalloc2.0" rg=ripgrep redis-check-rdb=redis-tools redis-server=redis-server
	@.ci/need 'tests install the packages of a release' rpm=rpm umoci=umoci ssh-keygen=openssh-client unshare=util-linux
	@lib="/usr/lib/$$(gcc -print-multiarch)"; .ci/need 'tests trace objects of GLib and Qt' "$$lib/libgobject-2.0.so=libglib2.0-dev" "$$lib/libQt5Core.so=qtbase5-dev" "$$lib/libQt6Core.so=qt6-base-dev"

.PHONY: need-duckdb
need-duckdb:
	@[ -d bin/duckdb/node_modules/@duckdb/node-api ] || { \
		echo '==> installing DuckDB for node into bin/duckdb (tests ask it about traces)'; \
		mkdir -p bin/duckdb && npm install --silent --no-save --prefix bin/duckdb @duckdb/node-api@1.5.6-r.1; }

.PHONY: test
test: need-test ## run the tests that need gcc, python3 and the kernel; prints what it left out and which tests were skipped
	@GO='$(GO)' TEST_TIMEOUT='$(TEST_TIMEOUT)' .ci/test first $(TESTFLAGS)

.PHONY: test-rest
test-rest: need-test-all need-duckdb ## run what the last `make test` left out
	@GO='$(GO)' TEST_TIMEOUT='$(TEST_TIMEOUT)' .ci/test rest $(TESTFLAGS)

.PHONY: test-all
test-all: need-test-all need-duckdb ## run all tests in one go
	@GO='$(GO)' TEST_TIMEOUT='$(TEST_TIMEOUT)' .ci/test all $(TESTFLAGS)

# THROTTLE=N gives everything together N % of one processor.
THROTTLE ?=
.PHONY: test-loaded
test-loaded: need-test ## run `make test` next to stress-ng, or with THROTTLE=30 in a cgroup with 30 % of a processor
	@.ci/need 'to load the machine' stress-ng=stress-ng
	@GO='$(GO)' .ci/loaded '$(THROTTLE)' $(MAKE) --no-print-directory test

.PHONY: test-bpf
test-bpf: need-test-all ## run the tests of the tracer as root; they fail if BPF does not work
	@if [ "$$(id -u)" = 0 ]; then exec=; else exec="-exec=sudo -E env PATH=$$PATH"; fi; \
	RTRACE_REQUIRE_BPF=1 $(GO) test -count=1 -timeout $(TEST_TIMEOUT) $(TESTFLAGS) $${exec:+"$$exec"} ./tracer/... ./cmd/rtrace-bpf/...

# Rounds with random numbers until SOAK_TIME is over, and one run of at least
# SOAK_EVENTS events. SOAK_SEED=N begins with the round of that seed.
SOAK_TIME ?= 30m
SOAK_EVENTS ?= 10000000
SOAK_SEED ?=

.PHONY: soak
soak: need-test-all ## compare traces with what the programs did, with new random numbers, for SOAK_TIME, as root
	@if [ "$$(id -u)" = 0 ]; then exec=; else exec="-exec=sudo -E env PATH=$$PATH"; fi; \
	tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && trap 'exit 130' INT TERM && \
	TMPDIR="$$tmp" RTRACE_REQUIRE_BPF=1 SOAK_TIME='$(SOAK_TIME)' SOAK_EVENTS='$(SOAK_EVENTS)' SOAK_SEED='$(SOAK_SEED)' \
		$(GO) test -count=1 -v -timeout 0 -run '^TestSoak$$' $(TESTFLAGS) $${exec:+"$$exec"} ./cmd/rtrace-bpf

VERIFY_SCALE ?= 1
.PHONY: verify-sites
verify-sites: build ## compare more than ten million allocations of programs with --allocations=paths, as root
	@.ci/need 'this records python3, sqlite3, redis and node' python3=python3 sqlite3=sqlite3 redis-server=redis-server redis-benchmark=redis-tools node=nodejs c++=g++
	@if [ "$$(id -u)" = 0 ]; then sudo=; else sudo='sudo -E'; fi; $$sudo .ci/verify-sites '$(CURDIR)/bin/rtrace-bpf' '$(VERIFY_SCALE)'

SOAK_ROUNDS ?= 1000
SOAK_KILLS ?= 100
SOAK_LAUNCHES ?= 1000

.PHONY: soak-rounds
soak-rounds: need-test-all ## attach and detach SOAK_ROUNDS times under load, start SOAK_LAUNCHES commands, kill tracers and processes, as root
	@if [ "$$(id -u)" = 0 ]; then exec=; else exec="-exec=sudo -E env PATH=$$PATH"; fi; \
	RTRACE_REQUIRE_BPF=1 RTRACE_ROUNDS='$(SOAK_ROUNDS)' RTRACE_KILLS='$(SOAK_KILLS)' RTRACE_LAUNCHES='$(SOAK_LAUNCHES)' RTRACE_EVERY_WAY=1 \
		$(GO) test -count=1 -v -p 1 -timeout 0 -run '^(TestRoundsUnderLoad|TestHarmless|TestLaunchMany|Test.*KilledAtRandom)$$' $(TESTFLAGS) $${exec:+"$$exec"} \
		./tracer ./cmd/rtrace-bpf

# Virtual machines of another architecture need their own programs.
ARCH ?= $(shell $(GO) env GOHOSTARCH)
KERNELS ?= $(if $(filter arm64,$(ARCH)),,5.10 )6.1 6.12 6.12:preempt 6.12:lockdown 6.18
BACKEND ?= auto
VMTESTFLAGS ?=

.PHONY: need-vmtest
need-vmtest: need-test-all
	@case '$(ARCH)' in \
	arm64) .ci/need 'to run virtual machines' qemu-system-aarch64=qemu-system-arm;; \
	*) .ci/need 'to run virtual machines' qemu-system-x86_64=qemu-system-x86;; \
	esac
	@$(BUILD) -o bin/ ./vmtest/cmd/vmtest
	@if [ '$(BACKEND)' = vng ]; then .ci/need-vng bin/vmtest; fi

.PHONY: vmtest
vmtest: need-vmtest ## run the tests of the tracer on the KERNELS, in virtual machines (vmtest/README.md)
	@bin/vmtest matrix --arch '$(ARCH)' --backend '$(BACKEND)' --kernels '$(KERNELS)' $(VMTESTFLAGS) || \
		{ status=$$?; [ $$status = 4 ] || exit $$status; }

# One test of each kind: programs load, exact counts with one and eight threads, exact
# stacks of C and C++, the end of a trace, the command. Each way to boot has one kernel.
# A name without a test is a failure.
SMOKE_KERNELS := 6.1:qemu 6.12:vng
SMOKE_TESTS := TestProgramsLoad//^(best|oldest)$$|TestEveryCallOfEveryThread//-ring-task-cookie|TestStacksOfEveryVariant//-frees|^TestStop$$|TestRecordsUntilTheProcessEnds

.PHONY: vmtest-smoke
vmtest-smoke: need-vmtest ## run a few of these tests on 6.1 with QEMU and on 6.12 with virtme-ng
	@.ci/need-vng bin/vmtest || printf '\n*** virtme-ng cannot be installed, see above ***\n\n'
	@bin/vmtest matrix --kernels '$(SMOKE_KERNELS)' --or-qemu --boot-limit 150s --limit 15m \
		--run '$(SMOKE_TESTS)' $(VMTESTFLAGS) ./tracer ./cmd/rtrace-bpf

.PHONY: libc-collection
libc-collection: ## download the allocators of four Debian releases into the user's cache, for the tests of tracer/site/cover
	@$(GO) run ./vmtest/cmd/collection

.PHONY: vmtest-mutants
vmtest-mutants: need-vmtest need-clang ## break the programs of bpf/ on purpose, in virtual machines: the tests must fail
	@vmtest/mutants/run '$(GO)' '$(CLANG)' '$(CURDIR)/bin/vmtest' $(VMTESTFLAGS)

.PHONY: check
check: check-format check-vet check-cross check-lint check-generate check-mutants check-modules check-text check-guarantees ## run all checks

.PHONY: check-mutants
check-mutants: need-git need-clang ## check that the mutants of bpf/ can be made (make vmtest-mutants runs them)
	vmtest/mutants/check '$(CLANG)'

.PHONY: check-format
check-format: need-go need-git ## check the format of Go and C
	$(TOOL) golangci-lint fmt --diff
	@.ci/need 'to check the form of C files' $(CLANG_FORMAT)=clang-format
	@if $(CLANG_FORMAT) --version | grep -q 'version $(CLANG_VERSION)\.'; then \
		echo '$(CLANG_FORMAT) --dry-run -Werror bpf testdata/progs internal/replay'; $(CLANG_FORMAT) --dry-run -Werror $(C_FILES); \
	else \
		printf '\n*** SKIPPED: the form of C files: it is checked with clang-format $(CLANG_VERSION), this is\n*** %s ***\n\n' "$$($(CLANG_FORMAT) --version)"; \
	fi

.PHONY: check-vet
check-vet: need-go ## vet for Linux; portable packages also for other systems and for big-endian
	GOARCH=amd64 $(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./...
	@portable=$$($(GO) list ./... | grep -vE '$(LINUX_ONLY)') && for on in darwin/arm64 windows/amd64 linux/s390x; do \
		echo "GOOS=$${on%/*} GOARCH=$${on#*/} $(GO) vet (portable packages)"; \
		GOOS=$${on%/*} GOARCH=$${on#*/} $(GO) vet $$portable || exit; \
	done

# The tests are only linked; vmtest runs them. GLib is available only for this machine.
.PHONY: check-cross
check-cross: need-go ## check that tests and the programs that they trace compile for arm64
	@echo 'GOARCH=arm64 $(GO) test -exec true ./...'; \
		out=$$(GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) test -count=1 -exec true ./... 2>&1) || { echo "$$out"; exit 1; }
	@.ci/need 'to compile C for arm64' clang=clang /usr/aarch64-linux-gnu/include/stdlib.h=libc6-dev-arm64-cross
	@for file in $$(git ls-files 'testdata/progs/*.c' ':!testdata/progs/resources_glib.c'); do \
		clang --target=aarch64-linux-gnu -nostdlibinc -isystem /usr/aarch64-linux-gnu/include \
			-std=gnu11 -O2 -Wall -Wextra -Werror -fsyntax-only "$$file" || exit; \
	done

.PHONY: check-lint
check-lint: need-go ## run staticcheck, the rules for imports, and other linters (.golangci.yml)
	$(TOOL) golangci-lint run ./...

.PHONY: check-generate
check-generate: need-clang ## generate in a copy and compare with the committed files
	@.ci/same-generated '$(GO)' '$(CLANG)' $(CLANG_VERSION)

.PHONY: check-modules
check-modules: need-go ## check that go.mod and go.sum are complete and correct
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: check-text
check-text: need-git ## check for loose ends, for paths of somebody's machine, and for turns that are not plain English
	@! git grep -nIwE 'TOD[O]|FIXM[E]|XX[X]' -- ':!testdata/corpus' || { echo 'error: loose ends' >&2; exit 1; }
	@! git grep -nIE '(^|[^[:alnum:]_.])/(roo[t]|wor[k]|far[m]|home/[[:alnum:]]+)/' -- ':!testdata/corpus' ':!*_test.go' || { echo 'error: paths of a machine' >&2; exit 1; }
	@.ci/banned-turns

.PHONY: check-guarantees
check-guarantees: need-git ## check that the tests that docs/guarantees.md names exist
	@for test in $$(grep -o '`Test[A-Za-z0-9]*`' docs/guarantees.md | tr -d '`' | sort -u); do \
		git grep -q "^func $$test(" -- '*_test.go' || { echo "error: docs/guarantees.md names $$test, which is no test" >&2; exit 1; }; \
	done

.PHONY: need-git
need-git:
	@.ci/need 'to list the files of the project' git=git

.PHONY: need-clang
need-clang: need-go
	@.ci/need 'to compile BPF' $(CLANG)=clang llvm-strip=llvm

.PHONY: generate
generate: need-clang ## compile bpf/ into tracer/
	BPF2GO_CC=$(CLANG) $(GO) generate .

.PHONY: fmt
fmt: need-go need-git ## format Go and C
	$(TOOL) golangci-lint fmt
	@.ci/need 'to put C files into form' $(CLANG_FORMAT)=clang-format
	$(CLANG_FORMAT) -i $(C_FILES)

.PHONY: fuzz
fuzz: need-go ## run each fuzz target of FUZZ_PACKAGES (all) for FUZZTIME (10s); a failure does not stop the others
	@failed=; for package in $$($(GO) list $(FUZZ_PACKAGES)); do \
		targets=$$($(GO) test -list '^Fuzz' "$$package") || { echo "$$targets"; failed="$$failed $$package"; continue; }; \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "==> $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$package" || failed="$$failed $$package:$$target"; \
		done; \
	done; \
	[ -z "$$failed" ] || { echo 'error: these failed:' >&2; printf '  %s\n' $$failed >&2; exit 1; }

# CALLS=N makes traces of N calls together, of 91 bytes each.
CALLS ?= 2000000
.PHONY: bench-questions
bench-questions: need-duckdb ## measure rtrace over many traces, and DuckDB over their tables; CALLS=100000000 needs 10 GB
	CALLS=$(CALLS) $(GO) test -run '^$$' -bench '^BenchmarkQuestions$$' -benchtime 1x -timeout 2h -count $(or $(COUNT),1) ./cmd/rtrace

.PHONY: bench
bench: need-test-all ## run the benchmarks; compare two outputs with benchstat (CONTRIBUTING.md)
	@.ci/need 'benchmarks record it under load' nginx=nginx-light
	$(GO) test -run '^$$' -bench . -benchmem -timeout 2h -count $(or $(COUNT),1) $(TESTFLAGS) ./...

.PHONY: docs
docs: need-go ## write the generated pages of docs/cli, docs/formats and docs/design
	$(GO) test -count=1 -run '^(TestDocs|TestFormatPage|TestPackagePage)$$' ./cmd/rtrace ./cmd/rtrace-bpf ./internal/wire/sprtrace ./internal/wire/swap ./internal/dataset ./internal/testutil -update

.PHONY: share
share: build ## write manual pages and completion for bash, zsh and fish into bin/share
	rm -rf bin/share
	bin/rtrace --generate bin/share
	bin/rtrace-bpf --generate bin/share

.PHONY: install
install: share install-files ## install into PREFIX (/usr/local) under DESTDIR, with the links of rtrace

# BIN is the folder of the programs; their manual pages and completion are in bin/share.
BIN ?= bin
.PHONY: install-files
install-files:
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 $(BIN)/rtrace-bpf $(BIN)/rtrace '$(DESTDIR)$(PREFIX)/bin'
	for name in $(RTRACE_LINKS:%=rtrace-%) $(SP_RTRACE_LINKS:%=sp-rtrace-%) $(OTHER_LINKS); do \
		ln -sf rtrace "$(DESTDIR)$(PREFIX)/bin/$$name" || exit; \
	done
	for file in $$(cd bin/share && find . -type f); do \
		install -D -m 644 "bin/share/$$file" "$(DESTDIR)$(PREFIX)/share/$$file" || exit; \
	done

# Programs without cgo are static, so packages need nothing else.
ARCHES ?= amd64 arm64
.PHONY: release
release: share ## make archives, packages, images, SBOMs and checksums for ARCHES in dist/ (docs/release.md)
	rm -rf dist
	for arch in $(ARCHES); do \
		GOOS=linux GOARCH=$$arch $(BUILD) -o dist/build/$$arch/ ./cmd/rtrace-bpf ./cmd/rtrace || exit; \
	done
	@GO='$(GO)' MAKE='$(MAKE)' release/make '$(VERSION)' $(ARCHES)

.PHONY: check-release
check-release: need-test-all ## make the release for all architectures twice, with all code compiled twice, and compare and install it, as root
	@.ci/need 'to read images of several architectures' skopeo=skopeo
	RTRACE_RELEASE=whole $(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run '^TestRelease$$' ./release

# SIGN is a command that signs the file that follows it.
SIGN ?= gpg --armor --detach-sign
.PHONY: sign
sign: ## check dist/ and sign its SHA256SUMS with the command SIGN (gpg)
	cd dist && sha256sum --check --strict --quiet SHA256SUMS
	$(SIGN) dist/SHA256SUMS

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
