package timeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhichTransfersAreKept(t *testing.T) {
	r := NewRecorder()
	require.True(t, r.Keeps(Least))
	require.True(t, r.Keeps(1<<40))
	kept := 0
	for range 10 * Every {
		if r.Keeps(8) {
			kept++
		}
	}
	require.Equal(t, 10, kept)
}

func TestRecorderCountsWhatItLoses(t *testing.T) {
	r := NewRecorder()
	var wg sync.WaitGroup
	const each = room / 2
	for range 3 {
		wg.Go(func() {
			for range each {
				r.Add(&Span{Op: "put"})
			}
		})
	}
	wg.Wait()
	spans, lost := r.Take()
	require.Len(t, spans, room)
	require.EqualValues(t, 3*each-room, lost)
	r.Add(&Span{Op: "get"})
	spans, lost = r.Take()
	require.Equal(t, []Span{{Op: "get"}}, spans)
	require.EqualValues(t, 3*each-room, lost, "in all")
	spans, _ = r.Take()
	require.Empty(t, spans)
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Add(&Span{Op: "put", Bytes: 8}); r.Take() }), "L1")
}

// file is a rank's file with spans.
func file(t testing.TB, h Head, lost uint64, spans ...Span) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, h)
	for i := range spans {
		w.Write(&spans[i], "main.go:7")
	}
	require.NoError(t, w.Flush(lost))
	return b.Bytes()
}

func source(b []byte) Source {
	return Source{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// merged is a merged file as a reader of the format sees it.
type merged struct {
	DisplayTimeUnit string
	TraceEvents     []struct {
		Name, Ph, Cat, S string
		PID, TID         int
		TS, Dur          float64
		Args             map[string]any
	}
}

func merge(t testing.TB, sources ...Source) (merged, Summary) {
	t.Helper()
	var out bytes.Buffer
	sum, err := Merge(&out, sources)
	require.NoError(t, err)
	var m merged
	require.NoError(t, json.Unmarshal(out.Bytes(), &m), "%s", out.Bytes())
	_, err = Verify(&out)
	require.NoError(t, err)
	return m, sum
}

func TestMergeAlignsClocks(t *testing.T) {
	const ms = time.Millisecond
	a := file(t, Head{Rank: 0, Node: "n", PID: 70, Zero: 5_000_000}, 0, Span{At: 10 * ms, Took: 2*ms + 3, Op: "barrier", Peer: -1, Kind: Collective})
	b := file(t, Head{Rank: 1, Zero: 4_000_000}, 9, Span{At: 11 * ms, Took: 1, Op: "put", Peer: 0, Bytes: 4096, Kind: Transfer}, Span{At: 12 * ms, Op: "get", Peer: 0, Kind: Transfer})
	m, sum := merge(t, source(a), source(b))
	require.Equal(t, Summary{Ranks: 2, Spans: 3, Lost: 9}, sum)
	byName := map[string]int{}
	for i, e := range m.TraceEvents {
		if e.Ph != "M" {
			byName[e.Name] = i
		} else if e.Name == "process_name" {
			byName[e.Args["name"].(string)] = e.PID
		}
	}
	require.Equal(t, 0, byName["rank 0 on n"])
	require.Equal(t, 1, byName["rank 1 (9 spans lost)"])
	barrier, put, get := m.TraceEvents[byName["barrier"]], m.TraceEvents[byName["put"]], m.TraceEvents[byName["get"]]
	require.Equal(t, []any{"X", "collective", 11_000.0, 2000.003}, []any{barrier.Ph, barrier.Cat, barrier.TS, barrier.Dur}, "rank 0 began a millisecond later")
	require.NotContains(t, barrier.Args, "rank", "it is for nobody in particular")
	require.Equal(t, []any{"X", 11_000.0, 0.001}, []any{put.Ph, put.TS, put.Dur})
	require.Equal(t, map[string]any{"rank": 0.0, "bytes": 4096.0, "at": "main.go:7"}, put.Args)
	require.Equal(t, []any{"i", "t", 12_000.0}, []any{get.Ph, get.S, get.TS}, "nobody knows how long")
}

// TestMergeTurnsClocks: times of another host, whose clock runs fast, stand where they were by the picture's.
func TestMergeTurnsClocks(t *testing.T) {
	a := file(t, Head{Rank: 0, Zero: 1000}, 0, Span{At: 0, Took: 4000, Op: "here", Peer: -1})
	b := file(t, Head{Rank: 1, Zero: 9_000_000}, 0, Span{At: 2000, Took: 4000, Op: "there", Peer: -1}, Span{At: 7000, Took: 1, Op: "short", Peer: -1}, Span{At: 8000, Op: "point", Peer: -1})
	far := source(b)
	far.Here = func(there int64) int64 { return 5000 + (there-9_000_000)/2 }
	m, sum := merge(t, source(a), far)
	require.Equal(t, Summary{Ranks: 2, Spans: 4}, sum)
	got := map[string][2]float64{}
	for _, e := range m.TraceEvents {
		if e.Ph != "M" {
			got[e.Name] = [2]float64{e.TS, e.Dur}
		}
	}
	require.Equal(t, map[string][2]float64{"here": {0, 4}, "there": {5, 2}, "short": {7.5, 0.001}, "point": {8, 0}}, got)
}

// L3: whatever overlaps, no lane does.
func TestLanesDoNotOverlap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var rows []Row
		for range 1 + rnd.IntN(300) {
			rows = append(rows, Row{At: rnd.Int64N(2000), Took: rnd.Int64N(100), Kind: Kind(rnd.IntN(int(kinds)))})
		}
		lanes := lanesOf(rows)
		end := map[int]int64{}
		for i, r := range rows {
			if last, ok := end[lanes[i]]; ok {
				require.Greater(t, r.At, last)
			}
			end[lanes[i]] = r.At + r.Took
			require.True(t, strings.HasPrefix(laneName(lanes[i]), r.Kind.String()+"s"))
		}
	}
	require.Equal(t, "waits", laneName(lanesOf([]Row{{}})[0]))
	rows := make([]Row, 2*lanesPerKind)
	for i := range rows {
		rows[i].Took = 5
	}
	for _, lane := range lanesOf(rows) {
		require.Equal(t, "wait", Kind((lane-1)/lanesPerKind).String(), "no kind takes another's lanes")
	}
}

