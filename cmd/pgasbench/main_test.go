package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
)

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   summary
	}{
		{nil, summary{}},
		{[]float64{3}, summary{3, 3, 3}},
		{[]float64{9, 1, 5}, summary{5, 1, 9}},
		{[]float64{4, 1, 2, 9}, summary{3, 1, 9}},
	} {
		require.Equal(t, c.want, summarize(c.values))
	}
}

func TestValue(t *testing.T) {
	require.InDelta(t, 2.0, value(unitNanos, 500, 8, time.Microsecond), 1e-9)
	require.InDelta(t, 500.0, value(unitMillion, 500, 8, time.Microsecond), 1e-9)
	require.InDelta(t, 4000.0, value(unitBytes, 500, 8, time.Microsecond), 1e-9)
}

func TestCalibrate(t *testing.T) {
	for _, c := range []struct {
		step  int
		each  time.Duration
		least int
		most  int
	}{{100, time.Microsecond, 9_900, 10_000}, {64, 10 * time.Nanosecond, 999_000, 1_000_000}, {64, time.Second, 64, 64}} {
		n, err := calibrate(10*time.Millisecond, c.step, func(n int) (time.Duration, error) { return time.Duration(n) * c.each, nil })
		require.NoError(t, err)
		require.Zero(t, n%c.step)
		require.GreaterOrEqual(t, n, c.least)
		require.LessOrEqual(t, n, c.most)
	}
}

func TestChoosePin(t *testing.T) {
	require.Equal(t, pinProcess, choosePin(pinAuto, 2))
	require.Equal(t, pinProcess, choosePin(pinAuto, 4))
	require.Equal(t, pinOff, choosePin(pinAuto, 1))
	require.Equal(t, pinThread, choosePin(pinThread, 4))
	require.Equal(t, pinThread, choosePassivePin(pinAuto), "who serves needs a core that nobody computes on")
	require.Equal(t, pinProcess, choosePassivePin(pinProcess))
	require.Error(t, checkPin("core"))
}

func TestLastOf(t *testing.T) {
	require.EqualValues(t, 0, lastOf(0, 1))
	require.EqualValues(t, 0, lastOf(0, tableWords))
	require.EqualValues(t, tableWords, lastOf(0, tableWords+1))
	require.EqualValues(t, 4095, lastOf(4095, tableWords+1))
}

// TestGUPSPlaces wants every place of the table to be hit, on the right rank.
func TestGUPSPlaces(t *testing.T) {
	table := gupsTable{ranks: 4, shift: 3, mask: 4<<3 - 1, part: 1<<3 - 1}
	seen := map[[2]int]bool{}
	s := newGUPSStream(1)
	for range 10_000 {
		s = s.next()
		rank, disp := table.place(uint64(s))
		require.Less(t, rank, 4)
		require.Less(t, disp, 8)
		seen[[2]int{rank, disp}] = true
	}
	require.Len(t, seen, 32)
}

var quick = settings{reps: 2, target: 200 * time.Microsecond, pin: pinOff, updates: 640, rounds: 20, bytes: 1 << 20, passive: 100}

// measured runs rows on n goroutine ranks and returns rank 0's bench.
func measured(t *testing.T, n int, c pgastest.Config, rows []row) (*bench, []error) {
	t.Helper()
	var first *bench
	errs := pgastest.Errors(t, n, c, func(ctx context.Context, w *pgas.World) error {
		b := newBench(w, quick, new(bytes.Buffer))
		if w.Rank() == 0 {
			first = b
		}
		return b.run(ctx, rows)
	})
	return first, errs
}

// small are the rows without the largest transfers, which take a second each.
func small() []row {
	var rows []row
	for _, r := range allRows() {
		if strings.Contains(r.name, "16M") || strings.HasPrefix(r.name, "coll_") && strings.HasSuffix(r.name, "1M") || raceEnabled && strings.Contains(r.api, "load of Local") {
			continue // a put that serves as a flag is a race for the detector, as it is for any plain store
		}
		rows = append(rows, r)
	}
	return rows
}

func TestEveryRow(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		b, errs := measured(t, n, pgastest.Config{}, small())
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.Len(t, b.results, len(small())-len(b.skipped))
		if n > 1 {
			require.Empty(t, b.skipped)
		}
		for _, r := range b.results {
			require.Len(t, r.Values, quick.reps)
			require.Positive(t, summarize(r.Values).least, r.Row)
			require.Positive(t, r.N, r.Row)
		}
	}
}

