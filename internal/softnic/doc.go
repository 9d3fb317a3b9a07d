// Package softnic is what NICs made of software share: registration, keys, the movement of bytes between
// lists of memory, what an operation must be like, and shared receive queues. transport/tcp and transport/soft are built on it; the
// simulator's NIC and the loop-back NIC use of it what they need.
//
// # Terms
//
//   - Pins: the pages that this process has locked for its software NICs, with a count per page, because mlock
//     does not nest: the page of two registrations stays locked until the second one goes. One Pins serves
//     all domains of a process.
//   - Table: the registrations of one domain, and their keys.
//   - Key: a slot number (the low 16 bits) and 48 random bits from a generator that the system's random source
//     has seeded. Neither key of a region can be computed from the other or from another region's.
//   - Recvs: buffers for messages, without a lock of their own.
//   - Hold: permission to touch a region for a moment. Deregistration waits for all holds.
//
// # Life of a registration
//
// Table.Add checks the limits, locks the pages that no other registration has locked yet, and draws the keys.
// Whoever moves bytes asks the table: Local for memory of this rank that the caller of Post has promised to
// keep registered, Hold for memory that its owner may deregister at any time. Table.Remove revokes the keys, waits
// until nobody holds the region, unlocks the pages that no other registration has, and frees the slot. A
// provider whose peers touch memory without this table's knowledge takes the three steps itself: Revoke, then
// its own wait, then Free.
//
// # Invariants (tested)
//
//   - N1: a page is locked exactly as long as a registration covers part of it.
//   - N2: the bytes locked never pass the limit of the Pins, nor the registrations that of the table; the
//     error is a *transport.LimitError and nothing has changed then. The limit is the NIC's own: it binds root
//     too, whom the kernel's does not.
//   - N3: Local and Hold allow exactly what lies within the region that the key names, with the rights that
//     were given; no address or length overflows them.
//   - N4: after Revoke no new Hold succeeds; when Idle says so, none is left.
//   - N5: a slot that is used again has other keys.
//   - N6: Local, Hold, Release, Gather and Scatter allocate nothing and take no lock.
//
// # Lock order
//
//	Table.mu
//	  Pins.mu
//
// Pins.mu is held during mlock, because the order of locking and unlocking one page matters.
//
// # Limits
//
// Memory is given as mem.Range, whether it is Go's or a mapping. Pages of the Go heap may be locked: mlock keeps
// them resident, and the Range in the table keeps the object alive. Only Linux locks pages; elsewhere Add fails
// with an error wrapping transport.ErrUnsupported.
package softnic