// TestSpansThatTouch have lanes of their own: cut off to nanoseconds, begin and length each, one would reach into the next.
func TestSpansThatTouch(t *testing.T) {
	m, _ := merge(t, source(file(t, Head{}, 0, Span{At: 1000, Took: 9001, Op: "a", Peer: -1}, Span{At: 10_001, Took: 5, Op: "b", Peer: -1}, Span{At: 10_002, Took: 1, Op: "c", Peer: -1})))
	lanes := map[string]int{}
	for _, e := range m.TraceEvents {
		if e.Ph == "X" {
			lanes[e.Name] = e.TID
		}
	}
	require.Equal(t, map[string]int{"a": 1, "b": 2, "c": 1}, lanes)
}

// L2: a rank that was killed leaves a file that ends anywhere.
func TestFilesThatEndAnywhere(t *testing.T) {
	whole := file(t, Head{Rank: 3}, 1, Span{Op: "a", Took: 1}, Span{Op: "b", Took: 1})
	headLine := bytes.IndexByte(whole, '\n')
	for cut := range whole {
		var out bytes.Buffer
		sum, err := Merge(&out, []Source{source(whole[:cut])})
		if cut < headLine {
			require.ErrorIs(t, err, ErrFormat)
			continue
		}
		require.NoError(t, err)
		require.True(t, json.Valid(out.Bytes()))
		require.Equal(t, 1, sum.Ranks)
		ends := 0 // of whole rows
		for i := headLine + 1; i < cut; i++ {
			if whole[i] == '}' && !bytes.Contains(whole[bytes.LastIndexByte(whole[:i], '\n'):i], []byte("lost")) {
				ends++
			}
		}
		require.Equal(t, ends, sum.Spans, "%s", whole[:cut])
	}
}

func TestMergeWithoutSomeRanks(t *testing.T) {
	none := Source{Open: func() (io.ReadCloser, error) { return nil, fs.ErrNotExist }}
	_, sum := merge(t, none, source(file(t, Head{Rank: 1}, 0, Span{Op: "a"})), source([]byte("noise")))
	require.Equal(t, Summary{Ranks: 1, Spans: 1}, sum)
	_, err := Merge(io.Discard, []Source{none, none})
	require.ErrorIs(t, err, fs.ErrNotExist)
	m, _ := merge(t)
	require.Empty(t, m.TraceEvents)
}

type brokenWriter struct{}

var errBroken = errors.New("disk full")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestErrorsOfTheDisk(t *testing.T) {
	_, err := Merge(brokenWriter{}, []Source{source(file(t, Head{}, 0, Span{Op: "a"}))})
	require.ErrorIs(t, err, errBroken)
	w := NewWriter(brokenWriter{}, Head{})
	require.ErrorIs(t, w.Flush(0), errBroken)
	require.ErrorIs(t, w.Flush(0), errBroken, "it stays")
}

func TestAFileHoldsSoMuch(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, Head{})
	require.Equal(t, MostRows, w.most)
	w.most = 100
	for range w.most + 5 {
		w.Write(&Span{Op: "put", Took: 1}, "")
	}
	require.NoError(t, w.Flush(2))
	_, rows, lost, err := read(&b)
	require.NoError(t, err)
	require.Len(t, rows, 100)
	require.EqualValues(t, 7, lost)
}

// FuzzRead: whatever files say, what is merged of them is JSON, or an error. Rows that a rank did not write may lie across each other or
// have no name, so Verify may find fault with them.
func FuzzRead(f *testing.F) {
	f.Add(file(f, Head{Rank: 1, Node: "n"}, 3, Span{Op: "put", Took: 5, Bytes: 8, Kind: Transfer}))
	f.Add([]byte(`{"rank":1}` + "\n" + `{"k":200,"t":-5,"d":-9}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		if _, err := Merge(&out, []Source{source(b)}); err == nil {
			require.True(t, json.Valid(out.Bytes()))
			_, _ = Verify(&out) // it does not crash
		}
	})
}
