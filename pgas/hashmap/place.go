package hashmap

import "math/bits"

// table is how places are numbered: per of them on each of p members, and behind those spare ones for the keys whose words would be those of places
// without a key.
type table struct{ p, per int }

// Words of places that have no key: free ones, and those whose key was deleted.
const (
	free = 0
	dead = 1<<64 - 1
)

// lone is the first of the two keys that have places of their own.
const lone = 1<<64 - 2

// spare is how many places each member has for lone keys.
const spare = 8

// newTable has room for twice capacity keys.
func newTable(capacity, p int) table { return table{p, max(1, (2*capacity+p-1)/p)} }

// places is how many there are, without the spare ones.
func (t table) places() int { return t.p * t.per }

// capacity is how many keys there is room for without being far from home.
func (t table) capacity() int { return t.places() / 2 }

// part is how many each member has room for.
func (t table) part() int { return t.per + spare }

// word is what stands for a key in its place.
func word(key uint64) uint64 {
	if key >= lone {
		return 1 + key - lone
	}
	return key + 1
}

// keyOf is the key behind a word at a displacement; ok is false if there is none.
func (t table) keyOf(word uint64, disp int) (key uint64, ok bool) {
	switch {
	case word == free || word == dead:
		return 0, false
	case disp >= t.per:
		return lone + word - 1, true
	}
	return word - 1, true
}

// mixed is a number in which every bit depends on all bits of the key: the finalizer of SplitMix64 (Steele, Lea, Flood 2014), which no two
// keys have in common.
func mixed(key uint64) uint64 {
	key += 0x9e3779b97f4a7c15
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return key ^ key>>31
}

// place is where a key may lie: its home with 0 tries before, and at last, after all others, the place before that. The home is the hash as a fraction
// of all places (Lemire 2019).
func (t table) place(key uint64, tries int) (member, disp int) {
	if key >= lone {
		return tries % t.p, t.per + tries/t.p
	}
	home, _ := bits.Mul64(mixed(key), uint64(t.places()))
	at := int((home + uint64(tries)) % uint64(t.places()))
	return at / t.per, at % t.per
}

// tries is how many places a key may have.
func (t table) tries(key uint64) int {
	if key >= lone {
		return t.p * spare
	}
	return t.places()
}