func TestPassiveRows(t *testing.T) {
	for name, c := range map[string]pgastest.Config{"mapped": {}, "tcp": {NIC: true, Over: "tcp"}} {
		t.Run(name, func(t *testing.T) {
			rows := passiveRows()[:3]
			if testing.Short() && name == "tcp" {
				rows = rows[:1] // in each the target computes for a while, and all of its waits spin
			}
			b, errs := measured(t, 3, c, rows)
			require.Equal(t, make([]error, 3), errs)
			require.Len(t, b.results, len(rows))
			for _, r := range b.results {
				require.Len(t, r.Values, quick.reps)
				require.Positive(t, summarize(r.Values).least, r.Row)
			}
		})
	}
}

func TestRowsOverNIC(t *testing.T) {
	rows := append(selectRows(allRows(), "window."), selectRows(allRows(), "Signal")...)
	rows = append(rows, selectRows(allRows(), "View.Load")...)
	kept := rows[:0]
	for _, r := range rows {
		if !strings.Contains(r.name, "M") && !strings.Contains(r.name, "64K") { // megabytes take long here
			kept = append(kept, r)
		}
	}
	b, errs := measured(t, 2, pgastest.Config{NIC: true}, kept)
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NotEmpty(t, b.results)
	require.NotEmpty(t, b.skipped, "views have no place over a NIC")
	for _, r := range b.results {
		require.NotEqual(t, "shm", r.Transport)
	}
}

// TestWrongResultFails breaks one loop after the other and wants the benchmark to see it.
func TestWrongResultFails(t *testing.T) {
	lossy := func(loop wordLoop) wordLoop { // leaves the last operation out
		return func(e *words, base uint64, n int) (uint64, error) { return loop(e, base, n-1) }
	}
	each := checkTable(func(base, op uint64) uint64 { return base + op + 1 })
	rows := map[string]row{
		"same":  wordRow("x", "", "", unitNanos, false, 100, lossy(putFlushSame), checkHot),
		"table": wordRow("x", "", "", unitNanos, false, 100, lossy(putFlushTable), each),
		"near": wordRow("x", "", "", unitNanos, false, flushEvery, putNBBatch, // which puts them apart
			checkEvery(1, func(base, op uint64) uint64 { return base + op%flushEvery + 1 })),
		"get":       wordRow("x", "", "", unitNanos, false, 100, lossy(windowGet), checkGet),
		"fetch-add": wordRow("x", "", "", unitNanos, false, 100, lossy(windowFetchAdd), checkCount),
		"gups": {name: "x", unit: unitMillion, measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
			return gups(ctx, b, r, func(t *gupsTable, s *gupsStream, n int) error {
				*s = s.next() // an update that nobody does
				return gupsFetch(t, s, n-1)
			})
		}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			_, errs := measured(t, 2, pgastest.Config{}, []row{r})
			for _, err := range errs {
				require.ErrorContains(t, err, "wrong")
			}
		})
	}
	block := make([]byte, 5000)
	fillPattern(block, 1)
	require.NoError(t, checkPattern(block, 1))
	block[4321] ^= 1
	require.ErrorContains(t, checkPattern(block, 1), "byte 4321")
}

