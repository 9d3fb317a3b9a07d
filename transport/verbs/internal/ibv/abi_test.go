//go:build linux && cgo && (amd64 || arm64)

package ibv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// members are those of our declarations, by the structure's name in libibverbs without its prefix.
var members = map[string]string{
	"context":       "device ops cmd_fd async_fd num_comp_vectors",
	"comp_channel":  "context fd",
	"cq":            "context channel cq_context handle cqe",
	"srq":           "context",
	"qp":            "context qp_context pd send_cq recv_cq srq handle qp_num",
	"mr":            "context pd addr length handle lkey rkey",
	"sge":           "addr length lkey",
	"send_wr":       "wr_id next sg_list num_sge opcode send_flags imm_data wr.rdma.remote_addr wr.rdma.rkey wr.atomic.remote_addr wr.atomic.compare_add wr.atomic.swap wr.atomic.rkey",
	"recv_wr":       "wr_id next sg_list num_sge",
	"wc":            "wr_id status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags pkey_index slid sl dlid_path_bits",
	"qp_cap":        "max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data",
	"qp_init_attr":  "qp_context send_cq recv_cq srq cap qp_type sq_sig_all",
	"global_route":  "dgid flow_label sgid_index hop_limit traffic_class",
	"ah_attr":       "grh dlid sl src_path_bits static_rate is_global port_num",
	"qp_attr":       "qp_state path_mtu rq_psn sq_psn dest_qp_num qp_access_flags cap ah_attr alt_ah_attr pkey_index max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num timeout retry_cnt rnr_retry rate_limit",
	"srq_attr":      "max_wr max_sge srq_limit",
	"srq_init_attr": "srq_context attr",
	"device_attr":   "fw_ver node_guid max_mr_size vendor_id max_qp max_qp_wr device_cap_flags max_sge max_sge_rd max_cq max_cqe max_mr max_qp_rd_atom max_qp_init_rd_atom atomic_cap max_srq max_srq_wr max_srq_sge max_pkeys phys_port_cnt",
	"port_attr":     "state max_mtu active_mtu gid_tbl_len port_cap_flags max_msg_sz pkey_tbl_len lid link_layer flags port_cap_flags2",
	"gid_entry":     "gid gid_index port_num gid_type ndev_ifindex",
	"async_event":   "element event_type",
}

// partial are structures that the library allocates and of which we declare a beginning, or that may grow.
var partial = map[string]bool{"context": true, "cq": true, "srq": true, "qp": true, "comp_channel": true, "port_attr": true}

// values are numbers of ours and the library's expressions for them.
var values = map[string]string{
	"ABI_OP_POLL_CQ * 8":       "offsetof(struct ibv_context_ops, poll_cq)",
	"ABI_OP_REQ_NOTIFY_CQ * 8": "offsetof(struct ibv_context_ops, req_notify_cq)",
	"ABI_OP_POST_SRQ_RECV * 8": "offsetof(struct ibv_context_ops, post_srq_recv)",
	"ABI_OP_POST_SEND * 8":     "offsetof(struct ibv_context_ops, post_send)",
	"ABI_OPS * 8":              "sizeof(struct ibv_context_ops)",
	"ABI_QPT_RC":               "IBV_QPT_RC",
	"ABI_QPS_INIT":             "IBV_QPS_INIT",
	"ABI_QPS_RTR":              "IBV_QPS_RTR",
	"ABI_QPS_RTS":              "IBV_QPS_RTS",
	"ABI_QPS_ERR":              "IBV_QPS_ERR",
	"ABI_ACCESS_REMOTE":        "(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)",
}

