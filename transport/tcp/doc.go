// Package tcp is a NIC made of software for networks without RDMA.
package tcp