func TestSweep(t *testing.T) {
	rows, err := sweepRows("bw", opGet, 8, 256, 1<<20, false, false)
	require.NoError(t, err)
	require.Len(t, rows, 6)
	b, errs := measured(t, 2, pgastest.Config{}, rows)
	require.NoError(t, errs[0])
	require.Equal(t, "bw_get_8", b.results[0].Row)
	require.Equal(t, 8, b.results[0].Bytes)
	b.set.plot = filepath.Join(t.TempDir(), "bw.svg")
	require.NoError(t, b.plot(header{Machine: "m"}))
	picture, err := os.ReadFile(b.set.plot)
	require.NoError(t, err)
	require.Contains(t, string(picture), ">Window.Get<")
	for op := range blockOps { // each checks what has arrived
		for _, hot := range []bool{false, true} {
			rows, err := sweepRows("rate", op, 3000, 3000, 1<<20, false, hot)
			require.NoError(t, err)
			for _, nic := range []bool{false, true} {
				if raceEnabled && hot == nic {
					continue // each by itself
				}
				b, errs := measured(t, 2, pgastest.Config{NIC: nic}, rows)
				require.NoError(t, errors.Join(errs...))
				require.Equal(t, "rate_"+op+"_3000", b.results[0].Row)
				require.Equal(t, hot, strings.Contains(b.results[0].Title, "one hot buffer"))
			}
		}
	}
	fine, err := sweepRows("bw", opGet, 1000, 1200, 1<<20, true, false)
	require.NoError(t, err)
	require.Len(t, fine, 4, "1000, 1050, 1102, 1157")
	for _, c := range []struct {
		op       string
		min, max int
	}{{"copy", 8, 64}, {opPut, 0, 64}, {"putNB", 8, 64}, {opPut, 64, 8}, {opPut, 8, 1 << 40}} {
		_, err := sweepRows("lat", c.op, c.min, c.max, 1<<20, false, false)
		require.Error(t, err)
	}
}

var sample = []result{
	{"get8", "8 B get", "View.Load", "shm", unitNanos, 1000, []float64{1.5, 0.5, 1}, 0},
	{"get8", "8 B get", "Window.Get, with a comma", "shm", unitNanos, 100, []float64{4}, 0},
}

func TestFormats(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printCSV(&out, header{Machine: "m"}, sample))
	back, err := readCSV(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	require.Equal(t, sample, back)

	b := &bench{set: settings{json: true}, results: sample, skipped: []string{"not measured: x"}}
	out.Reset()
	require.NoError(t, b.print(&out, header{Machine: "m", Cores: 2}))
	var read struct {
		Machine string
		Results []result
		Skipped []string
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &read))
	require.Equal(t, sample, read.Results)
	require.Equal(t, "m", read.Machine)

	b.set.json = false
	out.Reset()
	require.NoError(t, b.print(&out, header{Command: "pgasbench"}))
	require.Contains(t, out.String(), "# command: pgasbench\n# not measured: x\n")
	require.Regexp(t, `8 B get +View.Load +shm +1.00 +0.50 +1.50 +ns +3 x 1000`, out.String())

	_, err = readCSV(strings.NewReader("a,b\n1,2\n"))
	require.ErrorContains(t, err, "not an output of --csv")
}

func TestWorkingSets(t *testing.T) {
	for _, op := range []string{opPut, opGet} {
		rows, err := setRows(op, 2<<20, false)
		require.NoError(t, err)
		require.Len(t, rows, 2)
		for i := range rows {
			rows[i].bytes = min(rows[i].bytes, quick.bytes)
		}
		b, errs := measured(t, 2, pgastest.Config{NIC: true}, rows[:1])
		require.NoError(t, errs[0])
		require.NoError(t, errs[1])
		require.Len(t, b.results, 1)
	}
	_, err := setRows("copy", 1<<20, false)
	require.Error(t, err)
}

func TestSizesOfBuckets(t *testing.T) {
	rows, err := bucketRows(16 << 20)
	require.NoError(t, err)
	rows = append(rows[2:4:4], rows[len(rows)-4:]...) // of 128 KiB, of 128 MiB, and as chosen
	b, errs := measured(t, 2, pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 6 << 20}}, rows)
	for _, err := range errs {
		require.NoError(t, err)
	}
	var names []string
	for _, r := range b.results {
		names = append(names, r.Row)
	}
	require.Equal(t, []string{"put_buckets_128K", "isx_buckets_128K", "put_buckets_auto", "isx_buckets_auto"}, names)
	require.Len(t, b.skipped, 2, "no bucket of 128 MiB can be held")
	require.Contains(t, b.skipped[0], "found room for powers of two from")
	if testing.Short() {
		rows = rows[:2] // what is chosen has been measured once
	}
	b, errs = measured(t, 2, pgastest.Config{NIC: true}, rows)
	require.NoError(t, errs[0])
	require.Contains(t, b.skipped[0], "no NIC here registers memory in buckets", "nothing is fixed where there are none")
	_, err = bucketRows(1 << 20)
	require.Error(t, err, "the pieces would lie on each other")
}

