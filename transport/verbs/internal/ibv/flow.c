// flow.c   the data path: posting and polling, many at a time. The functions used here are entries of the context's
// table; none of them waits and none calls back.
#include "abi.h"
#include "flat.h"

#include <arpa/inet.h>
#include <string.h>

#define OBJECT(type, handle) ((struct type *)(uintptr_t)(handle))

typedef int (*post_send_function)(struct abi_qp *, struct abi_send_wr *, struct abi_send_wr **);
typedef int (*post_srq_function)(struct abi_srq *, struct abi_recv_wr *, struct abi_recv_wr **);
typedef int (*poll_function)(struct abi_cq *, int, struct abi_wc *);
typedef int (*arm_function)(struct abi_cq *, int);

enum { OP_COMPARE_SWAP = 5, OP_FETCH_ADD = 6 };

static void fill(struct abi_send_wr *w, struct flat_send *op)
{
	op->error = 0;
	w->wr_id = op->id;
	w->next = NULL;
	w->sg_list = (struct abi_sge *)op->sge;
	w->num_sge = op->nsge;
	w->opcode = op->opcode;
	w->send_flags = op->flags;
	w->imm_data = htonl(op->imm);
	if (op->opcode == OP_COMPARE_SWAP || op->opcode == OP_FETCH_ADD) {
		w->wr.atomic.remote_addr = op->raddr;
		w->wr.atomic.compare_add = op->arg0;
		w->wr.atomic.swap = op->arg1;
		w->wr.atomic.rkey = op->rkey;
	} else {
		w->wr.rdma.remote_addr = op->raddr;
		w->wr.rdma.rkey = op->rkey;
	}
}

// post_chain hands a chain of operations of one queue pair over and returns how many were refused, each with its error.
static int post_chain(struct abi_qp *qp, struct abi_send_wr *first, struct abi_send_wr *all, struct flat_send *ops)
{
	struct abi_send_wr *bad = NULL;
	int refused = 0;
	int rc = ((post_send_function)qp->context->ops[ABI_OP_POST_SEND])(qp, first, &bad);
	if (rc == 0)
		return 0;
	for (; bad; bad = bad->next) {
		ops[bad - all].error = rc < 0 ? -rc : rc;
		refused++;
	}
	return refused;
}

// post_many makes one chain for each queue pair.
static int post_many(struct flat_send *ops, int n)
{
	struct abi_send_wr w[FLAT_BATCH];
	int first[FLAT_BATCH], last[FLAT_BATCH], chains = 0, latest = 0, refused = 0;

	for (int i = 0; i < n; i++) {
		fill(&w[i], &ops[i]);
		int k = latest;
		if (chains == 0 || ops[first[k]].qp != ops[i].qp)
			for (k = 0; k < chains && ops[first[k]].qp != ops[i].qp; k++)
				;
		if (k == chains)
			first[chains++] = i;
		else
			w[last[k]].next = &w[i];
		last[k] = i;
		latest = k;
	}
	for (int k = 0; k < chains; k++)
		refused += post_chain(OBJECT(abi_qp, ops[first[k]].qp), &w[first[k]], w, ops);
	return refused;
}

// flat_post posts up to FLAT_BATCH operations to any queue pairs: one chain for each queue pair, which keeps its
// operations in order. It returns how many were refused, each with its error; a refused one is followed by no other
// of its queue pair.
int flat_post(struct flat_send *ops, int n)
{
	struct abi_send_wr one;

	if (n != 1)
		return post_many(ops, n);
	fill(&one, ops);
	return post_chain(OBJECT(abi_qp, ops->qp), &one, &one, ops);
}

// flat_post_poll is flat_post and then flat_poll, whose result it stores: a NIC that takes what is short at once has
// its completion ready, and who looks for it need not come here a second time.
int flat_post_poll(struct flat_send *ops, int n, uint64_t cq, struct flat_done *out, int most, int *took)
{
	int refused = flat_post(ops, n);
	*took = flat_poll(cq, out, most);
	return refused;
}

// flat_post_recv adds up to FLAT_BATCH buffers to the shared receive queue and returns how many it took, or an error
// if it took none.
int flat_post_recv(uint64_t srq, struct flat_recv *bufs, int n)
{
	struct abi_recv_wr w[FLAT_BATCH], *bad = NULL;
	struct abi_srq *q = OBJECT(abi_srq, srq);
	for (int i = 0; i < n; i++) {
		w[i].wr_id = bufs[i].id;
		w[i].next = i + 1 < n ? &w[i + 1] : NULL;
		w[i].sg_list = (struct abi_sge *)&bufs[i].sge;
		w[i].num_sge = bufs[i].sge.bytes != 0;
	}
	int rc = ((post_srq_function)q->context->ops[ABI_OP_POST_SRQ_RECV])(q, w, &bad);
	if (rc == 0)
		return n;
	int took = bad ? (int)(bad - w) : 0;
	return took > 0 ? took : rc < 0 ? rc : -rc;
}

// flat_poll takes up to FLAT_BATCH completions.
int flat_poll(uint64_t cq, struct flat_done *out, int most)
{
	struct abi_wc w[FLAT_BATCH];
	struct abi_cq *q = OBJECT(abi_cq, cq);
	int n = ((poll_function)q->context->ops[ABI_OP_POLL_CQ])(q, most, w);
	for (int i = 0; i < n; i++) {
		out[i].id = w[i].wr_id;
		out[i].status = w[i].status;
		out[i].opcode = w[i].opcode;
		out[i].vendor = w[i].vendor_err;
		out[i].bytes = w[i].byte_len;
		out[i].imm = ntohl(w[i].imm_data);
		out[i].qp_number = w[i].qp_num;
	}
	return n;
}

// flat_arm asks for one event at the next completion, or at the next message that arrives if solicited is not 0.
int flat_arm(uint64_t cq, int solicited)
{
	struct abi_cq *q = OBJECT(abi_cq, cq);
	int rc = ((arm_function)q->context->ops[ABI_OP_REQ_NOTIFY_CQ])(q, solicited);
	return rc < 0 ? rc : -rc;
}
