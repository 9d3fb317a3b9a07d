// Package plot draws charts as SVG: lines and steps with points and ranges, or bars, over linear, logarithmic or named axes. It
// is for the figures of a benchmark: what is drawn is what was given, nothing is smoothed, and the picture says in its own text
// under what conditions its values came about.
//
// # Terms
//
//   - Chart: what is drawn: series over two axes, a title, and notes that stand below the picture.
//   - Series: points that belong together, in one colour and with one name in the legend.
//   - Point: a value, and the range of the repeats it stands for.
//   - Scale: how a value becomes a place: linear from a round number to a round number; logarithmic to whole powers of two or
//     ten; or named, one place for each name, the values being 0, 1, 2 and so on.
//
// # Life of a chart
//
// The caller fills in a Chart and calls SVG. Limits of an axis come from the values and their ranges; ticks stand at round
// numbers, at most about eight of them. Ranges are drawn as bands behind lines and as whiskers on bars.
//
// # Invariants
//
//   - V1: equal charts give equal bytes: no clock, no map order, coordinates rounded to a tenth of a pixel.
//   - V2: a chart that cannot be drawn truthfully (no value, a value that is not finite or beyond 1e300, a value of zero or less on a
//     logarithmic axis, a range that does not hold its value, more series than there are colours) is an error.
//   - V3: bars begin at zero.
//   - V4: all text is escaped: names may hold anything.
//
// # Limits
//
// Eight series. The legend stands right of the picture, one line a name; long names are not broken.
package plot
