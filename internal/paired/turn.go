package paired

// Turn returns who of n is measured at a place of a round, both from 0 on. In n rounds, 2n of an odd n, each comes at each place equally often, and
// directly behind each other one equally often: who went before leaves his memory in the caches, and what he leaves there differs. (The designs of
// Williams, 1949.)
func Turn(n, round, place int) int {
	if n%2 == 1 && round/n%2 == 1 {
		place = n - 1 - place
	}
	step := n - place/2
	if place%2 == 1 {
		step = (place + 1) / 2
	}
	return (step + round) % n
}
