package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// role names the variable that turns this test binary into a rank of a job under test.
const role = "BOOTSTRAP_TEST_ROLE"

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		if err := beRank(r); err != nil {
			fmt.Fprintln(os.Stderr, "rank:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beRank plays a rank as r says and prints what the test reads.
func beRank(r string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	j, err := Open(ctx, os.Environ())
	if err != nil {
		return err
	}
	switch r {
	case "exchange":
		if err := playExchange(ctx, j); err != nil {
			return err
		}
	case "abort":
		// mpiexec.hydra now and then dies of a signal if a rank aborts while others have still to be started.
		if err := j.Barrier(ctx); err != nil {
			return err
		}
		if j.Rank() == 1 {
			return j.Abort(7, "the test says so")
		}
		return j.Barrier(ctx)
	case "child": // B3: a child finds neither our descriptor nor a job
		out, err := exec.Command("/bin/sh", "-c", "[ -e /proc/self/fd/"+os.Getenv("PMI_FD")+" ] && echo inherited || echo closed").Output()
		if err != nil {
			return err
		}
		fmt.Printf("%s", out)
	case "alone":
		fmt.Println(j.Rank(), j.Size(), j.Launcher())
	}
	return j.Close()
}

func playExchange(ctx context.Context, j Job) error {
	for round, length := range []int{0, 10, 5000} {
		cards, err := j.Exchange(ctx, testCard(j.Rank(), round, length))
		if err != nil {
			return err
		}
		if len(cards) != j.Size() {
			return fmt.Errorf("%d cards in a job of %d", len(cards), j.Size())
		}
		for rank, card := range cards {
			if !bytes.Equal(card, testCard(rank, round, length)) {
				return fmt.Errorf("round %d: card of rank %d is %q", round, rank, card)
			}
		}
		if err := j.Barrier(ctx); err != nil {
			return err
		}
	}
	secret, err := Secret(ctx, j)
	if err != nil {
		return err
	}
	fmt.Printf("%d/%d %s %s %x\n", j.Rank(), j.Size(), j.Launcher(), j.Name(), secret)
	return nil
}

// testCard has a length that differs between ranks where length is not 0.
func testCard(rank, round, length int) []byte {
	if length == 0 {
		return []byte{}
	}
	return bytes.Repeat([]byte(strconv.Itoa(rank)+"-"+strconv.Itoa(round)+"\x00"), length+rank)
}
