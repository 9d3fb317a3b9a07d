package timeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVerify: each rule of the format is one that a file can break.
func TestVerify(t *testing.T) {
	const names = `{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"rank 1"}},{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"waits"}}`
	whole := func(events string) string {
		return `{"displayTimeUnit":"ns","traceEvents":[` + strings.TrimSuffix(names+","+events, ",") + `]}`
	}
	for events, want := range map[string]Counts{
		``: {Processes: 1},
		`{"name":"a","ph":"X","pid":1,"tid":2,"ts":1.5,"dur":2},{"name":"b","ph":"X","pid":1,"tid":2,"ts":2,"dur":1}`:                                            {Spans: 2, Processes: 1, Lanes: 1},
		`{"name":"a","ph":"B","pid":1,"tid":2,"ts":1},{"name":"b","ph":"i","s":"t","pid":1,"tid":2,"ts":2},{"name":"a","ph":"E","pid":1,"tid":2,"ts":3}`:         {Spans: 1, Instants: 1, Processes: 1, Lanes: 1},
		`{"name":"a","ph":"s","cat":"c","id":7,"pid":1,"tid":2,"ts":1},{"name":"a","ph":"f","bp":"e","cat":"c","id":7,"pid":1,"tid":2,"ts":1}`:                   {Flows: 1, Processes: 1, Lanes: 1},
		`{"name":"thread_sort_index","ph":"M","pid":1,"tid":2,"args":{"sort_index":0}},{"name":"a","ph":"X","cat":"c","pid":1,"tid":2,"ts":0,"dur":0,"args":{}}`: {Spans: 1, Processes: 1, Lanes: 1},
	} {
		got, err := Verify(strings.NewReader(whole(events)))
		require.NoError(t, err, events)
		require.Equal(t, want, got, events)
	}
	for file, want := range map[string]string{
		``:  "EOF",
		`7`: "number",
		`{"displayTimeUnit":"ns","traceEvents":[]} x`:                  "behind the end",
		`{"displayTimeUnit":"s","traceEvents":[]}`:                     "displayTimeUnit",
		`{"displayTimeUnit":"ns"}`:                                     "no traceEvents",
		`{"displayTimeUnit":"ns","traceEvents":[],"x":1}`:              "unknown field",
		whole(`{"ph":"X"}`):                                            "no name",
		whole(`{"name":"a","pid":1,"tid":2}`):                          "no ph",
		whole(`{"name":"a","ph":"X","tid":2}`):                         "no pid",
		whole(`{"name":"a","ph":"X","pid":1,"tid":2}`):                 "no ts",
		whole(`{"name":"a","ph":"Q","pid":1,"tid":2,"ts":1}`):          "none that is written",
		whole(`{"name":"a","ph":"X","pid":1,"tid":2,"ts":-1,"dur":1}`): "before the beginning",
		whole(`{"name":"a","ph":"X","pid":1,"tid":2,"ts":1}`):          "dur",
		whole(`{"name":"a","ph":"X","pid":"1","tid":2,"ts":1}`):        "cannot unmarshal",
		whole(`{"name":"a","ph":"i","pid":1,"tid":2,"ts":1}`):          "scope",
		whole(`{"name":"a","ph":"X","pid":1,"tid":3,"ts":1,"dur":1}`):  "has no name",
		whole(`{"name":"a","ph":"X","pid":1,"tid":2,"ts":1,"dur":5},{"name":"b","ph":"X","pid":1,"tid":2,"ts":2,"dur":5}`): "reaches beyond",
		// 1.001 µs, times 1000 and cut off, are 1000 ns: the first one ends at 1001.
		whole(`{"name":"a","ph":"X","pid":1,"tid":2,"ts":0.001,"dur":1},{"name":"b","ph":"X","pid":1,"tid":2,"ts":1.001,"dur":5}`):           "reaches beyond",
		whole(`{"name":"a","ph":"X","pid":1,"tid":2,"ts":1,"dur":1},{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"x"}}`):    "named behind",
		whole(`{"name":"a","ph":"B","pid":1,"tid":2,"ts":1}`):                                                                                "do not end",
		whole(`{"name":"a","ph":"B","pid":1,"tid":2,"ts":1},{"name":"b","ph":"E","pid":1,"tid":2,"ts":2}`):                                   "begun last",
		whole(`{"name":"a","ph":"s","id":1,"pid":1,"tid":2,"ts":1}`):                                                                         "without id or cat",
		whole(`{"name":"a","ph":"s","cat":"c","id":1,"pid":1,"tid":2,"ts":1}`):                                                               "flows do not end",
		whole(`{"name":"a","ph":"f","cat":"c","id":1,"pid":1,"tid":2,"ts":1}`):                                                               "has not begun",
		whole(`{"name":"a","ph":"s","cat":"c","id":1,"pid":1,"tid":2,"ts":2},{"name":"a","ph":"f","cat":"c","id":1,"pid":1,"tid":2,"ts":1}`): "back in time",
		whole(`{"name":"process_name","ph":"M","pid":1,"tid":0}`):                                                                            "without args.name",
		whole(`{"name":"thread_sort_index","ph":"M","pid":1,"tid":0,"args":{"sort_index":"1"}}`):                                             "whole number",
		whole(`{"name":"colour","ph":"M","pid":1,"tid":0}`):                                                                                  "none that is written",
	} {
		_, err := Verify(strings.NewReader(file))
		require.ErrorIs(t, err, ErrFormat, file)
		require.ErrorContains(t, err, want, file)
	}
}
