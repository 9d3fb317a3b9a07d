// Package vm runs programs in a virtual machine that has an RDMA device, so that the verbs transport is tested
// against a real kernel driver on machines without RDMA hardware. Tests only.
//
// # Parts
//
//   - run.sh boots Debian's kernel with Soft-RoCE (the module rdma_rxe) under QEMU's emulation and runs one command
//     there. It can be used by hand; its head lists the options. prepare.sh fetches and unpacks the kernel once,
//     init.sh and guest.sh run inside.
//   - Run is the same for tests. BuildAll and Programs, or Build and Program for one, compile what is to run inside, on the host, where compiling is
//     twenty times faster.
//
// # Life of a run
//
// Run installs QEMU and the few other packages it needs with apt-get where they are absent, and starts run.sh.
// The guest boots the unpacked kernel from a memory file system with the modules, mounts this machine's root
// read-only with memory on top, brings up the devices, and runs the command in the caller's folder. Output and
// status come back through a folder that host and guest share. A quiet machine needs about five seconds from
// start to the command's first instruction.
//
// # Tests
//
// TestVerbs is the transport by itself; TestJobs is jobs of processes and the suites above it (testdata/jobs.sh). The flag
// -vm.long adds all tests of the suites, a link that goes down again and again, the race detector, two devices, two machines and jobs
// across them (testdata/pair.sh), ten thousand windows and all registrations of a device;
// TestPing has small transfers go through slots and past them there and looks at the counters of the library and of the NIC.
// TestVerbsInstructions counts what the library adds to a short operation.
// -vm.numbers measures instead (testdata/numbers.sh), in so many turns and for about as many minutes, and shows what is printed as it comes;
// -vm.rounds says how often at most each of the programs beside ours runs.
//
// # Time, and instructions
//
// What an emulated processor takes for an instruction depends on what the caches and predictors of its host hold, and so on what ran before: one loop
// takes 17 us in one minute and 29 in the next. Machine.Count has one processor instead on which every instruction takes a nanosecond of the machine's own
// clock (QEMU's -icount): times are counts, of the kernel's and of all threads' together, and are the same whatever the host does. What they leave out is
// that a real processor takes longer for some instructions than for others.
//
// # Rules
//
//   - V1: the guest sees this machine's files at their own paths and changes none of them, Machine.Share aside.
//   - V2: a run ends: with the command, or when Machine.Timeout is over, or with the test that started it.
//   - V3: trouble with the machine itself fails the test; only the command's own status is a result.
//   - V4: tests are skipped only where the packages cannot be installed, and the skip names them.
//
// # Limits
//
// The emulated processor is a plain x86-64 (GOAMD64=v1) and twenty to fifty times slower than this machine's:
// times measured inside say something about ratios only, counts about instructions. The guest is root, without a limit on locked memory;
// a command that wants limits sets them itself (ulimit, setpriv). Two commands that busy-wait for each other need
// two processors, which the machine has by default.
package vm
