// ibv.c   libibverbs behind flat functions. The library is looked for when the first domain is opened, so a program
// built here runs with and without it.
#include "abi.h"
#include "flat.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct flat_sge) == sizeof(struct abi_sge), "gather lists are passed on as they are");
_Static_assert(offsetof(struct flat_sge, bytes) == offsetof(struct abi_sge, length), "as they are");
_Static_assert(offsetof(struct flat_sge, lkey) == offsetof(struct abi_sge, lkey), "as they are");

#define OBJECT(type, handle) ((struct type *)(uintptr_t)(handle))
#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

// The functions of the library by their names: result, name without the prefix, arguments.
#define LIBRARY(X)                                                                                                     \
	X(void **, get_device_list, (int *))                                                                           \
	X(void, free_device_list, (void **))                                                                           \
	X(const char *, get_device_name, (void *))                                                                     \
	X(struct abi_context *, open_device, (void *))                                                                 \
	X(int, close_device, (struct abi_context *))                                                                   \
	X(int, query_device, (struct abi_context *, struct abi_device_attr *))                                         \
	X(int, query_port, (struct abi_context *, uint8_t, struct abi_port_attr *))                                    \
	X(int, query_pkey, (struct abi_context *, uint8_t, int, uint16_t *))                                           \
	X(void *, alloc_pd, (struct abi_context *))                                                                    \
	X(int, dealloc_pd, (void *))                                                                                   \
	X(struct abi_mr *, reg_mr, (void *, void *, size_t, int))                                                      \
	X(int, dereg_mr, (struct abi_mr *))                                                                            \
	X(struct abi_comp_channel *, create_comp_channel, (struct abi_context *))                                      \
	X(int, destroy_comp_channel, (struct abi_comp_channel *))                                                      \
	X(struct abi_cq *, create_cq, (struct abi_context *, int, void *, struct abi_comp_channel *, int))             \
	X(int, destroy_cq, (struct abi_cq *))                                                                          \
	X(int, get_cq_event, (struct abi_comp_channel *, struct abi_cq **, void **))                                   \
	X(void, ack_cq_events, (struct abi_cq *, unsigned int))                                                        \
	X(struct abi_srq *, create_srq, (void *, struct abi_srq_init_attr *))                                          \
	X(int, destroy_srq, (struct abi_srq *))                                                                        \
	X(struct abi_qp *, create_qp, (void *, struct abi_qp_init_attr *))                                             \
	X(int, modify_qp, (struct abi_qp *, struct abi_qp_attr *, int))                                                \
	X(int, destroy_qp, (struct abi_qp *))                                                                          \
	X(int, get_async_event, (struct abi_context *, struct abi_async_event *))                                      \
	X(void, ack_async_event, (struct abi_async_event *))                                                           \
	X(const char *, wc_status_str, (int))                                                                          \
	X(const char *, event_type_str, (int))

static struct {
#define FIELD(result, name, args) result(*name) args;
	LIBRARY(FIELD)
#undef FIELD
	ssize_t (*query_gid_table)(struct abi_context *, struct abi_gid_entry *, size_t, uint32_t, size_t);
} lib;

static struct {
	pthread_mutex_t mutex;
	int done;
	char why[256]; // what is missing; empty: nothing
} loading = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void load(void)
{
	void *so = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!so) {
		snprintf(loading.why, sizeof loading.why, "%s", dlerror());
		return;
	}
