package launch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// place is what a pattern can name.
type place struct {
	rank, size int
	host, job  string
	stream     string // "out" or "err"
}

// timeMark stands in an expanded prefix for the time at which a line is written.
const timeMark = "\x00"

// expand replaces what follows a % in pattern: %r the rank, %n the number of ranks, %h the host, %j the job, %s the
// stream, %t the time, which stays a mark, and %% itself. A number before the letter is a width: %3r is 007.
func expand(pattern string, at place) (string, error) {
	var b strings.Builder
	for rest := pattern; rest != ""; {
		text, after, found := strings.Cut(rest, "%")
		b.WriteString(text)
		if !found {
			break
		}
		letters := strings.TrimLeft(after, "0123456789")
		width, _ := strconv.Atoi(after[:len(after)-len(letters)])
		if letters == "" || width > 20 {
			return "", fmt.Errorf("%q: wanted a letter after %%, one of r n h j s t %%", pattern)
		}
		switch letters[0] {
		case 'r':
			fmt.Fprintf(&b, "%0*d", width, at.rank)
		case 'n':
			fmt.Fprintf(&b, "%0*d", width, at.size)
		case 'h':
			b.WriteString(at.host)
		case 'j':
			b.WriteString(at.job)
		case 's':
			b.WriteString(at.stream)
		case 't':
			b.WriteString(timeMark)
		case '%':
			b.WriteByte('%')
		default:
			return "", fmt.Errorf("%q: %%%c means nothing; there are %%r rank, %%n ranks, %%h host, %%j job, %%s stream, %%t time", pattern, letters[0])
		}
		rest = letters[1:]
	}
	return b.String(), nil
}

// fileOf is the file that an output pattern names. A time in it would make a file of every line.
func fileOf(pattern string, at place) (string, error) {
	name, err := expand(pattern, at)
	if err == nil && strings.Contains(name, timeMark) {
		err = fmt.Errorf("%q: a file's name cannot have the time of a line in it", pattern)
	}
	return name, err
}

// prefixAt is an expanded prefix at a moment.
func prefixAt(prefix string, now time.Time) string {
	return strings.ReplaceAll(prefix, timeMark, now.Format("15:04:05.000"))
}
