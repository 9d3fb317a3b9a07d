package trace

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func randomEvents(n int) []Event {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([]Event, n)
	at := int64(0)
	for i := range out {
		at += rng.Int64N(1000)
		e := Event{
			At: at, Took: rng.Int64N(1 << 40), Addr: rng.Uint64N(1 << 57), Bytes: rng.Uint64N(1 << 30),
			Peer: rng.Int32N(100) - 1, Kind: Kind(1 + rng.IntN(int(kindsEnd)-1)),
		}
		for j := range rng.IntN(MaxStack + 1) {
			e.Stack[j] = uintptr(rng.IntN(3) + 1)
		}
		if id := rng.Uint32N(3); id > 0 {
			e.To = Range{ID: id, Start: uint64(id) << 40, Bytes: 1 << 31}
			e.Off = rng.Uint64N(1 << 30)
		}
		out[i] = e
	}
	return out
}

func encode(h Head, lost uint64, events []Event) []byte {
	var b bytes.Buffer
	w := NewWriter(&b, h)
	for i := range events {
		w.Write(&events[i])
	}
	w.Lose(lost)
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, n := range []int{0, 1, 5000} {
		h := Head{Rank: 2, Ranks: 4, Node: 1}
		events := randomEvents(n)
		shuffled := slices.Clone(events)
		rand.New(rand.NewPCG(3, 3)).Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		f, err := Read(bytes.NewReader(encode(h, 7, shuffled)))
		require.NoError(t, err)
		require.Equal(t, h, f.Head)
		require.EqualValues(t, 7, f.Lost)
		require.Equal(t, 2, f.Format)
		require.ElementsMatch(t, events, f.Events)
		require.True(t, slices.IsSortedFunc(f.Events, func(a, b Event) int { return int(a.At - b.At) }))
	}
}

func TestCutFilesGiveTheirGoodPart(t *testing.T) {
	events := randomEvents(50)
	whole := encode(Head{Rank: 0, Ranks: 1}, 0, events)
	most := 0
	for n := len(magic) + 3; n < len(whole); n++ {
		f, err := Read(bytes.NewReader(whole[:n]))
		require.ErrorIs(t, err, ErrCut, "%d bytes of %d", n, len(whole))
		require.NotNil(t, f)
		require.Equal(t, events[:len(f.Events)], append([]Event{}, f.Events...))
		require.GreaterOrEqual(t, len(f.Events), most)
		most = len(f.Events)
	}
	require.Len(t, events, most)
}

func TestStrangeFiles(t *testing.T) {
	good := encode(Head{Rank: 0, Ranks: 1}, 0, randomEvents(1))
	head := append([]byte(magic), 0, 1, 0)
	for name, b := range map[string][]byte{
		"empty":              {},
		"something else":     []byte("PK\x03\x04 and so on"),
		"rank out of range":  append([]byte(magic), 4, 4, 0),
		"kind of record":     append(slices.Clone(head), 'X'),
		"kind of transfer":   append(slices.Clone(head), 'S', 0, 'E', 0, 0, 99, 0, 0, 0, 0),
		"no such stack":      append(slices.Clone(head), 'E', 0, 0, 1, 0, 0, 0, 0),
		"deep stack":         append(slices.Clone(head), 'S', 9),
		"count of events":    append(slices.Clone(head), 'Z', 1),
		"something after":    append(slices.Clone(good), 1),
		"long varint":        append(slices.Clone(head), 'L', 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255),
		"address space":      append(slices.Clone(head), 'S', 0, 'E', 0, 0, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1, 0),
		"no such range":      append(slices.Clone(head), 'S', 0, 'E', 0, 0, 1, 0, 0, 0, 0, 1, 0),
		"range without ID":   append(slices.Clone(head), 'R', 0, 0, 1),
		"past its range":     append(slices.Clone(head), 'S', 0, 'R', 1, 0, 9, 'E', 0, 0, 1, 0, 0, 4, 0, 1, 6),
		"range in version 1": append([]byte(magic1), 0, 1, 0, 'R', 1, 0, 1),
	} {
		f, err := Read(bytes.NewReader(b))
		require.ErrorIs(t, err, ErrFormat, name)
		require.Nil(t, f, name)
	}
}

// TestVersion1 is read: its events have no ranges.
func TestVersion1(t *testing.T) {
	f, err := Read(bytes.NewReader(append([]byte(magic1), 2, 4, 1, 'S', 1, 9, 'E', 20, 5, 2, 0, 100, 64, 6, 'Z', 1)))
	require.NoError(t, err)
	want := Event{At: 10, Took: 5, Kind: Get, Addr: 100, Bytes: 64, Peer: 3}
	want.Stack[0] = 9
	require.Equal(t, &File{Head: Head{Rank: 2, Ranks: 4, Node: 1}, Events: []Event{want}, Format: 1}, f)
}