// numbers are Go constants and the library's names for them.
var numbers = map[string]int{
	"IBV_PORT_ACTIVE": PortActive, "IBV_LINK_LAYER_INFINIBAND": LinkInfiniBand, "IBV_LINK_LAYER_ETHERNET": LinkEthernet,
	"IBV_GID_TYPE_IB": GIDInfiniBand, "IBV_GID_TYPE_ROCE_V1": GIDRoCE1, "IBV_GID_TYPE_ROCE_V2": GIDRoCE2,
	"IBV_WR_RDMA_WRITE": OpWrite, "IBV_WR_RDMA_WRITE_WITH_IMM": OpWriteImm, "IBV_WR_SEND_WITH_IMM": OpSendImm,
	"IBV_WR_RDMA_READ": OpRead, "IBV_WR_ATOMIC_CMP_AND_SWP": OpCompareSwap, "IBV_WR_ATOMIC_FETCH_AND_ADD": OpFetchAdd,
	"IBV_SEND_FENCE": FlagFence, "IBV_SEND_SIGNALED": FlagSignaled, "IBV_SEND_SOLICITED": FlagSolicited, "IBV_SEND_INLINE": FlagInline,
	"IBV_ACCESS_LOCAL_WRITE": LocalWrite, "IBV_ACCESS_REMOTE_WRITE": RemoteWrite, "IBV_ACCESS_REMOTE_READ": RemoteRead,
	"IBV_ACCESS_REMOTE_ATOMIC": RemoteAtomic, "IBV_WC_RECV": OpRecvBit, "IBV_WC_SUCCESS": StatusOK,
	"IBV_WC_LOC_LEN_ERR": StatusLocLen, "IBV_WC_LOC_QP_OP_ERR": StatusLocQPOp, "IBV_WC_LOC_PROT_ERR": StatusLocProt,
	"IBV_WC_WR_FLUSH_ERR": StatusFlush, "IBV_WC_LOC_ACCESS_ERR": StatusLocAccess, "IBV_WC_REM_INV_REQ_ERR": StatusRemInvReq,
	"IBV_WC_REM_ACCESS_ERR": StatusRemAccess, "IBV_WC_REM_OP_ERR": StatusRemOp, "IBV_WC_RETRY_EXC_ERR": StatusRetryExc,
	"IBV_WC_RNR_RETRY_EXC_ERR": StatusRNRRetryExc, "IBV_WC_RESP_TIMEOUT_ERR": StatusRespTimeout,
	"IBV_EVENT_CQ_ERR": EventCQErr, "IBV_EVENT_QP_FATAL": EventQPFatal, "IBV_EVENT_QP_REQ_ERR": EventQPReqErr,
	"IBV_EVENT_QP_ACCESS_ERR": EventQPAccessErr, "IBV_EVENT_DEVICE_FATAL": EventDevFatal,
	"IBV_EVENT_PORT_ACTIVE": EventPortActive, "IBV_EVENT_PORT_ERR": EventPortErr, "IBV_EVENT_SRQ_ERR": EventSRQErr,
}

// TestABI has the C compiler compare abi.h, and the constants in Go, with the real header.
func TestABI(t *testing.T) {
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("nothing to compare with: install libibverbs-dev")
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	var c strings.Builder
	fmt.Fprintf(&c, "#include <infiniband/verbs.h>\n#include %q\n", filepath.Join(here, "abi.h"))
	same := func(ours, theirs string) {
		fmt.Fprintf(&c, "_Static_assert((long)(%s) == (long)(%s), \"\");\n", ours, theirs)
	}
	for name, list := range members {
		if !partial[name] {
			same("sizeof(struct abi_"+name+")", "sizeof(struct ibv_"+name+")")
		}
		for m := range strings.FieldsSeq(list) {
			same("offsetof(struct abi_"+name+", "+m+")", "offsetof(struct ibv_"+name+", "+m+")")
			same("sizeof(((struct abi_"+name+" *)0)->"+m+")", "sizeof(((struct ibv_"+name+" *)0)->"+m+")")
		}
	}
	same("sizeof(struct abi_port_attr) >= sizeof(struct ibv_port_attr)", "1")
	for ours, theirs := range values {
		same(ours, theirs)
	}
	for theirs, ours := range numbers {
		same(fmt.Sprint(ours), theirs)
	}
	for _, m := range regexp.MustCompile(`ABI_(QP_[A-Z_]+) = 1`).FindAllStringSubmatch(header(t), -1) {
		same("ABI_"+m[1], "IBV_"+m[1])
	}
	file := filepath.Join(t.TempDir(), "compare.c")
	require.NoError(t, os.WriteFile(file, []byte(c.String()), 0o600))
	out, err := exec.CommandContext(t.Context(), "gcc", "-fsyntax-only", file).CombinedOutput()
	require.NoError(t, err, string(out))

	// The comparison can fail.
	same("sizeof(struct abi_wc) + 1", "sizeof(struct ibv_wc)")
	require.NoError(t, os.WriteFile(file, []byte(c.String()), 0o600))
	require.Error(t, exec.CommandContext(t.Context(), "gcc", "-fsyntax-only", file).Run())
}

func header(t *testing.T) string {
	t.Helper()
	h, err := os.ReadFile("abi.h")
	require.NoError(t, err)
	return string(h)
}

// TestMembers sees that every member we declare and use in C is compared.
func TestMembers(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"ibv.c", "flow.c"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(text)
	}
	for _, m := range regexp.MustCompile(`struct abi_(\w+) \{`).FindAllStringSubmatch(header(t), -1) {
		require.Contains(t, members, m[1], "abi.h declares a structure that TestABI does not compare")
		require.Contains(t, all.String()+header(t), "abi_"+m[1])
	}
}

// TestLoad opens the real library.
func TestLoad(t *testing.T) {
	if err := Load(); err != nil {
		require.Contains(t, err.Error(), "libibverbs.so.1", "the error does not name what is missing")
		t.Skipf("install libibverbs1: %v", err)
	}
	require.NoError(t, Load())
	names, err := Devices()
	if err == nil {
		require.NotContains(t, names, "")
	}
	_, _, err = Open("no such device")
	require.Error(t, err)
	require.NotEmpty(t, StatusText(StatusRetryExc))
	require.NotEmpty(t, EventText(EventPortErr))
	require.NotEqual(t, StatusText(StatusRetryExc), StatusText(StatusFlush))
}
