// Package hosts runs jobs over several hosts as a user would, with the real ssh: pgasrun in one network namespace, sshd in each of two, and the
// ranks of both reach each other over the link between them. Tests only.
//
// # Terms
//
//   - Host: a process tree with a network, a hostname, process numbers, System V IPC, mounts, a /dev/shm and a clock of its own; its first process
//     is an sshd. So its ranks are, to the library, a node of its own. The file system is shared, as on clusters.
//
// # Life of a test
//
// Two hosts are made and joined by a pair of virtual Ethernet devices, which have no end elsewhere: the machine's own network is not touched,
// and neither are /etc and the user's ~/.ssh: keys, configuration and known hosts are in a folder of the test. pgasrun is started on
// the first host.
//
// # Invariants
//
//   - H1: all of a host ends with its first process, and that with the test: namespaces, devices and mounts have no names that could stay.
//   - H2: packages that are not there are installed; without root the tests fail, and do not skip.
//
// # Limits
//
// Debian's openssh-server, openssh-client, iproute2 and util-linux. No delay and no loss on the link: that needs a kernel with netem.
package hosts