// TestEdges: up to F buckets nothing misses, beyond that all uses do; up to F+V none is registered for that, and beyond it each.
func TestEdges(t *testing.T) {
	var places []int
	for _, e := range edges {
		places = append(places, e.places(100, 20))
	}
	require.Equal(t, []int{50, 98, 102, 105, 110, 115, 118, 122, 150, 240}, places)
	all, err := edgeRows(opPut, 0)
	require.NoError(t, err)
	which := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	if testing.Short() {
		which = []int{1, 2, 6, 7} // next to the edges
	}
	var rows []row
	for _, i := range which {
		rows = append(rows, all[i])
	}
	var b *bench
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 4 << 20}}, func(ctx context.Context, w *pgas.World) error {
		s := quick
		s.bytes = 8 << 20
		mine := newBench(w, s, new(bytes.Buffer))
		if w.Rank() == 0 {
			b = mine
		}
		return mine.run(ctx, rows)
	})
	require.Empty(t, b.skipped)
	require.Len(t, b.results, len(which))
	for k, r := range b.results {
		switch i := which[k]; {
		case i < 2:
			require.Contains(t, r.Title, "; of 100: 0.0 misses, 0.0 foreseen, 0.0 late, 0.0 registrations")
		case i < 7:
			require.Contains(t, r.Title, "; of 100: 100.0 misses, 0.0 foreseen, 0.0 late, 0.0 registrations")
		default:
			require.Contains(t, r.Title, "; of 100: 100.0 misses, 0.0 foreseen, 0.0 late, 100.0 registrations")
		}
	}
	b, errs := measured(t, 2, pgastest.Config{NIC: true}, rows[:1])
	require.NoError(t, errs[0])
	require.Contains(t, b.skipped[0], "nothing is registered in buckets")
	_, err = edgeRows("copy", 0)
	require.Error(t, err)
	_, err = edgeRows(opGet, -1)
	require.Error(t, err)
}

func TestPlotOfATable(t *testing.T) {
	units := append([]result{{"b", "bandwidth <x>", "Put", "shm", unitBytes, 1, []float64{2, 3}, 0}}, sample...)
	b := &bench{results: units, set: settings{plot: filepath.Join(t.TempDir(), "all.svg")}}
	require.NoError(t, b.plot(header{Machine: "m", Cores: 2}))
	for name, want := range map[string]string{"all-ns.svg": "8 B get: View.Load", "all-mb-s.svg": "bandwidth &lt;x&gt;: Put"} {
		picture, err := os.ReadFile(filepath.Join(filepath.Dir(b.set.plot), name))
		require.NoError(t, err)
		require.Contains(t, string(picture), want)
		require.Contains(t, string(picture), "m, 2 cores")
	}
	b.set.plot = filepath.Join(t.TempDir(), "none", "x.svg")
	require.Error(t, b.plot(header{}))
}

// TestPlotsAreRefusedFirst: a picture that cannot be written is an error before anything is measured.
func TestPlotsAreRefusedFirst(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	folder := filepath.Join(dir, "folder.svg")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, checkPlot("", 0))
	require.NoError(t, checkPlot(filepath.Join(dir, "x.svg"), 0))
	require.NoError(t, checkPlot(filepath.Join(dir, "none", "x.svg"), 1), "another rank, perhaps on another machine")
	for name, want := range map[string]string{
		filepath.Join(dir, "none", "x.svg"): "want a file in a folder that is there",
		filepath.Join(file, "x.svg"):        "is not a folder",
		filepath.Join(dir, "x.png"):         "want a name that ends in .svg",
		folder:                              "want a file that you may write to",
	} {
		require.ErrorContains(t, checkPlot(name, 0), want)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.svg"), []byte("old"), 0o600))
	require.NoError(t, checkPlot(filepath.Join(dir, "old.svg"), 0))
	old, err := os.ReadFile(filepath.Join(dir, "old.svg"))
	require.NoError(t, err)
	require.Equal(t, "old", string(old))
	require.NoFileExists(t, filepath.Join(dir, "x.svg"))
}

func TestCommandLine(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, app(&out).Run([]string{"pgasbench", "list"}))
	require.Contains(t, out.String(), "window.Accumulate(Xor)")
	for _, args := range [][]string{
		{"--only", "no such row"},
		{"nonsense"},
		{"--reps", "0"},
		{"--csv", "--json"},
		{"--pin", "x"},
		{"--span", "1000"},
		{"--updates", "1"},
		{"lat", "--op", "x"},
		{"--target-time", "0s"},
	} {
		require.Error(t, app(&out).Run(append([]string{"pgasbench"}, args...)), args)
	}
}

