package plot

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func charts() map[string]Chart {
	ranged := Series{Name: "gopgas, soft <1 & 2>", Points: []Point{{1024, 120, 100, 150}, {4096, 900, 700, 950}, {1 << 20, 9000, 8000, 12000}}}
	return map[string]Chart{
		"loglog": {
			Title: "bandwidth", X: Axis{Label: "bytes", Log: 2, Bytes: true}, Y: Axis{Label: "MB/s", Log: 10},
			Series: []Series{ranged, {Name: "copy", Points: []Point{{1024, 5000, 0, 0}, {1 << 20, 3000, 0, 0}}}},
			Notes:  []string{"machine, date", "command: a > b"},
		},
		"steps": {
			Title: "registered bytes over time", X: Axis{Label: "seconds"}, Y: Axis{Label: "bytes", Bytes: true, Zero: true},
			Series: []Series{{Name: "leavepinned", Step: true, Plain: true, Points: []Point{{0, 0, 0, 0}, {0.5, 4 << 20, 0, 0}, {1.25, 8 << 20, 0, 0}}}},
		},
		"bars": {
			Title: "accuracy", X: Axis{Names: []string{"bt", "lu", "sp"}}, Y: Axis{Label: "%"}, Bars: true,
			Series: []Series{
				{Name: "ours", Points: []Point{{0, 95, 90, 99}, {1, 94, 0, 0}, {2, -3, 0, 0}}},
				{Name: "theirs", Points: []Point{{0, 80, 0, 0}, {2, 70, 60, 71}}},
			},
		},
		"slanted": {
			Title: "names", X: Axis{Names: []string{"leavepinned-noevict", "pipelined-leavepinned", "predictive, helper off", "predictive"}},
			Y: Axis{Label: "us"}, Bars: true, Series: []Series{{Name: "a", Points: []Point{{0, 1, 0, 0}, {3, 2, 0, 0}}}},
		},
	}
}

var update = flag.Bool("update", false, "write the golden files")

func TestGolden(t *testing.T) {
	for name, c := range charts() {
		t.Run(name, func(t *testing.T) {
			got, err := c.SVG()
			require.NoError(t, err)
			again, err := c.SVG()
			require.NoError(t, err)
			require.Equal(t, got, again, "V1")
			golden(t, name, got)
		})
	}
}

func TestGoldenDots(t *testing.T) {
	l := Dots{Title: "nanoseconds", Label: "ns", Notes: []string{"a machine"}, Lines: []Dot{
		{"put <8 B>, View.Store", Point{0, 0.8, 0.7, 1.2}}, {"get, Window.Get", Point{0, 3000, 3000, 3000}}, {"alone", Point{0, 20, 0, 0}},
	}}
	got, err := l.SVG()
	require.NoError(t, err)
	golden(t, "dots", got)
	l.Lines[0].Y = 0
	_, err = l.SVG()
	require.ErrorIs(t, err, ErrChart)
	_, err = (&Dots{}).SVG()
	require.ErrorIs(t, err, ErrChart)
}

