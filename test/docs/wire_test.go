package docs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"gopgas/firehose"
	"gopgas/internal/agent"
	"gopgas/internal/pmi"
	"gopgas/internal/superpipe"
	"gopgas/internal/wire"
)

// field is a line of a table of offsets.
type field struct {
	off, n int
	name   string
}

// section returns what stands under a heading of the page on wire formats, up to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(text(t, "docs/wire-formats.md"), "\n"+heading+"\n")
	require.True(t, found, heading)
	rest, _, _ = strings.Cut(rest, "\n#")
	return rest
}

// layout returns the table of offsets under a heading. Its fields follow each other without gaps, but for the one that is
// allowed, and end at total.
func layout(t *testing.T, heading string, total, gap int) map[string]field {
	t.Helper()
	fields, end, left := map[string]field{}, 0, 0
	for _, row := range table(section(t, heading), "offset", "bytes", "field") {
		off, err := strconv.Atoi(row[0])
		require.NoError(t, err)
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		left += off - end
		end = off + n
		if row[2] != "zero" {
			require.NotContains(t, fields, row[2], heading)
			fields[row[2]] = field{off, n, row[2]}
		}
	}
	require.Equal(t, total, end, "%s: its length", heading)
	require.Equal(t, gap, left, "%s: bytes between fields", heading)
	return fields
}

// put is where a field of all ones shows in an encoded message: a first byte and a number of bytes.
func put(t *testing.T, zero, set []byte) (off, n int) {
	t.Helper()
	require.Equal(t, len(zero), len(set))
	off = -1
	for i := range zero {
		if zero[i] != set[i] {
			if off < 0 {
				off = i
			}
			n = i - off + 1
		}
	}
	require.GreaterOrEqual(t, off, 0)
	return off, n
}

func TestHandshakeOffsets(t *testing.T) {
	ones := [32]byte(bytes.Repeat([]byte{0xff}, 32))
	hello := layout(t, "### Hello", wire.HelloBytes, 0)
	challenge := layout(t, "### Challenge", wire.ChallengeBytes, 0)
	proof := layout(t, "### Proof", wire.ProofBytes, 0)
	welcome := layout(t, "### Welcome", wire.WelcomeBytes, 0)
	const all32, all64 = ^uint32(0), ^uint64(0)
	for _, c := range []struct {
		table     map[string]field
		name      string
		zero, set []byte
	}{
		{hello, "Job", (&wire.Hello{}).Append(nil), (&wire.Hello{Job: ones}).Append(nil)},
		{hello, "From", (&wire.Hello{}).Append(nil), (&wire.Hello{From: all32}).Append(nil)},
		{hello, "To", (&wire.Hello{}).Append(nil), (&wire.Hello{To: all32}).Append(nil)},
		{hello, "Caller", (&wire.Hello{}).Append(nil), (&wire.Hello{Caller: all64}).Append(nil)},
		{hello, "Callee", (&wire.Hello{}).Append(nil), (&wire.Hello{Callee: all64}).Append(nil)},
		{hello, "Nonce", (&wire.Hello{}).Append(nil), (&wire.Hello{Nonce: ones}).Append(nil)},
		{challenge, "Verdict", (&wire.Challenge{}).Append(nil), (&wire.Challenge{Verdict: 0xff}).Append(nil)},
		{challenge, "Nonce", (&wire.Challenge{}).Append(nil), (&wire.Challenge{Nonce: ones}).Append(nil)},
		{challenge, "MAC", (&wire.Challenge{}).Append(nil), (&wire.Challenge{MAC: ones}).Append(nil)},
		{proof, "Last", (&wire.Proof{}).Append(nil), (&wire.Proof{Last: all32}).Append(nil)},
		{proof, "Window", (&wire.Proof{}).Append(nil), (&wire.Proof{Window: all32}).Append(nil)},
		{proof, "MAC", (&wire.Proof{}).Append(nil), (&wire.Proof{MAC: ones}).Append(nil)},
		{welcome, "Verdict", (&wire.Welcome{}).Append(nil), (&wire.Welcome{Verdict: 0xff}).Append(nil)},
		{welcome, "Incarnation", (&wire.Welcome{}).Append(nil), (&wire.Welcome{Incarnation: all32}).Append(nil)},
		{welcome, "Window", (&wire.Welcome{}).Append(nil), (&wire.Welcome{Window: all32}).Append(nil)},
		{welcome, "MAC", (&wire.Welcome{}).Append(nil), (&wire.Welcome{MAC: ones}).Append(nil)},
	} {
		off, n := put(t, c.zero, c.set)
		require.Equal(t, field{off, n, c.name}, c.table[c.name])
	}
	prefix := layout(t, "### Prefix", wire.PrefixBytes, 0)
	first := (&wire.Hello{}).Append(nil)
	require.EqualValues(t, wire.Version, binary.LittleEndian.Uint32(first[prefix["version"].off:]))
	require.Contains(t, section(t, "### Prefix"), spaced(first[:prefix["mark"].n]))
}

