// Package touch sees which memory a program touches, by page faults: loads and stores of plain Go code, with the line they are made
// at. It is for finding errors, not for speed: a first touch takes some ten microseconds.
//
// # Terms
//
//   - Second mapping: the pages of memory that can be shared appear at two addresses. What is done through the first one is not seen;
//     the program is given the second one.
//   - Touch: a load or store of a page of the second mapping that is not there since the last Rearm (a minor fault of the kernel's
//     userfaultfd), or a store to one that was only loaded from (a fault of its write protection).
//   - The thread: who is told of faults, writes them down and lets the program go on.
//
// # Life of a touch
//
// The program's thread faults, and sleeps in the kernel. The watching thread reads the address and the thread's number, asks /proc
// where it stands, copies the innermost part of its stack, counts the touch, and has the kernel enter the page: without the right to write
// if the fault was a load. The instruction is made again, and works. Later, whoever calls Take gets the touch, with the
// calls that could be made out on the stack. Rearm takes the pages out of the second mapping; their content stays.
//
// # Why no deadlock is possible
//
// A goroutine that faults keeps its processor, and cannot be stopped by the collector while it is in a function that is not
// to be preempted, as copy is. A goroutine that served faults might wait for either for ever. So the thread is not Go's: it is cloned with a
// stack of its own and with all signals blocked; the runtime does not know of it, and neither stops it nor waits for it. It
// takes no lock of the process, allocates nothing, and waits for nothing but the next fault: it writes to an area that
// is its own until a counter says otherwise, and drops what finds no room. So a fault ends whatever the rest of the process does, and whatever locks its goroutine holds.
// The area and the thread's stack are not watched memory, so the thread does not fault itself.
//
// # Invariants
//
//   - T1: what the thread runs is nosplit, not instrumented, and calls nothing of the runtime. The linker adds up its stack.
//   - T2: a touch is written down before its instruction ends. So who learns of that by any synchronisation of Go finds it
//     pending, or taken.
//   - T3: the address is one that the program has touched. Functions of the runtime that read around what they were given are left out.
//   - T4: after Close the second mapping is ordinary memory.
//
// # Limits
//
// Linux 6.4 or later, on amd64: write protection together with minor faults of shared memory. One touch of a page is seen for each Rearm, and one
// write: of a loop over a page, the first element. Without rights (root, or the sysctl vm.unprivileged_userfaultfd) faults in
// system calls are not served: they fail with EFAULT (Kernel). There is no frame pointer to be had, so callers of a function of
// Go's own packages are searched for on the stack: among pairs of a frame pointer and a return address the first whose call is of
// that function. Callers may be missing, or, behind an indirect call, be those of an earlier one.
package touch
