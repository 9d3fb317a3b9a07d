// Package pmiserver is the launcher's end of PMI-1.1: it lets the ranks of one job find each other. An MPI program that
// was built for a PMI-1 launcher starts under it as well as a program of this library.
//
// # Terms
//
//   - Rank: one process of the job, known by the connection it was given, not by what it says.
//   - Preset: keys that the launcher itself published before any rank began; ranks cannot change them.
//   - Begun, finalized, gone: the states of a rank. Begun by "init", finalized by "finalize", gone when its
//     connection ended or the launcher said so. Garbled and broken: no longer listened to, for what it said or because the
//     connection failed.
//
// # Life of a connection
//
// The launcher makes a socket pair per rank, gives one end to the rank and calls Serve with the other in a goroutine of
// its own. Serve reads a line, acts on the shared state under one lock, answers, and returns when the rank has
// closed, or has said something that is not PMI-1. A barrier is answered by whoever arrives last.
//
// # Invariants
//
//   - V1: what one rank sends can end its own connection and, by "abort" or by leaving, the job; it never ends the
//     server, and the error of Serve names the rank.
//   - V2: a barrier is answered exactly once to each rank that entered, either because all entered or, with rc=-1 and the
//     reason, because one of the missing ranks has left and can never enter.
//   - V3: no rank can make the server hold more than MaxStore bytes, nor hold up the others for more than a second by not
//     reading its answers: it loses its connection.
//   - V4: the launcher hears of an abort, and of the end of a process, before the other ranks do: what they do about it
//     cannot be taken for the first failure. So is a rank that is no longer listened to: the others hear of it with its end, or
//     Config.Linger later.
//   - V5: all that a rank sent before it left is acted upon, also where it did not wait for the answers.
//
// # Lock order
//
//	Server.mu
//	  the write lock inside a net.Conn
//
// OnAbort is called without a lock held.
//
// # Limits
//
// No spawning, no name service, no PMI-2: asked for, the answer is rc=-1 and a reason. Answers are small and the client has
// at most one request in flight, so they fit the socket's buffer.
package pmiserver