// spaced writes bytes as the page does.
func spaced(b []byte) string {
	var words []string
	for _, x := range b {
		words = append(words, strconv.FormatUint(uint64(x)|0x100, 16)[1:])
	}
	return "`" + strings.Join(words, " ") + "`"
}

func TestFrameOffsets(t *testing.T) {
	base := layout(t, "### Base", 24, 0)
	const all64 = ^uint64(0)
	zero := (&wire.Header{}).Append(nil)
	for name, h := range map[string]wire.Header{
		"Kind": {Kind: wire.Ack}, "Flags": {Flags: 0xff}, "Status": {Status: 0xff}, "Len": {Len: ^uint32(0)}, "Seq": {Seq: all64}, "Ack": {Ack: all64},
	} {
		off, n := put(t, zero, h.Append(nil))
		require.Equal(t, field{off, n, name}, base[name])
	}
	numbers := map[string]wire.Kind{
		"Write": wire.Write, "WriteImm": wire.WriteImm, "Read": wire.Read, "FetchAdd": wire.FetchAdd, "CompareSwap": wire.CompareSwap,
		"Send": wire.Send, "Ack": wire.Ack, "Data": wire.Data, "Value": wire.Value, "Refuse": wire.Refuse, "NotReady": wire.NotReady,
		"Ready": wire.Ready, "Alive": wire.Alive, "Bye": wire.Bye,
	}
	const longest = 4096 // payload behind a header of the kind's own length
	rows := table(section(t, "### Kinds"), "kind", "number", "header", "has")
	require.Len(t, rows, len(numbers))
	for _, row := range rows {
		kind, known := numbers[row[0]]
		require.True(t, known, row[0])
		require.Equal(t, strconv.Itoa(int(kind)), row[1], row[0])
		set := wire.Header{Kind: kind, Len: 1, RAddr: all64, RKey: all64, Arg0: all64, Arg1: all64, Imm: ^uint32(0)}
		encoded := set.Append(nil)
		require.Equal(t, strconv.Itoa(len(encoded)), row[2], row[0])
		words, payload := 0, false
		for has := range strings.FieldsSeq(row[3]) {
			switch has {
			case "payload":
				payload = true
			case "Status":
			default:
				words++
			}
		}
		require.Equal(t, len(encoded), 24+8*words, row[0])
		require.Equal(t, payload, set.Payload() == 1, row[0])
		set.Len = longest
		require.Len(t, set.Append(nil), len(encoded), row[0])
		if set.Len++; payload {
			require.Len(t, set.Append(nil), wire.MaxHeader, row[0])
		}
	}
	require.Contains(t, section(t, "## TCP NIC: frames"), fmt.Sprintf("more than %d bytes the header is filled up with zeroes to %d bytes", longest, wire.MaxHeader))
}

