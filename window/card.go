package window

import "encoding/binary"

// card is what a member tells the others of the window that it makes: all must make the same.
type card struct {
	n       uint64 // elements
	made    uint64 // a hash of the element type and the call
	refused bool
	config  Config
}

// cardMark tells a card from what a member exchanges that makes something else.
const cardMark = "window"

func (c card) bytes() []byte {
	b := binary.LittleEndian.AppendUint64(nil, c.n)
	b = binary.LittleEndian.AppendUint64(b, c.made)
	var bits byte
	for i, set := range []bool{c.refused, c.config.Epochs, c.config.StrictEpochs} {
		if set {
			bits |= 1 << i
		}
	}
	return append(append(b, bits), cardMark...)
}

func cardOf(b []byte) (card, bool) {
	if len(b) != 17+len(cardMark) || string(b[17:]) != cardMark {
		return card{}, false
	}
	return card{
		n: binary.LittleEndian.Uint64(b), made: binary.LittleEndian.Uint64(b[8:]),
		refused: b[16]&1 != 0, config: Config{Epochs: b[16]&2 != 0, StrictEpochs: b[16]&4 != 0},
	}, true
}

// with says what the window has beside its elements.
func (c card) with() string {
	switch {
	case c.config.StrictEpochs:
		return " with StrictEpochs"
	case c.config.Epochs:
		return " with Epochs"
	}
	return ""
}
