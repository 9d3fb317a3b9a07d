// Package ibv is the border to libibverbs, the C library through which programs use RDMA devices. It is the only
// package of the module with C in it.
//
// # Shape
//
// On the C side, ibv.c (what is done once) and flow.c (the data path) speak to the library in its own types, which
// abi.h declares: the few of them that we use, from the stable binary interface. What Go sees, flat.h, has numbers
// only, so that no pointer of Go's is ever stored on the C side and a batch of operations crosses as one array. The Go
// structures that mirror flat.h are compared with it by the compiler (layout_cgo.go).
//
// The library is opened when Load is first called, never by the linker: a program that was built here runs where
// no RDMA software is installed, and finds it where it was not installed when it was built. Without cgo the package
// has the same functions; Load says that they are not there.
//
// # Life of a batch
//
// Post hands up to Batch operations for any queue pairs over in one crossing; the C side links those of each queue
// pair into one chain and rings one doorbell per queue pair. Poll brings up to Batch completions back in one
// crossing, and PostPoll does both in one. A crossing allocates nothing: the C functions neither keep nor return pointers (noescape) and never
// call Go (nocallback).
//
// # Invariants
//
//   - B1: every function but Load may be called only after Load has succeeded.
//   - B2: a handle is used only between the call that made it and the one that ends it; the package does not check.
//   - B3: addresses in an Op are not looked at by Go. Whoever posts keeps the memory alive until the completion.
//   - B4: errors are the kernel's or the library's error numbers (syscall.Errno), never texts.
//   - B5: whoever has taken an asynchronous event acknowledges it once it is known whose its object is: the object does not end before.
//
// # Concurrency
//
// As the library's: all functions may be called at once, but those of one queue pair's life, and the end of an
// object and its use, must not meet.
package ibv
