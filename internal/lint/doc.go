// Package lint holds the house rules of this module in executable form: who may import whom, where the clock,
// the environment, goroutines, unsafe and cgo may be touched, and what shape a package has. Its tests run the
// rules over the whole tree, so that `go test ./internal/lint` is the check and needs no other tool.
//
// # Terms
//
//   - Room: a package, or a family of packages matched by a pattern such as examples/*. The table in rooms.go
//     is the picture of docs/architecture.md read from top to bottom.
//   - Rule: a check of one package that yields findings. Rules read syntax trees; imports are not resolved, so
//     that files for every platform and build tag are seen at once.
//   - Grant: a written exception, by rule and room, with its reason. The table in grants.go holds all of them.
//   - Finding: a place, the rule that objects, and a sentence that says what to do instead.
//
// # Life of a run
//
// Load asks the go command for the packages and parses their files. Check gives each package to each rule,
// drops what a grant covers and returns the rest sorted by place. Words reads every tracked file as text.
//
// # Invariants
//
//   - L1: a package in no room is a finding; nothing is outside the table.
//   - L2: an arrow of the table points down only, so the table cannot allow a cycle.
//   - L3: test files (_test.go) are bound by the length rule and by Words, and by no other.
//   - L4: every rule has a test that feeds it a bad snippet and sees it object.
//
// # Limits
//
// What needs types of other packages is not seen: a goroutine started by a library, a clock read behind a
// function value, a loop over an atomic load. These stay with the reviewer.
package lint
