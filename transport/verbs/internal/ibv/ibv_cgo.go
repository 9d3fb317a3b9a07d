//go:build linux && cgo && (amd64 || arm64)

package ibv

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl
#cgo noescape flat_load
#cgo noescape flat_devices
#cgo noescape flat_open
#cgo noescape flat_query_port
#cgo noescape flat_query_gids
#cgo noescape flat_register
#cgo noescape flat_setup
#cgo noescape flat_teardown
#cgo noescape flat_qp_create
#cgo noescape flat_qp_connect
#cgo noescape flat_post
#cgo noescape flat_post_poll
#cgo noescape flat_post_recv
#cgo noescape flat_poll
#cgo noescape flat_take_async
#cgo noescape flat_status_text
#cgo noescape flat_event_text
#cgo nocallback flat_load
#cgo nocallback flat_devices
#cgo nocallback flat_open
#cgo nocallback flat_query_port
#cgo nocallback flat_query_gids
#cgo nocallback flat_register
#cgo nocallback flat_setup
#cgo nocallback flat_teardown
#cgo nocallback flat_qp_create
#cgo nocallback flat_qp_connect
#cgo nocallback flat_post
#cgo nocallback flat_post_poll
#cgo nocallback flat_post_recv
#cgo nocallback flat_poll
#cgo nocallback flat_take_async
#cgo nocallback flat_status_text
#cgo nocallback flat_event_text
#cgo nocallback flat_close
#cgo nocallback flat_query_pkey
#cgo nocallback flat_deregister
#cgo nocallback flat_qp_error
#cgo nocallback flat_qp_destroy
#cgo nocallback flat_arm
#cgo nocallback flat_take_event
#cgo nocallback flat_ack_async
#include "flat.h"
*/
import "C"

import (
	"errors"
	"strings"
	"syscall"
	"unsafe"
)

// check turns a result of the C side into an error.
func check(rc C.int) error {
	if rc >= 0 {
		return nil
	}
	return syscall.Errno(-rc)
}

// Load finds libibverbs. It is cheap after the first time. The error says what is missing.
func Load() error {
	var why [256]byte
	if C.flat_load((*C.char)(unsafe.Pointer(&why[0])), C.int(len(why))) == 0 {
		return nil
	}
	return errors.New(text(why[:]))
}

// Devices returns the names of the RDMA devices.
func Devices() ([]string, error) {
	var names [8192]byte
	n := C.flat_devices((*C.char)(unsafe.Pointer(&names[0])), C.int(len(names)))
	if n < 0 {
		return nil, check(n)
	}
	return strings.SplitN(string(names[:]), "\x00", int(n)+1)[:n], nil
}

// Open opens a device and says what it can do.
func Open(device string) (context uint64, l Limits, err error) {
	name := append([]byte(device), 0)
	rc := C.flat_open((*C.char)(unsafe.Pointer(&name[0])), (*C.uint64_t)(&context), (*C.struct_flat_limits)(unsafe.Pointer(&l)))
	return context, l, check(rc)
}

// Close closes a device.
func Close(context uint64) error { return check(C.flat_close(C.uint64_t(context))) }

// QueryPort returns the state of a port; the first is 1.
func QueryPort(context uint64, port int) (p Port, err error) {
	err = check(C.flat_query_port(C.uint64_t(context), C.int(port), (*C.struct_flat_port)(unsafe.Pointer(&p))))
	return p, err
}

// QueryGIDs returns the first 256 entries in use of the address tables of all ports.
func QueryGIDs(context uint64) ([]GID, error) {
	list := make([]GID, 256)
	n := C.flat_query_gids(C.uint64_t(context), (*C.struct_flat_gid)(unsafe.Pointer(&list[0])), C.int(len(list)))
	if n < 0 {
		return nil, check(n)
	}
	return list[:n], nil
}

// QueryPKey returns the partition key at index of a port's table.
func QueryPKey(context uint64, port, index int) (uint16, error) {
	key := C.flat_query_pkey(C.uint64_t(context), C.int(port), C.int(index))
	return uint16(max(0, key)), check(key)
}

// Setup makes the protection domain, completion channel and queue, and receive queue of n.Context.
func Setup(n *NIC) error { return check(C.flat_setup((*C.struct_flat_nic)(unsafe.Pointer(n)))) }

// Teardown ends what Setup made. Queue pairs and regions must be gone, and nobody may be in TakeEvent.
func Teardown(n *NIC) error { return check(C.flat_teardown((*C.struct_flat_nic)(unsafe.Pointer(n)))) }