func TestMoveOffsets(t *testing.T) {
	const all64 = ^uint64(0)
	run := func(n int) []firehose.Run { return make([]firehose.Run, n) }
	move := layout(t, "### Move", 24, 0)
	require.Len(t, (&firehose.Move{}).Append(nil), 24)
	for name, m := range map[string]firehose.Move{
		"ID": {ID: all64}, "Put.Range": {Put: firehose.Put{Range: ^uint32(0)}}, "Put.Off": {Put: firehose.Put{Off: all64}},
	} {
		off, n := put(t, (&firehose.Move{}).Append(nil), m.Append(nil))
		require.Equal(t, field{off, n, name}, move[name])
	}
	for name, m := range map[string]firehose.Move{"New": {New: run(0x101)}, "Old": {Old: run(0x101)}} {
		b := m.Append(nil)
		require.Len(t, b, 24+0x101*12)
		off, n := put(t, make([]byte, 24), b[:24])
		require.Equal(t, field{off, n, name}, move[name])
	}
	reply := layout(t, "### Reply", 12, 0)
	for name, r := range map[string]firehose.Reply{
		"ID": {ID: all64}, "Status": {Status: 0xff}, "Stored": {Stored: true},
	} {
		off, n := put(t, (&firehose.Reply{}).Append(nil), r.Append(nil))
		require.Equal(t, field{off, n, name}, reply[name])
	}
	b := (&firehose.Reply{Keys: make([]uint64, 0x101)}).Append(nil)
	require.Len(t, b, 12+0x101*8)
	off, n := put(t, make([]byte, 12), b[:12])
	require.Equal(t, field{off, n, "Keys"}, reply["Keys"])
}

func TestLeaseOffsets(t *testing.T) {
	const all64, all32 = ^uint64(0), ^uint32(0)
	offer := layout(t, "### Offer", len(superpipe.Offer{}.Append(nil)), 0)
	for name, o := range map[string]superpipe.Offer{"Bytes": {Bytes: all64}, "AckAddr": {AckAddr: all64}, "AckKey": {AckKey: all64}, "Tag": {Tag: all64}} {
		off, n := put(t, superpipe.Offer{}.Append(nil), o.Append(nil))
		require.Equal(t, field{off, n, name}, offer[name])
	}
	grant := layout(t, "### Grant", len(superpipe.Grant{}.Append(nil)), 0)
	for name, g := range map[string]superpipe.Grant{
		"Generation": {Generation: all64}, "Addr": {Addr: all64}, "Key": {Key: all64}, "Lease": {Lease: all32}, "SlotBytes": {SlotBytes: all32},
		"Fold": {Fold: ^uint16(0)}, "Way": {Way: 0xff},
	} {
		off, n := put(t, superpipe.Grant{}.Append(nil), g.Append(nil))
		require.Equal(t, field{off, n, name}, grant[name])
	}
}

// TestOffsetsInSources compares tables with the source of encoders that packages keep to themselves.
func TestOffsetsInSources(t *testing.T) {
	check := func(heading, file, pattern string, total, gap, least int) {
		fields, seen := layout(t, heading, total, gap), 0
		code, _, _ := strings.Cut(text(t, file), "heapTokenLen)") // tokens of one process are another form
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(code, -1) {
			name, off := m[1], m[2]
			if n, err := strconv.Atoi(m[1]); err == nil {
				name, off = m[2], strconv.Itoa(n)
			}
			if unicode.IsUpper(rune(name[0])) { // an exported name: PSN is psn in the table
				name = strings.ToLower(name)
			}
			f, known := fields[name]
			require.True(t, known, "%s: %s has %s", heading, file, name)
			require.Equal(t, strconv.Itoa(f.off), off, "%s: %s", heading, name)
			seen++
		}
		require.GreaterOrEqual(t, seen, least, heading)
	}
	check("## Active messages", "internal/am/header.go", `LittleEndian\.PutUint\d+\(b\[(\d+):\], h\.(\w+)\)`, 50, 0, 4)
	check("### Token of mapped memory", "transport/shm/token.go", `(\w+): +(?:u64\(|binary\.LittleEndian\.Uint32\(b\[|\[16\]byte\(b\[)(\d+)`, 96, 0, 10)
	check("### verbs frame", "transport/verbs/internal/side/wire.go", `BigEndian\.PutUint\d+\(b\[(\d+):\], f\.(?:Card\.)?(\w+)\)`, 40, 0, 4)
	check("### verbs address", "transport/verbs/internal/side/wire.go", `a\.(Rank|Instance).* = .*BigEndian\.Uint32\(b\[(\d+):\]\), .*b\[8:\]`, 34, 0, 1)
	check("## TCP NIC: the address", "transport/tcp/address.go", `a\.(rank|instance).* = .*LittleEndian\.Uint32\(b\[(\d+):\]\), .*b\[8:\]`, 17, 0, 1)
	for file, constants := range map[string][]string{
		"internal/am/header.go":                 {"headerBytes = 64"},
		"transport/verbs/internal/side/wire.go": {"addressBytes = 34", "frameBody = 40", "addressMark  = 0x7662", "wireVersion = 1"},
		"transport/verbs/internal/side/auth.go": {"macBytes       = 16"},
		"transport/tcp/address.go": {
			"addressHead = 4 + 4 + 8 + 1", "addressMark = 0x01706374", "maxPlaces   = 8",
		},
		"transport/shm/token.go":  {"tokenVersion  = 1", "tokenLen      = 96"},
		"internal/trace/write.go": {"PGASTRC1"},
	} {
		for _, c := range constants {
			require.Contains(t, text(t, file), c, file)
		}
	}
}

