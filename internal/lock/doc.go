// Package lock has the locks of a team of ranks: a Mutex, and an RW that one writer or any number of readers hold. Package pgsync
// gives programs both, allocates their memory and says who is in the team; here is how a lock is taken, waited for and handed on.
//
// # Terms
//
//   - Group: the ranks that share locks. A member is one of them, by number.
//   - Block: a piece of symmetric memory of each member. Only member 0's holds a lock's state; a waiter spins on a word of its own.
//   - Ticket: the number of a member's wait for a Mutex, by which a grant tells which wait it is for. With an RW: the turn.
//   - Announcement: a waiter's ticket in its word on member 0.
//   - Place: a member's number in the queue of an RW. The words of all members are the queue.
//   - Grant: the word by which a waiter is told that it holds the lock now.
//
// # Life of a Mutex's hand-over
//
// Who wants the lock swaps its number into the holder's word. If another one's is there it announces itself, tries once more, since
// the holder may have looked for waiters just before, and waits for its grant. Who releases looks for the next living waiter behind
// itself, clears that one's announcement, makes it the holder, and grants. Where it finds nobody it clears the holder's word
// and looks again. A waiter that gives up takes its announcement back; if that is cleared already, a grant is under way, which it
// waits for and hands on. Where a member is gone a waiter looks whether that one had made it the holder, or had left the lock free, before it could tell.
//
// # Life of an RW's hand-over
//
// All changes are made under a Mutex, the guard: a member reads all words, writes its own, and makes holders of those that
// rwNextHolders names, a pure function of the words. So whoever comes or goes hands on. The guard of one who is gone in the midst of that is lost, and the lock with it.
//
// # Invariants
//
//   - L1: a lock is handed to a living waiter. When its holder is gone the lock is lost, and all who want it are told who held it.
//   - L2: a grant is never lost: who no longer waits for it hands the lock on.
//   - L3: a Mutex's waiters are served in order of members after the holder's, an RW's in the order of their places.
//   - L4: an RW's words change under its guard only, and are there before the guard goes on.
//   - L5: what a holder has put is visible to all members before the lock goes on.
//
// # Lock order
//
//	RW.busy
//		RW.guard (a Mutex)
//			Mutex.busy
//
// Each busy is a flag: one goroutine of a rank at a time holds the lock or waits for it; the others wait through package sched.
//
// # Limits
//
// A Mutex's block takes 128 bytes and 8 for each member, an RW's the same beside its guard's. An RW's queue has room for 2^48 waits.
package lock
