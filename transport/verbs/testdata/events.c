// events.c   a libibverbs without a device, for TestEventIsHeld: it has one event, of its only queue pair, whose state changes only after the event was acknowledged.
#include "../internal/ibv/abi.h"
#include <errno.h>

#define NOTHING(name) void *ibv_##name(void) { return 0; }
NOTHING(get_device_list)
NOTHING(free_device_list)
NOTHING(get_device_name)
NOTHING(open_device)
NOTHING(close_device)
NOTHING(query_device)
NOTHING(query_port)
NOTHING(query_pkey)
NOTHING(alloc_pd)
NOTHING(dealloc_pd)
NOTHING(reg_mr)
NOTHING(dereg_mr)
NOTHING(create_comp_channel)
NOTHING(destroy_comp_channel)
NOTHING(create_cq)
NOTHING(destroy_cq)
NOTHING(get_cq_event)
NOTHING(ack_cq_events)
NOTHING(create_srq)
NOTHING(destroy_srq)
NOTHING(wc_status_str)
const char *ibv_event_type_str(int type) { return "an event"; }
long _ibv_query_gid_table(void) { return 0; }

static int post_send(void) { return 0; }
static struct abi_context context = {.ops = {[ABI_OP_POST_SEND] = post_send}};
static struct abi_qp qp = {.context = &context, .qp_num = 17};
static int taken, held;

struct abi_qp *ibv_create_qp(void *pd, void *attr) { return &qp; }

int ibv_get_async_event(struct abi_context *c, struct abi_async_event *e)
{
	if (taken) {
		errno = EAGAIN;
		return -1;
	}
	taken = held = 1;
	e->element.object = &qp;
	e->event_type = 1;
	return 0;
}

void ibv_ack_async_event(struct abi_async_event *e)
{
	if (e->element.object == &qp && e->event_type == 1)
		held--;
}

int ibv_modify_qp(struct abi_qp *q, void *attr, int mask) { return held ? EBUSY : 0; }
int ibv_destroy_qp(struct abi_qp *q) { return held ? EBUSY : 0; } // the real one waits
