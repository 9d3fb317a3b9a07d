// flat.h   the functions and structures that Go sees: numbers only, no pointers, no type of libibverbs. Objects of
// the library are numbers too. A function returns 0 or a count, or a negative errno.
#ifndef GOPGAS_FLAT_H
#define GOPGAS_FLAT_H
#include <stdint.h>

struct flat_limits {
	uint64_t max_mr_size;
	uint32_t vendor_id, max_qp, max_qp_wr, max_sge, max_cqe, max_mr, max_srq_wr, max_srq_sge;
	uint32_t max_rd_atomic, max_init_rd_atomic, atomic_cap, ports;
	char firmware[64];
};
struct flat_port {
	uint32_t state, mtu, max_message, gids, pkeys, lid, link_layer, max_mtu;
};
struct flat_gid {
	uint8_t raw[16];
	uint32_t index, port, type, netdev;
};
struct flat_nic { // handles of what one domain holds
	uint64_t context, pd, channel, cq, srq;
	int32_t channel_fd, async_fd;
	uint32_t cqe, recvs, recv_sge, unused; // wanted, then granted
};
struct flat_qp {
	uint64_t handle;
	uint32_t number, sends, send_sge, bytes_inline; // wanted, then granted
};
struct flat_path { // how to reach the other end of a queue pair, and how patiently
	uint8_t gid[16];
	uint32_t remote_number, remote_psn, local_psn, mtu, remote_lid;
	uint8_t port, gid_index, global, rd_atomic, dest_rd_atomic, timeout, retries, rnr_retries, rnr_timer, service;
	uint16_t pkey_index;
};
struct flat_region {
	uint64_t handle;
	uint32_t lkey, rkey;
};
struct flat_sge { // laid out as the library's own
	uint64_t addr;
	uint32_t bytes, lkey;
};
struct flat_send {
	uint64_t qp, id, raddr, arg0, arg1;
	uint32_t rkey, imm;
	int32_t error; // set: 0, or why this one was refused
	uint8_t opcode, flags, nsge, unused;
	struct flat_sge sge[4];
};
struct flat_recv {
	uint64_t id;
	struct flat_sge sge;
};
struct flat_done {
	uint64_t id;
	uint32_t status, opcode, vendor, bytes, imm, qp_number;
};
struct flat_event {
	uint64_t object; // a handle, or a port's number
	uint32_t type, unused;
};

enum { FLAT_BATCH = 64 }; // the most that flat_post, flat_post_recv and flat_poll take at once; so flat_post_poll

int flat_load(char *why, int bytes);
int flat_devices(char *names, int bytes);
int flat_open(const char *name, uint64_t *context, struct flat_limits *limits);
int flat_close(uint64_t context);
int flat_query_port(uint64_t context, int port, struct flat_port *out);
int flat_query_gids(uint64_t context, struct flat_gid *out, int most);
int flat_query_pkey(uint64_t context, int port, int index);
int flat_setup(struct flat_nic *nic);
int flat_teardown(struct flat_nic *nic);
int flat_register(uint64_t pd, uint64_t addr, uint64_t bytes, int access, struct flat_region *out);
int flat_deregister(uint64_t region);
int flat_qp_create(const struct flat_nic *nic, struct flat_qp *qp);
int flat_qp_connect(uint64_t qp, const struct flat_path *path);
int flat_qp_error(uint64_t qp);
int flat_qp_destroy(uint64_t qp);
int flat_post(struct flat_send *ops, int n);
int flat_post_poll(struct flat_send *ops, int n, uint64_t cq, struct flat_done *out, int most, int *took);
int flat_post_recv(uint64_t srq, struct flat_recv *bufs, int n);
int flat_poll(uint64_t cq, struct flat_done *out, int most);
int flat_arm(uint64_t cq, int solicited);
int flat_take_event(uint64_t channel);
int flat_take_async(uint64_t context, struct flat_event *out);
void flat_ack_async(int type, uint64_t object);
int flat_status_text(int status, char *out, int bytes);
int flat_event_text(int type, char *out, int bytes);
#endif
