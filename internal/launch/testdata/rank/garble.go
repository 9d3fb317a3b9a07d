package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"gopgas/internal/pmi"
)

// truth are lines of a good conversation, without those that end it.
var truth = []string{
	"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes", "cmd=get_appnum", "cmd=get_universe_size", "cmd=get_my_kvsname",
	"cmd=put kvsname=job key=a value=b", "cmd=get kvsname=job key=PMI_process_mapping", "cmd=lookup_name service=s", "cmd=barrier_in",
}

// garble says so many lines on the PMI connection, each of them spoilt, as the seed wills, and a last one that is PMI by no chance. Half of the
// ranks begin as they should. Answers are read, as far as there are any, and a connection that is closed is no failure of this rank.
func garble(seed, lines string) error {
	s, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(lines)
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(s, uint64(self())))
	var text strings.Builder
	if rnd.IntN(2) == 0 {
		fmt.Fprintln(&text, truth[0])
	}
	for range n {
		fmt.Fprintln(&text, spoil(rnd, truth[rnd.IntN(len(truth))]))
	}
	fd, err := strconv.Atoi(os.Getenv("PMI_FD"))
	if err != nil {
		return err
	}
	conn, err := pmi.Adopt(fd)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	_, _ = io.WriteString(conn, text.String()+"no PMI\n")
	return nil
}

// spoil changes a line somewhere: other bytes, fewer, more, or far more than a line holds.
func spoil(rnd *rand.Rand, line string) string {
	b := []byte(line)
	for range 1 + rnd.IntN(5) {
		i := rnd.IntN(len(b) + 1)
		switch rnd.IntN(8) {
		case 0, 1, 2:
			b[min(i, len(b)-1)] = byte(rnd.IntN(256))
		case 3, 4:
			b = append(b[:i:i], b[min(len(b), i+1+rnd.IntN(9)):]...)
		case 5, 6:
			b = append(b[:i:i], append([]byte{byte(rnd.IntN(256)), '='}, b[i:]...)...)
		default:
			b = append(b, strings.Repeat("x", rnd.IntN(2*pmi.MaxLine))...)
		}
		if len(b) == 0 {
			break
		}
	}
	return string(b)
}
