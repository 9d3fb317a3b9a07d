// Package shm lets the ranks of one node map each other's exposed memory, and then use loads, stores and the
// CPU's atomics. It is a transport.Mapper in two bodies with one name: Open for ranks that are processes,
// NewGroup for ranks that are goroutines of one process. It is not a NIC: nothing is ever sent.
//
// # Terms
//
//   - Owner: the rank whose memory it is. Peer: a rank that maps it.
//   - Way: how memory is made (a memfd; an unlinked 0600 file in /dev/shm where memfd_create is refused) or how
//     a peer reaches it (the owner's folder in /proc; the owner's socket). Ways are tried in this order.
//   - Token: what a peer must know, as wire data: which process and descriptor, which device, inode and size
//     must be found there, which boot and pid namespace it speaks of, and the name and the secret for the
//     socket. Treat it as the job's secret: whoever has it and is the same user can map the memory.
//   - Limit: what the machine, the control group or the process may hold. See Limits.
//
// # Life of shared memory
//
// Alloc compares what is wanted with every limit that is known, makes an object without a name, seals its
// size, maps it, and has the kernel set all its pages aside. The owner keeps the object's one descriptor. Map
// opens the object by a way that works, compares device, inode and size, maps it and closes the descriptor at
// once. Free unmaps, closes and forgets; what peers have mapped stays theirs until they Unmap. When the last
// mapping goes, by Unmap, Close or the end of a process however violent, the kernel takes the memory back.
//
// Peek reads memory of a peer that it has not exposed, by a copy of the kernel's: for collectives of Go memory, whose owner
// keeps it meanwhile.
//
// Memory of a goroutine rank is a Go slice. Map returns the same addresses, so the race detector sees all
// ranks; the collector takes the memory when nobody holds it any more.
//
// # Invariants (tested)
//
//   - H1: memory that Alloc returned can be touched. Every page is charged by fallocate inside Alloc, because a
//     memfd's or a tmpfs's page charged at first touch ends the process (SIGBUS, or the OOM killer) when there
//     is none left. Measured, fallocate takes a sixth of a first touch and makes the touch cheaper by as much.
//   - H2: a limit is an error before it is a signal, and names what was found, what is needed and the cure.
//   - H3: no object has a name while it is used, so nothing is left behind by a kill. (Where /dev/shm is a file
//     system without O_TMPFILE a name exists between two system calls.)
//   - H4: a recycled pid or descriptor number is never taken for the owner: what was opened must have the
//     token's device, inode and size and, for a memfd, its random name. It is compared before it is opened for
//     use, since opening a stranger's device can have effects.
//   - H5: a peer holds no descriptor per mapping, an owner one per allocation and one for the socket.
//   - H6: the socket serves only processes of the same user that know an object's secret, one at a time, and
//     waits a second for one that says nothing.
//   - H7: a peer cannot shrink a memfd under the others' feet (F_SEAL_SHRINK). A file can be truncated by any
//     process of the same user that has it open.
//   - H8: Peek reads only of the process that a token names, and never a stranger's that counts processes otherwise; what cannot be read is an error and no signal.
//     Open lets processes of the same user read this one's memory where Yama (ptrace_scope 1) would let only ancestors.
//
// # Lock order
//
//	Mapper.starting
//	  Mapper.mu
//	    machine.mu
//	table.mu (goroutine ranks)
//
// No lock is held across a system call that can take long, but for the start and the end of the server.
//
// # Limits
//
// Memory cannot be mapped across machines, boots, users, or pid and network namespaces that both differ: Map's
// error wraps transport.ErrUnsupported and tells what became of each way. Checking a limit and taking the memory are
// two steps; ranks that allocate at the same time see each other's memory every 16 MiB, not sooner. Swap does
// not count as memory. Huge pages are asked for only where the kernel's shmem setting is "advise"; they are
// then made, and cleared, inside Alloc. Only Linux has Open; NewGroup works everywhere.
package shm
