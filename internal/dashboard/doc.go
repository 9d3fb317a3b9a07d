// Package dashboard shows a job while it runs: a page for people and metrics for Prometheus, over HTTP, out of the launcher.
//
// # Terms
//
//   - Board: what is known of the job now: by rank its state, its waits and its counters.
//   - Sample: what a rank says of itself; see package control. It names totals since the start, and levels.
//   - Flow: what one rank has moved to and from another by one transport; the flows are the traffic matrix.
//   - History: levels and rates of the whole job over time.
//   - Silent: a rank that has not answered for a while: it is stopped, or its machine is busy.
//
// # Life of a page
//
// Listen binds the address, before any rank is started, so that an address in use costs nothing. The launcher tells the Board what
// becomes of the ranks. The page, which is in the binary, asks for /state.json twice a second, and draws; it fetches
// nothing from anywhere else. When the job is over the launcher closes the server, and a page that is open says so and keeps
// what it saw last.
//
// # Invariants
//
//   - D1: an address without a host is the loopback: a job is shown to other machines only by who names an address.
//   - D2: nothing can be changed over HTTP, and no answer waits for a rank.
//   - D3: an answer is bounded whatever the job's size: beyond mostCells ranks the matrix joins neighbours, and the history
//     halves its resolution instead of growing.
//   - D4: a request whose Host header is a foreign name is refused: a page of somebody else's, whose name was made to point to
//     this machine, learns nothing.
//   - D5: what Prometheus is told is a counter never falls.
//
// # Lock order
//
//	Board.mu   (nothing is taken under it)
//
// # Limits
//
// Puts and gets through a View, and loads and stores of Local, are the program's own instructions: nobody can count them.
package dashboard
