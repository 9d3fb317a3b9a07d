package pmi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of the protocol as Hydra announces them, and of a line.
const (
	MaxKVSName = 256  // bytes, as announced by "maxes"
	MaxKey     = 64   // bytes, including a terminator that C clients reserve: 63 usable
	MaxValue   = 1024 // bytes, including a terminator: 1023 usable
	MaxLine    = 4096 // bytes of one message with its newline

	// PortableValue is the longest value that every known server keeps whole.
	PortableValue = 512
)

// ErrMalformed is wrapped by every error of Parse: what arrived is not PMI-1.
var ErrMalformed = errors.New("malformed PMI message")

// Field is one key=value of a message.
type Field struct{ Name, Value string }

// Message is one line of the protocol: a command and its fields in the order sent.
type Message struct {
	Cmd    string
	Fields []Field
}

// Msg builds a message from alternating names and values; an odd last name is a bug and gets an empty value.
func Msg(cmd string, namesAndValues ...string) Message {
	m := Message{Cmd: cmd}
	for i := 0; i < len(namesAndValues); i += 2 {
		f := Field{Name: namesAndValues[i]}
		if i+1 < len(namesAndValues) {
			f.Value = namesAndValues[i+1]
		}
		m.Fields = append(m.Fields, f)
	}
	return m
}

// Get returns the value of the first field of that name.
func (m Message) Get(name string) (string, bool) {
	for _, f := range m.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// Int returns a field as a decimal number.
func (m Message) Int(name string) (int, error) {
	v, ok := m.Get(name)
	if !ok {
		return 0, fmt.Errorf("%w: %q without %q", ErrMalformed, m.Cmd, name)
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, fmt.Errorf("%w: %q with %s=%s, wanted a number", ErrMalformed, m.Cmd, name, clip(v))
	}
	return n, nil
}

// RC returns the result code of an answer; a missing one is 0.
func (m Message) RC() (int, error) {
	if _, ok := m.Get("rc"); !ok {
		return 0, nil
	}
	return m.Int("rc")
}

// Append adds the message as a line to dst. It fails, with dst unchanged, where the line could not be read back:
// a blank or control character, an empty command or name, or more than MaxLine bytes.
func (m Message) Append(dst []byte) ([]byte, error) {
	if !isCommand(m.Cmd) {
		return dst, fmt.Errorf("PMI command %s is not a plain word", clip(m.Cmd))
	}
	start := len(dst)
	out := append(append(dst, "cmd="...), m.Cmd...)
	for _, f := range m.Fields {
		if !isName(f.Name) {
			return dst, fmt.Errorf("PMI field name %q of %q is not a plain word", f.Name, m.Cmd)
		}
		if i := strings.IndexFunc(f.Value, isBlankOrControl); i >= 0 {
			return dst, fmt.Errorf("PMI field %s of %q has the character %q, which the protocol cannot carry", f.Name, m.Cmd, f.Value[i])
		}
		out = append(append(append(append(out, ' '), f.Name...), '='), f.Value...)
	}
	out = append(out, '\n')
	if len(out)-start > MaxLine {
		return dst, fmt.Errorf("PMI message %q of %d bytes, the limit is %d", m.Cmd, len(out)-start, MaxLine)
	}
	return out, nil
}

// Parse reads one line, with or without its newline. Bare words after a "msg" or "message" field belong to it,
// because servers put sentences there; anywhere else they are an error.
func Parse(line []byte) (Message, error) {
	s := strings.TrimSuffix(string(line), "\n")
	if len(s) >= MaxLine {
		return Message{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrMalformed, len(s)+1, MaxLine)
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return Message{}, fmt.Errorf("%w: byte 0x%02x at position %d", ErrMalformed, c, i)
		}
	}
	var m Message
	for word := range strings.SplitSeq(s, " ") {
		if word == "" {
			continue // Hydra's clients sometimes leave a blank at the end of a line
		}
		name, value, found := strings.Cut(word, "=")
		last := len(m.Fields) - 1
		switch {
		case m.Cmd == "" && name == "mcmd":
			return Message{}, fmt.Errorf("%w: the multi-line command %s is not supported", ErrMalformed, clip(value))
		case m.Cmd == "" && (!found || name != "cmd"):
			return Message{}, fmt.Errorf("%w: it starts with %s, wanted cmd=NAME", ErrMalformed, clip(word))
		case m.Cmd == "":
			if !isCommand(value) {
				return Message{}, fmt.Errorf("%w: command %s is not a plain word", ErrMalformed, clip(value))
			}
			m.Cmd = value
		case found && isName(name):
			m.Fields = append(m.Fields, Field{name, value})
		case last >= 0 && (m.Fields[last].Name == "msg" || m.Fields[last].Name == "message"):
			m.Fields[last].Value += " " + word
		default:
			return Message{}, fmt.Errorf("%w: %s in %q is not name=value", ErrMalformed, clip(word), m.Cmd)
		}
	}
	if m.Cmd == "" {
		return Message{}, fmt.Errorf("%w: empty line", ErrMalformed)
	}
	return m, nil
}

// Word makes text fit for a field: blanks and control characters become underscores, and it is cut at n bytes.
func Word(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	b := []byte(text)
	for i, c := range b {
		if isBlankOrControl(rune(c)) {
			b[i] = '_'
		}
	}
	return string(b)
}

// CheckKey says whether every server keeps this key whole.
func CheckKey(key string) error {
	if key == "" || len(key) >= MaxKey || strings.IndexFunc(key, isBlankOrControl) >= 0 || strings.Contains(key, "=") {
		return fmt.Errorf("PMI key %s: wanted 1 to %d visible characters without '='", clip(key), MaxKey-1)
	}
	return nil
}

// CheckValue says whether a server can carry this value at all; portable ones are at most PortableValue long.
func CheckValue(value string) error {
	if value == "" || len(value) >= MaxValue || strings.IndexFunc(value, isBlankOrControl) >= 0 {
		return fmt.Errorf("PMI value of %d bytes: wanted 1 to %d bytes without blanks and control characters", len(value), MaxValue-1)
	}
	return nil
}

func isBlankOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

// isCommand says whether s may name a command: those that exist are short, and whoever reads of another one in an error text need not read 4000 bytes.
func isCommand(s string) bool { return isName(s) && len(s) < MaxKey }

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

// clip quotes input for an error text, at most 40 bytes of it.
func clip(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "…"
	}
	return strconv.Quote(s)
}
