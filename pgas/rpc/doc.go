// Package rpc lets the members of a team call functions on each other: with a result, without one, and without waiting. It is for what one-sided operations
// cannot say: work that belongs to where the data is, with more than a word of state. It is made of windows and signals, as a program would, so it goes over whatever they go over.
//
//	s := rpc.New(w.Team())
//	add := rpc.HandleInTurn(s, "add", func(_ context.Context, from int, word string) (int, error) {
//		count[word]++
//		return count[word], nil
//	})
//	err := s.Start(ctx)                      // collective; from here on all can be called
//	n, err := add.Call(ctx, owner, "gopher") // waits for the answer
//	p, err := add.CallNB(ctx, owner, "pgas") // does not; p.Wait has it
//	err = add.Send(ctx, owner, "put")        // there is none
//	err = s.Quiesce(ctx)                     // all that was sent has been done, what that has sent too
//	err = s.Close(ctx)
//
// # Terms
//
//   - Service: functions that members of a team call on each other, the same on each.
//   - In turn: of a function that does not wait. All such of a rank are called one after the other. The others may wait, and have a goroutine for each call, unless who serves makes it.
//   - Relief: what takes the place of who serves while he makes a call that lasts (file here.go).
//   - Ring: a part of a member's memory that one other member writes messages into. A message is one piece or several (file ring.go).
//   - Lane: what brings a rank's messages to one member's ring. What finds no room waits in its queue.
//   - Door: how a rank learns of messages: a bell wakes the goroutine that serves; who waits for a call looks by himself, and nobody rings then.
//   - Group: the messages of a member between two of its flushes.
//
// # Life of a call
//
// The caller gives the call a number and puts it into the target's ring, with a signal behind it that says how far the ring is written. Who serves there takes it
// out, calls the function, and the answer travels the same way back, by the number. How far a ring was read its owner tells the writer by another signal, each quarter of
// the ring. A message without an answer is counted by who sends it and by who receives it; a flush is a call that is answered when those before it have been done.
//
// # Invariants
//
//   - R1: who takes messages out never waits for a member: what it has to say that finds no room is kept, without a limit, and so is an answer that cannot be brought for a while. So no ring stays full for ever, whoever calls whom.
//     Who calls or sends waits while more than 256 KiB are kept for that member, 80 bytes for each message included, unless it is called in turn itself.
//   - R2: messages of one goroutine to one member are taken out in the order in which it has sent them, after all that the rank has put to that member before. Where something of that is known to have failed, and no flush
//     has told of it, a call does, and does not begin; of what fails later the next flush tells, and the function is called.
//   - R3: an answer ends the call whose number it has, and no other: a number is used again with another count of uses.
//   - R4: who goes to sleep has said so and looked once more; who leaves a message looks for sleepers behind that; who stops looking looks once more.
//   - R5: nobody touches the memory when Close or the world's end goes on to give it back: leave waits for who does, a second for a function that is called in turn; who comes back from one later looks first.
//   - R6: Quiesce returns only if no member has begun anything between two times at which all it had begun had ended.
//   - R7: who serves leaves the looking to others before he makes a call that may wait. If that is not over at the second look of the relief, a millisecond apart, somebody else serves, and he ends behind it.
//
// # Lock order
//
// A lane's lock and that of the numbers are leaves, and nothing is waited for under them. Who serves, and who lays a lane's messages, has a flag that the others do not wait for.
//
// # Costs and limits
//
// Each member has a ring for each other one, 256 KiB or less (4 MiB together; of more than 1024 members 4 KiB each), and 128 bytes of signals. A rank that is idle has two goroutines asleep; over a NIC,
// where nobody rings, that waits for 5 ms behind a message as the rank's other waits do, and later gets up each millisecond, which a call of a rank that computes may take. A call of plain memory in turn allocates nothing. What a
// function that is not called in turn takes is copied once more. Such a function that has not taken 10 us so far is called by who serves, where no other message waits; if it then waits, or computes for long, messages to the rank
// are delayed for two milliseconds at most, and the next 256 calls of it, or more, have goroutines. Functions may panic, as a goroutine of the program may: the rank ends. A member that is gone ends the calls to it with transport.ErrPeerGone;
// calls among the others go on, but Quiesce and Close, which are collective, fail. A Close that fails so ends the service of that rank, and calls to it end with transport.ErrClosed.
package rpc
