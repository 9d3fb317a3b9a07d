package auto_test

import (
	"fmt"

	"gopgas/transport/auto"
)

// The NICs that can be named, and one that is made.
func ExampleInfo() {
	var nic auto.Info
	for _, nic = range auto.NICs() {
		fmt.Println(nic.Name, nic.Nodes)
	}
	p, err := auto.Provider("tcp", auto.Config{AcrossNodes: true})
	fmt.Println(p.Name(), err)
	fmt.Println(auto.Choose(1, nil), auto.Choose(2, []string{"", "InfiniBand"}), auto.Choose(2, []string{"InfiniBand", "InfiniBand"}))
	// Output:
	// soft false
	// verbs true
	// tcp true
	// tcp <nil>
	// soft tcp verbs
}