// Register pins bytes at addr and returns their keys.
func Register(n *NIC, addr, bytes uint64, access int) (r Region, err error) {
	rc := C.flat_register(C.uint64_t(n.PD), C.uint64_t(addr), C.uint64_t(bytes), C.int(access), (*C.struct_flat_region)(unsafe.Pointer(&r)))
	return r, check(rc)
}

// Deregister ends a registration.
func Deregister(handle uint64) error { return check(C.flat_deregister(C.uint64_t(handle))) }

// CreateQP makes a queue pair of the wanted sizes, which become the granted ones.
func CreateQP(n *NIC, q *QP) error {
	return check(C.flat_qp_create((*C.struct_flat_nic)(unsafe.Pointer(n)), (*C.struct_flat_qp)(unsafe.Pointer(q))))
}

// ConnectQP makes a new queue pair ready to send.
func ConnectQP(handle uint64, p *Path) error {
	return check(C.flat_qp_connect(C.uint64_t(handle), (*C.struct_flat_path)(unsafe.Pointer(p))))
}

// FailQP ends a queue pair's work: all that it has not done completes as flushed.
func FailQP(handle uint64) error { return check(C.flat_qp_error(C.uint64_t(handle))) }

// DestroyQP ends a queue pair. Completions not yet polled may be lost.
func DestroyQP(handle uint64) error { return check(C.flat_qp_destroy(C.uint64_t(handle))) }

// Post posts up to Batch operations, those of each queue pair in order, and returns how many were refused: they
// have Error set, and no operation behind a refused one of the same queue pair was posted. It allocates nothing.
func Post(ops []Send) (refused int) {
	return int(C.flat_post((*C.struct_flat_send)(unsafe.Pointer(unsafe.SliceData(ops))), C.int(len(ops))))
}

// PostPoll is Post and then Poll, in one crossing. What is wrong with the polling the next Poll says.
func PostPoll(ops []Send, n *NIC, out []Done) (refused, took int) {
	var k C.int
	refused = int(C.flat_post_poll((*C.struct_flat_send)(unsafe.Pointer(unsafe.SliceData(ops))), C.int(len(ops)), C.uint64_t(n.CQ),
		(*C.struct_flat_done)(unsafe.Pointer(unsafe.SliceData(out))), C.int(min(len(out), Batch)), &k))
	return refused, int(max(0, k))
}

// PostRecv adds up to Batch receive buffers and returns how many were taken.
func PostRecv(n *NIC, bufs []Recv) (int, error) {
	rc := C.flat_post_recv(C.uint64_t(n.SRQ), (*C.struct_flat_recv)(unsafe.Pointer(unsafe.SliceData(bufs))), C.int(len(bufs)))
	return int(max(0, rc)), check(rc)
}

// Poll takes up to min(len(out), Batch) completions. It allocates nothing.
func Poll(n *NIC, out []Done) (int, error) {
	rc := C.flat_poll(C.uint64_t(n.CQ), (*C.struct_flat_done)(unsafe.Pointer(unsafe.SliceData(out))), C.int(min(len(out), Batch)))
	return int(max(0, rc)), check(rc)
}

// Arm asks for an event at the next completion, or, of what was sent with FlagSolicited, at the next that has arrived.
func Arm(n *NIC, solicited bool) error {
	only := C.int(0)
	if solicited {
		only = 1
	}
	return check(C.flat_arm(C.uint64_t(n.CQ), only))
}

// TakeEvent takes an event of Arm's; false where there is none. The channel's descriptor must not block.
func TakeEvent(n *NIC) (bool, error) {
	rc := C.flat_take_event(C.uint64_t(n.Channel))
	return rc > 0, check(rc)
}

// TakeAsync takes an asynchronous event; false where there is none. The descriptor must not block.
func TakeAsync(n *NIC) (e Event, ok bool, err error) {
	rc := C.flat_take_async(C.uint64_t(n.Context), (*C.struct_flat_event)(unsafe.Pointer(&e)))
	return e, rc > 0, check(rc)
}

// AckAsync says that nobody asks any more whose the object of an event is: until then its handle is no other object's, since DestroyQP waits.
func AckAsync(e Event) { C.flat_ack_async(C.int(e.Type), C.uint64_t(e.Object)) }

// StatusText is the library's text for Done.Status.
func StatusText(status uint32) string {
	var b [128]byte
	C.flat_status_text(C.int(status), (*C.char)(unsafe.Pointer(&b[0])), C.int(len(b)))
	return text(b[:])
}

// EventText is the library's text for Event.Type.
func EventText(kind uint32) string {
	var b [128]byte
	C.flat_event_text(C.int(kind), (*C.char)(unsafe.Pointer(&b[0])), C.int(len(b)))
	return text(b[:])
}

// text cuts at the first zero byte.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}
