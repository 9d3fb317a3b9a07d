package model

import (
	"flag"
	"os"
	"strconv"
	"time"
)

var seed = flag.Uint64("model.seed", 0, "replay the traces of this seed; 0: a new one")

// seedVariable tells the ranks of a job that are processes which traces the test has drawn for them.
const seedVariable = "MODEL_SEED"

// firstSeed is the seed of a test's first trace: the one to replay, the one that the other ranks have, or one that no run had before.
func firstSeed() uint64 {
	if s, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err == nil {
		return s
	}
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano())
}
