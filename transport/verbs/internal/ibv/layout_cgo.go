//go:build linux && cgo && (amd64 || arm64)

package ibv

// #include "flat.h"
import "C"

import "unsafe"

// The Go structures have the sizes of the C ones, and members behind others of another size lie where those of the C
// ones do: an array with a negative length does not compile.
type (
	_ [unsafe.Sizeof(Limits{}) - C.sizeof_struct_flat_limits]struct{}
	_ [C.sizeof_struct_flat_limits - unsafe.Sizeof(Limits{})]struct{}
	_ [unsafe.Sizeof(Port{}) - C.sizeof_struct_flat_port]struct{}
	_ [C.sizeof_struct_flat_port - unsafe.Sizeof(Port{})]struct{}
	_ [unsafe.Sizeof(GID{}) - C.sizeof_struct_flat_gid]struct{}
	_ [C.sizeof_struct_flat_gid - unsafe.Sizeof(GID{})]struct{}
	_ [unsafe.Sizeof(NIC{}) - C.sizeof_struct_flat_nic]struct{}
	_ [C.sizeof_struct_flat_nic - unsafe.Sizeof(NIC{})]struct{}
	_ [unsafe.Sizeof(QP{}) - C.sizeof_struct_flat_qp]struct{}
	_ [C.sizeof_struct_flat_qp - unsafe.Sizeof(QP{})]struct{}
	_ [unsafe.Sizeof(Path{}) - C.sizeof_struct_flat_path]struct{}
	_ [C.sizeof_struct_flat_path - unsafe.Sizeof(Path{})]struct{}
	_ [unsafe.Sizeof(Region{}) - C.sizeof_struct_flat_region]struct{}
	_ [C.sizeof_struct_flat_region - unsafe.Sizeof(Region{})]struct{}
	_ [unsafe.Sizeof(Send{}) - C.sizeof_struct_flat_send]struct{}
	_ [C.sizeof_struct_flat_send - unsafe.Sizeof(Send{})]struct{}
	_ [unsafe.Sizeof(Recv{}) - C.sizeof_struct_flat_recv]struct{}
	_ [C.sizeof_struct_flat_recv - unsafe.Sizeof(Recv{})]struct{}
	_ [unsafe.Sizeof(Done{}) - C.sizeof_struct_flat_done]struct{}
	_ [C.sizeof_struct_flat_done - unsafe.Sizeof(Done{})]struct{}
	_ [unsafe.Sizeof(Event{}) - C.sizeof_struct_flat_event]struct{}
	_ [C.sizeof_struct_flat_event - unsafe.Sizeof(Event{})]struct{}
	_ [Batch - C.FLAT_BATCH]struct{}
	_ [C.FLAT_BATCH - Batch]struct{}
)

// Values, for the offsets of their members.
const (
	sendFlags = unsafe.Offsetof(Send{}.Flags) - unsafe.Offsetof(C.struct_flat_send{}.flags)
	sendSGE   = unsafe.Offsetof(Send{}.SGE) - unsafe.Offsetof(C.struct_flat_send{}.sge)
	sendError = unsafe.Offsetof(Send{}.Error) - unsafe.Offsetof(C.struct_flat_send{}.error)
	pathPKey  = unsafe.Offsetof(Path{}.PKeyIndex) - unsafe.Offsetof(C.struct_flat_path{}.pkey_index)
	pathPort  = unsafe.Offsetof(Path{}.Port) - unsafe.Offsetof(C.struct_flat_path{}.port)
	nicCQE    = unsafe.Offsetof(NIC{}.CQE) - unsafe.Offsetof(C.struct_flat_nic{}.cqe)
	doneQP    = unsafe.Offsetof(Done{}.QPNumber) - unsafe.Offsetof(C.struct_flat_done{}.qp_number)
	maxPorts  = unsafe.Offsetof(Limits{}.Ports) - unsafe.Offsetof(C.struct_flat_limits{}.ports)
)

var _ [0]struct{} = [sendFlags + sendSGE + sendError + pathPKey + pathPort + nicCQE + doneQP + maxPorts]struct{}{}
