package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Sizes in pixels.
const (
	width, height  = 860, 480
	left, right    = 84, 216 // beside the picture: the axis; the legend
	top, bottom    = 44, 88
	legendLine     = 20
	noteLine       = 16
	noteChar       = 6
	innerWide      = width - left - right
	innerHigh      = height - top - bottom
	mark           = 2.8
	crossOut       = 3.0 // half of a whisker's bar
	barsOfAPlace   = 0.8 // part of a named place that its bars fill
	mostMarks      = 80  // a line of more points has none
	slantFromChars = 64  // names below an axis that together are longer stand aslant
)

// colours tell series apart, for those too who do not see red and green (after Okabe and Ito, 2008).
func colours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a6d3b"}
}

// SVG draws the chart. It fails with ErrChart.
func (c *Chart) SVG() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	ex, ey := c.extents()
	d := drawing{x: newScale(c.X, ex), y: newScale(c.Y, ey), chart: c}
	d.frame()
	for i, s := range c.Series {
		if c.Bars {
			d.bars(i, s)
		} else {
			d.line(i, s)
		}
		d.legend(i, s)
	}
	d.out.WriteString("</svg>\n")
	return d.out.Bytes(), nil
}

// drawing is a chart on its way.
type drawing struct {
	chart *Chart
	x, y  scale
	out   bytes.Buffer
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

// at is the pixel of a value; y grows downwards.
func (d *drawing) at(x, y float64) (string, string) { return d.across(x), d.down(y) }

func (d *drawing) across(x float64) string { return px(left + innerWide*d.x.place(x)) }
func (d *drawing) down(y float64) string   { return px(top + innerHigh*(1-d.y.place(y))) }

// px writes a coordinate: V1.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func escape(s string) string { // V4
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func (d *drawing) text(x, y float64, s string, more ...string) {
	if s != "" {
		d.printf(`<text x="%s" y="%s"%s>%s</text>`, px(x), px(y), strings.Join(append([]string{""}, more...), " "), escape(s))
	}
}

const middle, end = `text-anchor="middle"`, `text-anchor="end"`

// frame draws all but the values.
func (d *drawing) frame() {
	c := d.chart
	notes := wrap(c.Notes, (width-left)/noteChar)
	tall := height + noteLine*len(notes)
	d.open(width, tall)
	d.text(left+innerWide/2, top-20, c.Title, middle, `font-size="15"`)
	for _, t := range d.y.ticks {
		y := top + innerHigh*(1-t.at)
		d.printf(`<path d="M%d %sH%d" stroke="#dddddd"/>`, left, px(y), left+innerWide)
		d.text(left-8, y+4, t.text, end)
	}
	length := 0
	for _, t := range d.x.ticks {
		length += len(t.text)
	}
	for _, t := range d.x.ticks {
		x, y := left+innerWide*t.at, float64(top+innerHigh)
		d.printf(`<path d="M%s %sv5" stroke="#444444"/>`, px(x), px(y))
		if length > slantFromChars {
			d.text(x, y+16, t.text, end, fmt.Sprintf(`transform="rotate(-25 %s %s)"`, px(x), px(y+16)))
		} else {
			d.text(x, y+18, t.text, middle)
		}
	}
	d.printf(`<path d="M%d %dV%dH%d" fill="none" stroke="#444444"/>`, left, top, top+innerHigh, left+innerWide)
	d.text(left+innerWide/2, height-bottom+62, c.X.Label, middle)
	d.text(18, top+innerHigh/2, c.Y.Label, middle, fmt.Sprintf(`transform="rotate(-90 18 %d)"`, top+innerHigh/2))
	for i, n := range notes {
		d.text(left, float64(height+noteLine*i-4), n, `fill="#555555"`, `font-size="11"`)
	}
}

// wrap breaks notes between words so that no line has more than so many characters, where words allow.
func wrap(notes []string, most int) (lines []string) {
	for _, n := range notes {
		line := ""
		for word := range strings.FieldsSeq(n) {
			if line != "" && len(line)+1+len(word) > most {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// line draws the band of the ranges, the line, and marks.
func (d *drawing) line(i int, s Series) {
	if len(s.Points) == 0 {
		return
	}
	colour := colours()[i]
	d.band(colour, s.Points)
	var path strings.Builder
	for k, p := range s.Points {
		x, y := d.at(p.X, p.Y)
		switch {
		case k == 0:
			path.WriteString("M" + x + " " + y)
		case s.Step:
			path.WriteString("H" + x + "V" + y)
		default:
			path.WriteString("L" + x + " " + y)
		}
	}
	d.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="1.6"/>`, path.String(), colour)
	if s.Plain || len(s.Points) > mostMarks {
		return
	}
	for _, p := range s.Points {
		x, y := d.at(p.X, p.Y)
		d.printf(`<circle cx="%s" cy="%s" r="%s" fill="%s"/>`, x, y, px(mark), colour)
	}
}

func (d *drawing) band(colour string, points []Point) {
	var there, back string
	for _, p := range points {
		if p.ranged() {
			x, high := d.at(p.X, p.High)
			there += x + "," + high + " "
			back = x + "," + d.down(p.Low) + " " + back
		}
	}
	if there != "" {
		d.printf(`<polygon points="%s" fill="%s" fill-opacity="0.18"/>`, strings.TrimSpace(there+back), colour)
	}
}

// bars draws the bars of a series, beside those of the others, with whiskers.
func (d *drawing) bars(i int, s Series) {
	wide := barsOfAPlace / float64(len(d.chart.Series))
	for _, p := range s.Points {
		from := p.X - barsOfAPlace/2 + float64(i)*wide
		x0, x1 := left+innerWide*d.x.place(from), left+innerWide*d.x.place(from+wide)
		high, low := top+innerHigh*(1-d.y.place(max(p.Y, 0))), top+innerHigh*(1-d.y.place(min(p.Y, 0)))
		d.printf(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`, px(x0), px(high), px(x1-x0-1), px(low-high), colours()[i])
		if p.ranged() {
			mid := (x0+x1)/2 - 0.5
			d.printf(`<path d="M%s %sV%sM%s %sh%sM%s %sh%s" stroke="#222222"/>`, px(mid), d.down(p.Low), d.down(p.High),
				px(mid-crossOut), d.down(p.Low), px(2*crossOut), px(mid-crossOut), d.down(p.High), px(2*crossOut))
		}
	}
}

func (d *drawing) legend(i int, s Series) {
	x, y := float64(left+innerWide+16), float64(top+8+legendLine*i)
	d.printf(`<rect x="%s" y="%s" width="14" height="10" fill="%s"/>`, px(x), px(y-9), colours()[i])
	d.text(x+20, y, s.Name)
}