func golden(t *testing.T, name string, got []byte) {
	file := filepath.Join("testdata", name+".svg")
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestPicturesAreXML(t *testing.T) {
	for name, c := range charts() {
		got, err := c.SVG()
		require.NoError(t, err)
		var texts []string
		d := xml.NewDecoder(strings.NewReader(string(got)))
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			if text, ok := tok.(xml.CharData); ok {
				texts = append(texts, string(text))
			}
		}
		for _, s := range c.Series {
			require.Contains(t, texts, s.Name, "V4")
		}
		require.Contains(t, texts, c.Title)
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	one := []Series{{Name: "s", Points: []Point{{1, 1, 0, 0}}}}
	with := func(p Point) []Series { return []Series{{Points: []Point{p}}} }
	for name, c := range map[string]Chart{
		"no series":          {},
		"no point":           {Series: []Series{{}}},
		"too many":           {Series: make([]Series, 9)},
		"not a number":       {Series: with(Point{1, math.NaN(), 0, 0})},
		"endless":            {Series: with(Point{math.Inf(1), 1, 0, 0})},
		"zero, logarithmic":  {Series: with(Point{1, 0, 0, 0}), Y: Axis{Log: 10}},
		"range down to zero": {Series: with(Point{1, 1, 0, 2}), Y: Axis{Log: 10}},
		"below, logarithmic": {Series: with(Point{-1, 1, 0, 0}), X: Axis{Log: 2}},
		"outside its range":  {Series: with(Point{1, 5, 1, 2})},
		"no such name":       {Series: one, X: Axis{Names: []string{"a"}}},
		"between names":      {Series: with(Point{0.5, 5, 0, 0}), X: Axis{Names: []string{"a"}}},
		"bars without names": {Series: one, Bars: true},
	} {
		_, err := c.SVG()
		require.ErrorIs(t, err, ErrChart, name)
	}
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{"a bb", "ccc", "dddddddd", "e"}, wrap([]string{"a bb ccc dddddddd e"}, 4))
	require.Equal(t, []string{"x", ""}, wrap([]string{"x", ""}, 10))
}

func ticksOf(s scale) (out []string) {
	for _, t := range s.ticks {
		out = append(out, t.text)
	}
	return out
}

func TestScales(t *testing.T) {
	for name, c := range map[string]struct {
		axis   Axis
		extent [2]float64
		want   string
	}{
		"percent":        {Axis{}, [2]float64{0, 100}, "0 20 40 60 80 100"},
		"fractions":      {Axis{}, [2]float64{0.01, 0.06}, "0.01 0.02 0.03 0.04 0.05 0.06"},
		"around zero":    {Axis{}, [2]float64{-3, 4}, "-4 -2 0 2 4"},
		"one value":      {Axis{}, [2]float64{7, 7}, "0 2 4 6 8"},
		"all zero":       {Axis{}, [2]float64{0, 0}, "0 0.2 0.4 0.6 0.8 1.0"},
		"with zero":      {Axis{Zero: true}, [2]float64{90, 100}, "0 20 40 60 80 100"},
		"powers of ten":  {Axis{Log: 10}, [2]float64{3, 2000}, "1 10 100 1000 10000"},
		"exact powers":   {Axis{Log: 10}, [2]float64{10, 1000}, "10 100 1000"},
		"sizes":          {Axis{Log: 2, Bytes: true}, [2]float64{512, 16384}, "512 1K 2K 4K 8K 16K"},
		"many sizes":     {Axis{Log: 2, Bytes: true}, [2]float64{1024, 1 << 26}, "1K 4K 16K 64K 256K 1M 4M 16M 64M"},
		"bytes":          {Axis{Zero: true, Bytes: true}, [2]float64{1 << 20, 12 << 20}, "0 2M 4M 6M 8M 10M 12M"},
		"few bytes":      {Axis{Bytes: true}, [2]float64{0, 100}, "0 20 40 60 80 100"},
		"tight":          {Axis{Tight: true}, [2]float64{0.3, 3.1}, "0.5 1.0 1.5 2.0 2.5 3.0"},
		"one power":      {Axis{Log: 2}, [2]float64{8, 8}, "8 16"},
		"small fraction": {Axis{Log: 10}, [2]float64{0.002, 0.5}, "0.001 0.01 0.1 1"},
	} {
		s := newScale(c.axis, c.extent)
		got := strings.Join(ticksOf(s), " ")
		require.Equal(t, c.want, got, name)
		require.GreaterOrEqual(t, s.place(c.extent[0]), -1e-9, name)
		require.LessOrEqual(t, s.place(c.extent[1]), 1+1e-9, name)
		for i := 1; i < len(s.ticks); i++ {
			require.Greater(t, s.ticks[i].at, s.ticks[i-1].at, name)
		}
	}
	n := newScale(Axis{Names: []string{"a", "b"}}, [2]float64{})
	require.InDelta(t, 0.25, n.place(0), 1e-9)
	require.InDelta(t, 0.75, n.place(1), 1e-9)
}
