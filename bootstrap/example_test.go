package bootstrap_test

import (
	"context"
	"fmt"
	"sync"

	"gopgas/bootstrap"
)

// Two ranks of this process give each other a card.
func ExampleJob() {
	jobs := bootstrap.InProcess(2)
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() {
			cards, err := j.Exchange(context.Background(), fmt.Appendf(nil, "I am rank %d", j.Rank()))
			if j.Rank() == 0 {
				fmt.Printf("%s: %q %v\n", j.Launcher(), cards, err)
			}
			if err := j.Close(); err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	// Output: in-process: ["I am rank 0" "I am rank 1"] <nil>
}

// Whether two processes can share memory.
func ExampleHost() {
	here := bootstrap.ThisHost()
	there := here
	there.BootID = "another boot of another kernel"
	fmt.Println(bootstrap.SameNode(here, here), bootstrap.SameNode(here, there))
	// Output: true false
}
