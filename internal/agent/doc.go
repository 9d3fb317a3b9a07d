// Package agent lets a launcher start ranks on another host. On that host runs an agent: the same program, started by ssh or what stands for it,
// which keeps the processes (internal/crew) and relays. Everything travels over its standard input and output; no port is opened. What the ranks
// do means is decided by the launcher alone, so a job on many hosts ends as one on this machine does.
//
// # Terms
//
//   - Stream: the agent's standard input and output, with frames in both directions.
//   - Note: a frame that asks or tells: start these ranks, this one has ended. JSON.
//   - Channel: a stream of bytes within the stream: one for each of a rank's input, output, error, PMI and control.
//   - Credit: how many bytes of a channel the other end will take. It begins at Window and comes back as they are read.
//   - Carrier: what runs the agent there and moves the stream: ssh, srun, or a plain child.
//
// # Life of an agent
//
// Dial runs the carrier's command and waits for the agent's greeting, past whatever a shell prints before. Start sends the plan, with the
// environment and, if it was just built, the program; the agent starts all its ranks or refuses in words. From then on channels carry what
// ranks and launcher say to each other, and the agent tells of each end, after all that the rank had said. ReadClock compares clocks, and Collect
// brings the files that ranks left in a folder made for them. Finish kills what is left, brings
// what the ranks used, and ends the agent. When its input ends in any other way the agent kills its ranks and ends; when it is
// killed itself, its guard does. When the stream ends early the launcher's ranks there are lost, and that is how they end.
//
// # Invariants
//
//   - A1: nothing secret stands in an argument list or in an environment that others can see: plan, environment and PMI travel in the stream.
//   - A2: whoever reads the stream never waits for a rank or for the launcher's reader: a channel's bytes have room, because their credit
//     was given. So a rank that reads nothing, or a terminal that was stopped, holds up itself alone.
//   - A3: no input makes either end hold more than a window per channel and one note, and nothing that is not a frame is passed on: it
//     ends the stream.
//   - A4: a host that cannot be reached is an error within the time that Dial is given, and says what to do.
//   - A5: what ranks left comes into the folder that Collect is given, as plain files, and nothing goes elsewhere.
//   - A6: a carrier is reaped by Close only. Until then its number stands for its group, so that neither Close nor the launcher's guard can kill a stranger that got the same number.
//
// # Lock order
//
//	server.mu
//	  stream.mu
//	looks.mu
//
// # Limits
//
// When the network to a host goes silent, ssh says so after 15 s; until then its ranks are taken to run. Those of an agent that was stopped are, until it is
// continued or killed; at their end it is waited for no longer than that. An agent whose launcher's machine
// has vanished waits for the TCP connection to be given up, or for its ranks, which notice that they are alone.
package agent