#define FIND(result, name, args)                                                                                       \
	if (!(lib.name = (result(*) args)dlsym(so, "ibv_" #name)))                                                     \
		snprintf(loading.why, sizeof loading.why, "libibverbs.so.1 lacks ibv_%s", #name);
	LIBRARY(FIND)
#undef FIND
	lib.query_gid_table = (ssize_t(*)(struct abi_context *, struct abi_gid_entry *, size_t, uint32_t, size_t))dlsym(
		so, "_ibv_query_gid_table");
	if (!lib.query_gid_table)
		snprintf(loading.why, sizeof loading.why, "libibverbs.so.1 lacks ibv_query_gid_table: it is older than rdma-core 32");
}

// flat_load finds the library, once. It returns 0, or a negative number and what is missing.
int flat_load(char *why, int bytes)
{
	pthread_mutex_lock(&loading.mutex);
	if (!loading.done) {
		load();
		loading.done = 1;
	}
	pthread_mutex_unlock(&loading.mutex);
	snprintf(why, bytes, "%s", loading.why);
	return loading.why[0] ? -ENOSYS : 0;
}

// failed is for functions of the library that return an errno, or -1 and set errno.
static int failed(int rc)
{
	if (rc == 0)
		return 0;
	if (rc == -1 && errno)
		rc = errno;
	return rc < 0 ? rc : -rc;
}

// missing is for functions that return a null pointer and set errno.
static int missing(void) { return errno ? -errno : -EIO; }

// flat_devices writes the names of the devices, each ended by a zero byte, and returns how many there are.
int flat_devices(char *names, int bytes)
{
	int n = 0, used = 0, fit = 0;
	errno = 0;
	void **list = lib.get_device_list(&n);
	if (!list)
		return missing();
	for (int i = 0; i < n; i++) {
		const char *name = lib.get_device_name(list[i]);
		int length = (int)strlen(name) + 1;
		if (used + length > bytes)
			break;
		memcpy(names + used, name, length);
		used += length;
		fit++;
	}
	lib.free_device_list(list);
	return fit;
}

int flat_open(const char *name, uint64_t *context, struct flat_limits *out)
{
	int n = 0, rc = -ENODEV;
	errno = 0;
	void **list = lib.get_device_list(&n);
	if (!list)
		return missing();
	for (int i = 0; i < n; i++) {
		if (strcmp(name, lib.get_device_name(list[i])) != 0)
			continue;
		errno = 0;
		struct abi_context *c = lib.open_device(list[i]);
		if (!c) {
			rc = missing();
			break;
		}
		struct abi_device_attr a = {0};
		rc = failed(lib.query_device(c, &a));
		if (rc) {
			lib.close_device(c);
			break;
		}
		*context = HANDLE(c);
		out->max_mr_size = a.max_mr_size;
		out->vendor_id = a.vendor_id;
		out->max_qp = a.max_qp;
		out->max_qp_wr = a.max_qp_wr;
		out->max_sge = a.max_sge < a.max_sge_rd || a.max_sge_rd == 0 ? a.max_sge : a.max_sge_rd;
		out->max_cqe = a.max_cqe;
		out->max_mr = a.max_mr;
		out->max_srq_wr = a.max_srq ? a.max_srq_wr : 0;
		out->max_srq_sge = a.max_srq_sge;
		out->max_rd_atomic = a.max_qp_rd_atom;
		out->max_init_rd_atomic = a.max_qp_init_rd_atom;
		out->atomic_cap = a.atomic_cap;
		out->ports = a.phys_port_cnt;
		memcpy(out->firmware, a.fw_ver, sizeof out->firmware);
		out->firmware[sizeof out->firmware - 1] = 0;
		break;
	}
	lib.free_device_list(list);
	return rc;
}

int flat_close(uint64_t context) { return failed(lib.close_device(OBJECT(abi_context, context))); }

int flat_query_port(uint64_t context, int port, struct flat_port *out)
{
	struct abi_port_attr a = {0};
	int rc = failed(lib.query_port(OBJECT(abi_context, context), port, &a));
	if (rc)
		return rc;
	*out = (struct flat_port){
		.state = a.state,
		.mtu = a.active_mtu,
		.max_mtu = a.max_mtu,
		.max_message = a.max_msg_sz,
		.gids = a.gid_tbl_len,
		.pkeys = a.pkey_tbl_len,
		.lid = a.lid,
		.link_layer = a.link_layer,
	};
	return 0;
}

// flat_query_gids returns the entries in use of all ports' address tables, and how many there are.
int flat_query_gids(uint64_t context, struct flat_gid *out, int most)
{
	struct abi_gid_entry e[256];
	if (most > 256)
		most = 256;
	ssize_t n = lib.query_gid_table(OBJECT(abi_context, context), e, most, 0, sizeof e[0]);
	for (ssize_t i = 0; i < n; i++) {
		memcpy(out[i].raw, e[i].gid, sizeof out[i].raw);
		out[i].index = e[i].gid_index;
		out[i].port = e[i].port_num;
		out[i].type = e[i].gid_type;
		out[i].netdev = e[i].ndev_ifindex;
	}
	return (int)n;
}

// flat_query_pkey returns an entry of the table of partition keys.
int flat_query_pkey(uint64_t context, int port, int index)
{
	uint16_t key = 0;
	int rc = failed(lib.query_pkey(OBJECT(abi_context, context), port, index, &key));
	return rc ? rc : ntohs(key);
}

// flat_setup makes what a domain has one of. On failure it has left nothing behind.
int flat_setup(struct flat_nic *nic)
{
	struct abi_context *c = OBJECT(abi_context, nic->context);
	errno = 0;
	void *pd = lib.alloc_pd(c);
	if (!pd)
		return missing();
	nic->pd = HANDLE(pd);
	struct abi_comp_channel *channel = lib.create_comp_channel(c);
	struct abi_cq *cq = NULL;
	struct abi_srq *srq = NULL;
	if (channel)
		cq = lib.create_cq(c, nic->cqe, NULL, channel, 0);
	struct abi_srq_init_attr a = {.attr = {.max_wr = nic->recvs, .max_sge = nic->recv_sge}};
	if (cq && nic->recvs)
		srq = lib.create_srq(pd, &a);
	nic->channel = HANDLE(channel);
	nic->cq = HANDLE(cq);
	nic->srq = HANDLE(srq);
	if (!cq || (nic->recvs && !srq)) {
		int rc = missing();
		flat_teardown(nic);
		return rc;
	}
	nic->cqe = cq->cqe;
	nic->recvs = nic->recvs ? a.attr.max_wr : 0;
	nic->channel_fd = channel->fd;
	nic->async_fd = c->async_fd;
	return 0;
}

// flat_teardown is the inverse of flat_setup; queue pairs and regions are gone. It returns the first error.
int flat_teardown(struct flat_nic *nic)
{
	int first = 0, rc;
	if (nic->srq && (rc = failed(lib.destroy_srq(OBJECT(abi_srq, nic->srq)))) && !first)
		first = rc;
	if (nic->cq && (rc = failed(lib.destroy_cq(OBJECT(abi_cq, nic->cq)))) && !first)
		first = rc;
	if (nic->channel && (rc = failed(lib.destroy_comp_channel(OBJECT(abi_comp_channel, nic->channel)))) && !first)
		first = rc;
	if (nic->pd && (rc = failed(lib.dealloc_pd((void *)(uintptr_t)nic->pd))) && !first)
		first = rc;
	nic->srq = nic->cq = nic->channel = nic->pd = 0;
	return first;
}

int flat_register(uint64_t pd, uint64_t addr, uint64_t bytes, int access, struct flat_region *out)
{
	errno = 0;
	struct abi_mr *mr = lib.reg_mr((void *)(uintptr_t)pd, (void *)(uintptr_t)addr, bytes, access);
	if (!mr)
		return missing();
	out->handle = HANDLE(mr);
	out->lkey = mr->lkey;
	out->rkey = mr->rkey;
	return 0;
}

int flat_deregister(uint64_t region) { return failed(lib.dereg_mr(OBJECT(abi_mr, region))); }

int flat_qp_create(const struct flat_nic *nic, struct flat_qp *qp)
{
	struct abi_qp_init_attr a = {
		.send_cq = OBJECT(abi_cq, nic->cq),
		.recv_cq = OBJECT(abi_cq, nic->cq),
		.srq = OBJECT(abi_srq, nic->srq),
		.cap = {.max_send_wr = qp->sends, .max_send_sge = qp->send_sge, .max_inline_data = qp->bytes_inline},
		.qp_type = ABI_QPT_RC,
	};
	errno = 0;
	struct abi_qp *q = lib.create_qp((void *)(uintptr_t)nic->pd, &a);
	if (!q)
		return missing();
	qp->handle = HANDLE(q);
	qp->number = q->qp_num;
	qp->sends = a.cap.max_send_wr;
	qp->send_sge = a.cap.max_send_sge;
	qp->bytes_inline = a.cap.max_inline_data;
	return 0;
}

// flat_qp_connect takes a new queue pair through its states until it may send.
int flat_qp_connect(uint64_t handle, const struct flat_path *p)
{
	struct abi_qp *qp = OBJECT(abi_qp, handle);
	struct abi_qp_attr a = {
		.qp_state = ABI_QPS_INIT,
		.pkey_index = p->pkey_index,
		.port_num = p->port,
		.qp_access_flags = ABI_ACCESS_REMOTE,
	};
	int rc = failed(lib.modify_qp(qp, &a, ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS));
	if (rc)
		return rc;
	a = (struct abi_qp_attr){
		.qp_state = ABI_QPS_RTR,
		.path_mtu = p->mtu,
		.dest_qp_num = p->remote_number,
		.rq_psn = p->remote_psn,
		.max_dest_rd_atomic = p->dest_rd_atomic,
		.min_rnr_timer = p->rnr_timer,
		.ah_attr = {.dlid = p->remote_lid, .sl = p->service, .port_num = p->port, .is_global = p->global},
	};
	if (p->global) {
		memcpy(a.ah_attr.grh.dgid, p->gid, sizeof p->gid);
		a.ah_attr.grh.sgid_index = p->gid_index;
		a.ah_attr.grh.hop_limit = 64;
	}
	rc = failed(lib.modify_qp(qp, &a,
		ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN | ABI_QP_MAX_DEST_RD_ATOMIC |
			ABI_QP_MIN_RNR_TIMER));
	if (rc)
		return rc;
	a = (struct abi_qp_attr){
		.qp_state = ABI_QPS_RTS,
		.timeout = p->timeout,
		.retry_cnt = p->retries,
		.rnr_retry = p->rnr_retries,
		.sq_psn = p->local_psn,
		.max_rd_atomic = p->rd_atomic,
	};
	return failed(lib.modify_qp(qp, &a,
		ABI_QP_STATE | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC));
}

// flat_qp_error ends a queue pair: what it has not done is flushed.
int flat_qp_error(uint64_t qp)
{
	struct abi_qp_attr a = {.qp_state = ABI_QPS_ERR};
	return failed(lib.modify_qp(OBJECT(abi_qp, qp), &a, ABI_QP_STATE));
}

int flat_qp_destroy(uint64_t qp) { return failed(lib.destroy_qp(OBJECT(abi_qp, qp))); }

// flat_take_event takes one event off the completion channel: 1, or 0 where there is none. The channel's descriptor
// must not block.
int flat_take_event(uint64_t channel)
{
	struct abi_cq *cq;
	void *context;
	errno = 0;
	if (lib.get_cq_event(OBJECT(abi_comp_channel, channel), &cq, &context))
		return errno == EAGAIN || errno == EINTR ? 0 : missing();
	lib.ack_cq_events(cq, 1);
	return 1;
}

// flat_take_async takes one asynchronous event: 1, or 0 where there is none. Until flat_ack_async nobody's flat_qp_destroy of its object returns.
int flat_take_async(uint64_t context, struct flat_event *out)
{
	struct abi_async_event e = {0};
	errno = 0;
	if (lib.get_async_event(OBJECT(abi_context, context), &e))
		return errno == EAGAIN || errno == EINTR ? 0 : missing();
	out->type = e.event_type;
	out->object = HANDLE(e.element.object);
	return 1;
}

void flat_ack_async(int type, uint64_t object)
{
	struct abi_async_event e = {.element = {.object = (void *)(uintptr_t)object}, .event_type = type};
	lib.ack_async_event(&e);
}

// The texts are the library's own.
int flat_status_text(int status, char *out, int bytes) { return snprintf(out, bytes, "%s", lib.wc_status_str(status)); }
int flat_event_text(int type, char *out, int bytes) { return snprintf(out, bytes, "%s", lib.event_type_str(type)); }