// TestHelpOfRanks: of the ranks that were asked for help one gives it, and none fails. What is no help each writes, as where a rank starts it for something else.
func TestHelpOfRanks(t *testing.T) {
	for _, args := range []string{"--help", "help", "reg --help", "lat -h", "help replay"} {
		for rank, helps := range map[string]bool{"0": true, "1": false, "": true} {
			t.Setenv("PMI_RANK", rank)
			var out, errs bytes.Buffer
			require.Zero(t, run(append([]string{"pgasbench"}, strings.Fields(args)...), &out, &errs), args)
			require.Equal(t, helps, out.Len() > 0, "%s of rank %s", args, rank)
			require.Empty(t, errs.String())
		}
	}
	t.Setenv("PMI_RANK", "1")
	var out, errs bytes.Buffer
	require.Zero(t, run([]string{"pgasbench", "list"}, &out, &errs))
	require.NotEmpty(t, out.String())
}

// TestWrongOptions: what the flag parser refuses is a sentence that names the option, what was found and what is wanted, without pages of help behind it.
// TestTextsThatCannotBeWritten: who asks for a text and does not get it learns that by the exit code.
func TestTextsThatCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, args := range []string{"--help", "help", "reg --help", "help replay", "list", "replay --shape nest"} {
		var errs bytes.Buffer
		require.Equal(t, 2, run(append([]string{"pgasbench"}, strings.Fields(args)...), full, &errs), args)
		require.Equal(t, "pgasbench: write /dev/full: no space left on device\n", errs.String(), args)
	}
	var out, errs bytes.Buffer
	require.Equal(t, 2, run([]string{"pgasbench", "help", "nothing"}, &out, &errs))
	require.Equal(t, "pgasbench: No help topic for 'nothing'\n", errs.String())
	require.Zero(t, run([]string{"pgasbench", "--help"}, &out, &errs))
}

func TestWrongOptions(t *testing.T) {
	for args, want := range map[string]string{
		"--reps x":              `--reps "x": want a whole number (pgasbench --help shows all options)`,
		"--target-time 5":       `--target-time "5": want a time such as 50ms (pgasbench --help shows all options)`,
		"--csv=maybe":           `--csv "maybe": want no value: it is on or off (pgasbench --help shows all options)`,
		"--reps":                "the option --reps needs a value: want a whole number (pgasbench --help shows all options)",
		"lat --sizes 8":         "there is no option --sizes (pgasbench lat --help shows all options)",
		"lat --min 8Q":          `--min "8Q": want a number of bytes such as 65536, 512M or 1.5G (K, M, G and T are powers of 1024; at most 1024T) (pgasbench lat --help shows all options)`,
		"lat --min 8K --max 4K": "--min 8192, --max 4096: want 1 <= min <= max",
		"select --reps 0":       "select: --reps 0: want 1 to 1000",
		"bulk --max 1.5G":       "bulk: --max 1536M: want 0 to 1G",
		"reg --spikes few":      `--spikes "few": want a number such as 0.04 (pgasbench reg --help shows all options)`,
		"passive --only barrel": "--only \"barrel\": no row of this command contains that; `pgasbench list` shows those of pgasbench by itself",
		"lat --only barrel":     "--only \"barrel\": no row of this command contains that",
		"barrier":               "; the rows that contain it are measured by pgasbench --only barrier",
	} {
		var out bytes.Buffer
		err := app(&out).Run(append([]string{"pgasbench"}, strings.Fields(args)...))
		require.ErrorContains(t, err, want, args)
		require.NotContains(t, err.Error(), "---", args)
		require.Empty(t, out.String(), args)
	}
}

// TestWhatIsNoOptionIsRefused: a command that takes options only says so, before it measures anything.
func TestWhatIsNoOptionIsRefused(t *testing.T) {
	for _, name := range []string{"lat", "bw", "rate", "sets", "targets", "replay", "collectives", "passive", "list"} {
		err := app(io.Discard).Run([]string{"pgasbench", name, "4096"})
		require.ErrorContains(t, err, name+`: "4096": want options only`)
	}
}