// TestMemoryCardOffsets follows the calls by which the card is appended.
func TestMemoryCardOffsets(t *testing.T) {
	fields := layout(t, "### Memory card", 41, 0)
	_, encoder, found := strings.Cut(text(t, "internal/card/card.go"), "func (c Card) Encode() []byte {")
	require.True(t, found)
	encoder, _, _ = strings.Cut(encoder, "\n}\n")
	off := fields["flags"].n
	appends := regexp.MustCompile(`AppendUint(\d+)\(b, (?:uint\d+\()?(?:len\()?c\.(\w+)`).FindAllStringSubmatch(encoder, -1)
	require.Len(t, appends, len(fields)-1)
	for _, m := range appends {
		bits, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		name := strings.ToLower(m[2])
		require.Equal(t, field{off, bits / 8, name}, fields[name])
		off += bits / 8
	}
}

// TestCardFields compares the order of a card's fields.
func TestCardFields(t *testing.T) {
	rows := table(section(t, "## Cards"), "field", "name")
	var names []string
	for _, f := range parsed(t, "pgas").files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "card") {
				names = append(names, v.Names[0].Name)
			}
			return true
		})
	}
	require.Len(t, names, len(rows)+1, "%v; the last one counts them", names)
	for i, row := range rows {
		require.Equal(t, []string{strconv.Itoa(i), names[i]}, row[:2])
	}
}

// TestPMIWords: the limits, and every word of the table in the code of the client or the server.
func TestPMIWords(t *testing.T) {
	page := section(t, "## PMI-1")
	for _, limit := range []int{pmi.MaxLine, pmi.MaxKey, pmi.MaxValue, pmi.PortableValue} {
		require.Contains(t, page, strconv.Itoa(limit))
	}
	code := text(t, "internal/pmi/client.go") + text(t, "internal/pmiserver/server.go")
	rows := table(page, "the rank says", "the launcher answers")
	require.Len(t, rows, 10)
	for _, row := range rows {
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[0]+row[1], -1) {
			require.True(t, strings.Contains(code, `"`+m[1]+`"`), m[1])
		}
	}
	kinds := table(section(t, "## Control channel"), "kind", "from")
	require.Len(t, kinds, 5)
	for _, row := range kinds {
		require.Contains(t, text(t, "internal/control/message.go"), `kind = "`+strings.Trim(row[0], "`")+`"`)
	}
}

// TestAgentFrame: the sizes that the page names are those of the code.
func TestAgentFrame(t *testing.T) {
	layout(t, "### Agent frame", agent.HeaderBytes, 0)
	for _, n := range []int{agent.MaxData, agent.MaxNote, agent.Window} {
		require.Contains(t, section(t, "### Agent frame"), strconv.Itoa(n))
	}
	require.Contains(t, section(t, "## The agent's stream"), "number of the protocol ("+strconv.Itoa(agent.Protocol)+")")
}