// TestWhatLiesOutsideItsRangeIsWrittenWithout: no file is unreadable for one strange event.
func TestWhatLiesOutsideItsRangeIsWrittenWithout(t *testing.T) {
	to := Range{ID: 1, Start: 1 << 20, Bytes: 100}
	f, err := Read(bytes.NewReader(encode(Head{Ranks: 1}, 0, []Event{
		{Bytes: 101, Kind: Put, To: to}, {Bytes: 100, Kind: Put, To: to}, {Bytes: 1, Kind: Put, To: to, Off: 100}, {Kind: Put, Off: 7},
	})))
	require.NoError(t, err)
	require.Equal(t, []Range{{}, to, {}, {}}, []Range{f.Events[0].To, f.Events[1].To, f.Events[2].To, f.Events[3].To})
	require.Zero(t, f.Events[2].Off)
}

type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrorsSurface(t *testing.T) {
	w := NewWriter(brokenDisk{}, Head{Ranks: 1})
	for _, e := range randomEvents(5000) {
		w.Write(&e)
	}
	require.ErrorContains(t, w.Close(), "disk full")
}

func TestRecorderLosesNothingThatItHasRoomFor(t *testing.T) {
	r := NewRecorder(8)
	var b bytes.Buffer
	w := NewWriter(&b, Head{Ranks: 1})
	const goroutines, each = 4, 3 * ChunkEvents
	var wg sync.WaitGroup
	var flush sync.Mutex
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				if r.Add(&Event{At: int64(i), Addr: uint64(g), Kind: Put}) {
					flush.Lock()
					r.Flush(w)
					flush.Unlock()
				}
			}
		})
	}
	wg.Wait()
	r.Flush(w)
	require.NoError(t, w.Close())
	f, err := Read(&b)
	require.NoError(t, err)
	require.EqualValues(t, goroutines*each, uint64(len(f.Events))+f.Lost)
	next := [goroutines]int64{}
	for _, e := range f.Events {
		require.GreaterOrEqual(t, e.At, next[e.Addr])
		next[e.Addr] = e.At
	}
}

func TestRecorderCountsWhatItLoses(t *testing.T) {
	r := NewRecorder(2)
	for i := range 2*ChunkEvents + 5 {
		r.Add(&Event{At: int64(i), Kind: Get})
	}
	var b bytes.Buffer
	w := NewWriter(&b, Head{Ranks: 1})
	r.Flush(w)
	for i := range 10 {
		r.Add(&Event{At: int64(i), Kind: Get})
	}
	r.Flush(w)
	require.NoError(t, w.Close())
	f, err := Read(&b)
	require.NoError(t, err)
	require.EqualValues(t, 5, f.Lost)
	require.Len(t, f.Events, 2*ChunkEvents+10)
}

func TestAddAllocatesNothing(t *testing.T) {
	r := NewRecorder(4)
	var e Event
	require.Zero(t, testing.AllocsPerRun(3*ChunkEvents, func() { r.Add(&e) }))
}

func TestDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run[1] *") // a name, though it looks like a pattern
	require.NoError(t, os.Mkdir(dir, 0o700))
	_, err := ReadDir(dir)
	require.ErrorContains(t, err, "PGAS_TRACE")
	put := func(rank, ranks, cut int) {
		b := encode(Head{Rank: rank, Ranks: ranks}, 0, randomEvents(3))
		require.NoError(t, os.WriteFile(filepath.Join(dir, FileName(rank)), b[:len(b)-cut], 0o600))
	}
	put(0, 3, 0)
	put(2, 3, 0)
	_, err = ReadDir(dir)
	require.ErrorContains(t, err, "missing")
	put(1, 3, 0)
	files, err := ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3)
	put(1, 3, 4)
	files, err = ReadDir(dir)
	require.ErrorIs(t, err, ErrCut)
	require.ErrorContains(t, err, FileName(1))
	require.Len(t, files, 3)
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileName(1)), []byte("nonsense"), 0o600))
	_, err = ReadDir(dir)
	require.ErrorIs(t, err, ErrFormat)
}

func FuzzRead(f *testing.F) {
	f.Add(encode(Head{Ranks: 1}, 0, nil))
	f.Add(encode(Head{Rank: 3, Ranks: 9, Node: 2}, 5, randomEvents(4)))
	f.Add([]byte(magic))
	f.Add([]byte(magic1))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Read(bytes.NewReader(b))
		if err != nil {
			require.True(t, errors.Is(err, ErrCut) || errors.Is(err, ErrFormat), "%v", err)
			return
		}
		again, err := Read(bytes.NewReader(encode(got.Head, got.Lost, got.Events)))
		require.NoError(t, err)
		got.Format = 2 // that is what was written again
		require.Equal(t, got, again)
	})
}

func BenchmarkAdd(b *testing.B) {
	r := NewRecorder(4)
	w := NewWriter(discard{}, Head{Ranks: 1})
	var e Event
	b.ReportAllocs()
	for b.Loop() {
		if r.Add(&e) {
			b.StopTimer()
			r.Flush(w)
			b.StartTimer()
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
