export GOFLAGS := $(shell go env GOFLAGS) -gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'# a third less to compile: no debuggers' data, which but one test needs and asks for, and garbage collected only where a compiler holds a GiB
TOOL := go tool -modfile=tools/go.mod
STEP := @tools/step.sh
LONG := ./cmd/pgasbench ./transport/tcp ./sync/coll ./transport/soft ./test/model ./transport/transporttest ./test/litmus ./test/failure# begin early, those that wait among those that compute, so that no core is idle at the end
HOST = ./pgas ./window ./sync $(LONG) $$(go list ./... | grep -v -e test/vm -e test/slurm -e test/hosts -e test/docs -e test/peers -e /lint)# what runs there is the same each time
ASIDE = -e gopgas/internal/ -e gopgas/pgas/grid -e gopgas/pgas/rpc -e gopgas/pgas/hashmap -e gopgas/pgas/algo# tested with it while the machines keep but one core busy
OURS = $$(go list $(HOST) | grep -v -e examples$$ -e /sim$$ -e cmd/pgasrun -e pgasbench/figures)# with the race detector: the examples' own tests run them with it, in virtual time nothing is concurrent, and what pgasrun does concurrently is in internal/launch and agent
MEASURES = TestFiguresOfProtocols|TestPingCounts|TestSizesOfBuckets|TestTargets|TestSweep|TestWorkingSets|TestRowsOverNIC|TestSettle# which the detector makes minutes long; what they measure is tested elsewhere
.PHONY: help deps test check machines static bench figures fmt
help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile
deps: ; $(STEP) 'test dependencies' tools/install-test-deps.sh # Debian packages the tests need; does nothing if they are there
test: deps ## build everything and run all tests, with few rounds and worlds (some ten minutes on two cores)
	go test -p 3 -short -vet=off -count=1 -timeout 12m ./pgas ./window ./sync ./test/vm $(LONG) ./...
check: deps ## everything else that must hold before a merge (an hour on two cores)
	$(STEP) 'go vet' go vet ./... # compiles for both of the next two, which else would compile the same at the same time
	@$(MAKE) --no-print-directory -j2 -Oline machines static
	$(STEP) 'tests, race detector' env GORACE=atexit_sleep_ms=20 go test -p 3 -race -short -vet=off -count=1 -timeout 12m -skip '^($(MEASURES))$$' $$(go list $(OURS) | grep -v $(ASIDE))
	$(STEP) 'tests, invariants, no cgo' env CGO_ENABLED=0 go test -p 3 -tags invariants -vet=off -count=1 -timeout 8m -skip '^TestRaceDetectorSeesConflicts$$' $(HOST) # which has run
machines: # they keep one core busy, and static the other
	$(STEP) 'machines of their own' go test -vet=off -count=1 -timeout 50m -run 'Verbs.|Yama' ./test/vm -args -vm.long
static:
	$(STEP) 'gofumpt' tools/empty.sh $(TOOL) gofumpt -l .
	$(STEP) 'go fix' go fix -diff ./...
	$(STEP) 'go generate' tools/nodiff.sh go generate ./...
	$(STEP) 'go vet, invariants' env CGO_ENABLED=0 go vet -tags invariants ./... # compiles for the tests with them
	$(STEP) 'go vet, darwin' env GOOS=darwin go vet ./...
	$(STEP) 'arm64: vet, emulated tests' tools/arm64.sh
	$(STEP) 'staticcheck' $(TOOL) staticcheck -checks all,-ST1000,-ST1020,-ST1021,-ST1022 ./... # comments are internal/lint's business
	$(STEP) 'gcassert' tools/gcassert.sh
	$(STEP) 'internal/lint' go test -count=1 ./internal/lint
	$(STEP) 'fuzz targets, a minute' tools/fuzz.sh 60
	$(STEP) 'compile, race detector' go list -race -test -export $(OURS) # while the machines go on: its tests are next
	$(STEP) 'internal, race detector' env GORACE=atexit_sleep_ms=20 go test -p 1 -race -short -vet=off -count=1 -timeout 12m $$(go list $(OURS) | grep $(ASIDE))
	$(STEP) 'benchmarks, once' go test -vet=off -run '^$$' -bench . -benchtime 1x $$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs dirname | sort -u)
bench: ## our table beside the peers' (test/peers/run.sh), then all Go benchmarks ten times (raw: bin/bench.txt)
	@mkdir -p bin && OUT=bin test/peers/run.sh >bin/peers.md && cat bin/peers.md
	go test -run '^$$' -bench . -benchmem -count 10 -timeout 1h ./... >bin/bench.txt
	@$(TOOL) benchstat bin/bench.txt
figures: ## make the papers' figures anew (docs/figures, docs/reproduction.md); some 11 minutes on a quiet machine
	tools/figures.sh docs/figures
fmt: ## format, and apply what go fix knows
	$(TOOL) gofumpt -w . && go fix ./...
