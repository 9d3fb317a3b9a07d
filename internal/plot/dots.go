package plot

import "math"

// Dots is a list of named values: a dot for each, on a line of its own, with the range of its repeats, on a logarithmic axis.
// It is for tables whose lines lie far apart.
type Dots struct {
	Title, Label string // what the axis means
	Lines        []Dot
	Notes        []string
}

// Dot is a named value.
type Dot struct {
	Name string
	Point
}

// Sizes of a list, in pixels.
const (
	namesWide = 400
	dotsWide  = 420
	dotLine   = 20
)

// SVG draws the list. Values must be above zero; it fails with ErrChart.
func (l *Dots) SVG() ([]byte, error) {
	axis := Chart{Title: l.Title, Y: Axis{Log: 10}, Series: []Series{{}}}
	for _, d := range l.Lines {
		axis.Series[0].Points = append(axis.Series[0].Points, d.Point)
	}
	if err := axis.check(); err != nil {
		return nil, err
	}
	_, extent := axis.extents()
	d := drawing{y: newScale(Axis{Log: 10}, extent)}
	high := top + dotLine*len(l.Lines)
	notes := wrap(l.Notes, (namesWide+dotsWide)/noteChar)
	tall := high + 56 + noteLine*len(notes)
	d.open(namesWide+dotsWide+40, tall)
	d.text(namesWide+dotsWide/2, top-20, l.Title, middle, `font-size="15"`)
	across := func(v float64) float64 { return namesWide + dotsWide*d.y.place(v) }
	for _, t := range d.y.ticks {
		x := namesWide + dotsWide*t.at
		d.printf(`<path d="M%s %dV%d" stroke="#dddddd"/>`, px(x), top, high)
		d.text(x, float64(high+18), t.text, middle)
	}
	d.text(namesWide+dotsWide/2, float64(high+38), l.Label, middle)
	for i, line := range l.Lines {
		y := float64(top + dotLine*i + dotLine/2)
		d.text(namesWide-10, y+4, line.Name, end)
		if line.ranged() {
			d.printf(`<path d="M%s %sH%s" stroke="%s" stroke-width="5" stroke-opacity="0.3"/>`, px(across(line.Low)), px(y),
				px(math.Max(across(line.High), across(line.Low)+1)), colours()[0])
		}
		d.printf(`<circle cx="%s" cy="%s" r="%s" fill="%s"/>`, px(across(line.Y)), px(y), px(mark+1), colours()[0])
	}
	for i, n := range notes {
		d.text(16, float64(high+56+noteLine*i), n, `fill="#555555"`, `font-size="11"`)
	}
	d.out.WriteString("</svg>\n")
	return d.out.Bytes(), nil
}

// open begins a picture on white.
func (d *drawing) open(wide, tall int) {
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`,
		wide, tall, wide, tall)
	d.printf(`<rect width="%d" height="%d" fill="#ffffff"/>`, wide, tall)
}
