// abi.h   the part of libibverbs' stable binary interface that ibv.c uses, in declarations of our own, so that the
// package builds where no RDMA headers are installed. Names are those of libibverbs with abi_ for ibv_. Where the
// real header is installed, a test compares sizes and offsets. Members that nobody here touches are left out at a
// structure's end only where the library allocates it.
#ifndef GOPGAS_ABI_H
#define GOPGAS_ABI_H
#include <stdint.h>
#include <stddef.h>

// Entries of the table of functions that a context carries; they are reached through inline functions only.
enum {
	ABI_OP_POLL_CQ = 11,
	ABI_OP_REQ_NOTIFY_CQ = 12,
	ABI_OP_POST_SRQ_RECV = 20,
	ABI_OP_POST_SEND = 25,
	ABI_OPS = 32,
};

struct abi_context { // allocated by the library
	void *device;
	void *ops[ABI_OPS];
	int cmd_fd, async_fd, num_comp_vectors;
};
struct abi_comp_channel { // allocated by the library
	struct abi_context *context;
	int fd;
};
struct abi_cq { // allocated by the library
	struct abi_context *context;
	struct abi_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
};
struct abi_srq { // allocated by the library
	struct abi_context *context;
};
struct abi_qp { // allocated by the library
	struct abi_context *context;
	void *qp_context, *pd, *send_cq, *recv_cq, *srq;
	uint32_t handle, qp_num;
};
struct abi_mr { // allocated by the library
	struct abi_context *context;
	void *pd, *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
};

struct abi_sge {
	uint64_t addr;
	uint32_t length, lkey;
};
struct abi_send_wr {
	uint64_t wr_id;
	struct abi_send_wr *next;
	struct abi_sge *sg_list;
	int num_sge, opcode;
	unsigned int send_flags;
	uint32_t imm_data; // network order
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr, compare_add, swap;
			uint32_t rkey;
		} atomic;
	} wr;
	uint64_t rest[7]; // for queue pairs of other kinds
};
struct abi_recv_wr {
	uint64_t wr_id;
	struct abi_recv_wr *next;
	struct abi_sge *sg_list;
	int num_sge;
};
struct abi_wc {
	uint64_t wr_id;
	int status, opcode;
	uint32_t vendor_err, byte_len;
	uint32_t imm_data; // network order
	uint32_t qp_num, src_qp;
	unsigned int wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits;
};

struct abi_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};
struct abi_qp_init_attr {
	void *qp_context;
	struct abi_cq *send_cq, *recv_cq;
	struct abi_srq *srq;
	struct abi_qp_cap cap;
	int qp_type, sq_sig_all;
};
struct abi_global_route {
	uint8_t dgid[16] __attribute__((aligned(8)));
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class;
};
struct abi_ah_attr {
	struct abi_global_route grh;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};
struct abi_qp_attr {
	int qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
	unsigned int qp_access_flags;
	struct abi_qp_cap cap;
	struct abi_ah_attr ah_attr, alt_ah_attr;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num;
	uint8_t timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
	uint32_t rate_limit;
};
struct abi_srq_attr {
	uint32_t max_wr, max_sge, srq_limit;
};
struct abi_srq_init_attr {
	void *srq_context;
	struct abi_srq_attr attr;
};

struct abi_device_attr {
	char fw_ver[64];
	uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
	uint32_t vendor_id, vendor_part_id, hw_ver;
	int max_qp, max_qp_wr;
	unsigned int device_cap_flags;
	int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
	int max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap;
	int max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp, max_mcast_qp_attach;
	int max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay, phys_port_cnt;
};
struct abi_port_attr { // the exported ibv_query_port writes the bytes in front of port_cap_flags2
	int state, max_mtu, active_mtu, gid_tbl_len;
	uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
	uint16_t pkey_tbl_len, lid, sm_lid;
	uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state;
	uint8_t link_layer, flags;
	uint16_t port_cap_flags2;
	uint32_t later;
};
struct abi_gid_entry {
	uint8_t gid[16] __attribute__((aligned(8)));
	uint32_t gid_index, port_num, gid_type, ndev_ifindex;
};
struct abi_async_event {
	union {
		void *object;
		int port_num;
	} element;
	int event_type;
};

// Values of the interface's enumerations.
enum { ABI_QPT_RC = 2 };
enum { ABI_QPS_INIT = 1, ABI_QPS_RTR = 2, ABI_QPS_RTS = 3, ABI_QPS_ERR = 6 };
enum { ABI_ACCESS_REMOTE = 2 | 4 | 8 }; // write, read, atomic
enum {
	ABI_QP_STATE = 1 << 0,
	ABI_QP_ACCESS_FLAGS = 1 << 3,
	ABI_QP_PKEY_INDEX = 1 << 4,
	ABI_QP_PORT = 1 << 5,
	ABI_QP_AV = 1 << 7,
	ABI_QP_PATH_MTU = 1 << 8,
	ABI_QP_TIMEOUT = 1 << 9,
	ABI_QP_RETRY_CNT = 1 << 10,
	ABI_QP_RNR_RETRY = 1 << 11,
	ABI_QP_RQ_PSN = 1 << 12,
	ABI_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	ABI_QP_MIN_RNR_TIMER = 1 << 15,
	ABI_QP_SQ_PSN = 1 << 16,
	ABI_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	ABI_QP_DEST_QPN = 1 << 20,
};
#endif
