package transporttest

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopgas/transport"
)

// RequireVariable names the environment variable that lists, with commas, the providers which must work here:
// what would be a skip for one of them is a failure.
const RequireVariable = "PGAS_REQUIRE"

// SkipUnless returns when err is nil. It skips the test, with the error's words, when err wraps
// transport.ErrUnsupported, and fails it on any other error. Where the provider is listed in PGAS_REQUIRE it
// fails instead of skipping. The provider is listed if an entry is a word of the error, a part of the path of
// the package that calls, or stands in the test's name.
func SkipUnless(tb testing.TB, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	if !errors.Is(err, transport.ErrUnsupported) {
		tb.Fatal(err)
	}
	var caller string
	if pc, _, _, ok := runtime.Caller(1); ok {
		caller = runtime.FuncForPC(pc).Name()
	}
	if name := required(os.Getenv(RequireVariable), err.Error(), caller, tb.Name()); name != "" {
		tb.Fatalf("%s demands %q: %v", RequireVariable, name, err)
	}
	tb.Skip(err)
}

// required returns the entry of list that one of the places names.
func required(list, text, caller, test string) string {
	words := strings.FieldsFunc(strings.ToLower(text+" "+caller), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		if strings.Contains(strings.ToLower(test), name) {
			return name
		}
		if slices.Contains(words, name) {
			return name
		}
	}
	return ""
}
