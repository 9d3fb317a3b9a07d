package pmiserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/pmi"
)

// pair is a connected pair of stream sockets, as a launcher makes it.
func pair(t testing.TB) (near, far net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	near, err = pmi.Adopt(fds[0])
	require.NoError(t, err)
	far, err = pmi.Adopt(fds[1])
	require.NoError(t, err)
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

type job struct {
	server *Server
	ends   []chan error
	far    []net.Conn
}

func start(t testing.TB, c Config) *job {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	j := &job{server: s}
	for r := range c.Size {
		near, far := pair(t)
		end := make(chan error, 1)
		go func() { end <- s.Serve(r, near) }()
		j.ends, j.far = append(j.ends, end), append(j.far, far)
	}
	return j
}

func (j *job) client(t testing.TB, rank int) *pmi.Client {
	t.Helper()
	c := pmi.NewClient(j.far[rank], rank, len(j.far))
	require.NoError(t, c.Init(t.Context()))
	return c
}

func TestJobOfFour(t *testing.T) {
	j := start(t, Config{Size: 4, KVSName: "job", Preset: map[string]string{"token": "abc"}})
	var wg sync.WaitGroup
	for r := range 4 {
		c := j.client(t, r)
		wg.Go(func() {
			ctx := t.Context()
			for round := range 50 {
				key := func(r int) string { return fmt.Sprintf("k-%d-%d", round, r) }
				if err := c.Put(ctx, key(r), fmt.Sprint(round*r)); err != nil {
					t.Error(err)
				}
				if err := c.Barrier(ctx); err != nil {
					t.Error(err)
				}
				for p := range 4 {
					if v, err := c.Get(ctx, key(p)); err != nil || v != fmt.Sprint(round*p) {
						t.Error(round, p, v, err)
					}
				}
			}
			if v, err := c.Get(ctx, "token"); err != nil || v != "abc" {
				t.Error(v, err)
			}
			if v, err := c.Get(ctx, "PMI_process_mapping"); err != nil || v != "(vector,(0,1,4))" {
				t.Error(v, err)
			}
			if err := c.Put(ctx, "token", "mine"); err == nil {
				t.Error("a rank changed the launcher's key")
			}
			if n, err := c.UniverseSize(ctx); err != nil || n != 4 {
				t.Error(n, err)
			}
			if n, err := c.Appnum(ctx); err != nil || n != 0 {
				t.Error(n, err)
			}
			if err := c.Finalize(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for r, end := range j.ends {
		require.NoError(t, <-end)
		require.Equal(t, Finalized, j.server.State(r))
	}
}

func TestBarrierThatCanNeverComplete(t *testing.T) {
	for name, leave := range map[string]func(j *job, c *pmi.Client){
		"finalized": func(_ *job, c *pmi.Client) { _ = c.Finalize() },
		"closed":    func(j *job, _ *pmi.Client) { j.far[2].Close() },
		"said so":   func(j *job, _ *pmi.Client) { j.server.Gone(2, "was killed by SIGSEGV") },
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, Config{Size: 3, KVSName: "job"})
			clients := []*pmi.Client{j.client(t, 0), j.client(t, 1), j.client(t, 2)}
			errs := make(chan error, 2)
			for _, c := range clients[:2] {
				go func() { errs <- c.Barrier(t.Context()) }()
			}
			leave(j, clients[2])
			for range 2 {
				select {
				case err := <-errs:
					require.ErrorContains(t, err, "rank 2 ")
				case <-time.After(5 * time.Second):
					t.Fatal("the barrier hangs")
				}
			}
			require.ErrorContains(t, clients[0].Barrier(t.Context()), "rank 2 ", "a later one is told at once")
		})
	}
}

func TestAbortWhileInABarrier(t *testing.T) {
	type call struct {
		rank, code int
		text       string
	}
	calls := make(chan call, 1)
	j := start(t, Config{Size: 2, KVSName: "job", OnAbort: func(r, c int, s string) { calls <- call{r, c, s} }})
	c := j.client(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Barrier(ctx) }()
	require.NoError(t, c.Abort(7, "out of luck"))
	require.Equal(t, call{0, 7, "out of luck"}, <-calls)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestWrongRequestsEndTheConnectionAndNameTheRank(t *testing.T) {
	const init = "cmd=init pmi_version=1 pmi_subversion=1\n"
	for name, c := range map[string]struct{ send, text string }{
		"noise":             {"\x00\x01\n", "byte 0x00"},
		"before init":       {"cmd=barrier_in\n", `"barrier_in" before "init"`},
		"twice":             {init + init, `"init" twice`},
		"PMI-2":             {"cmd=init pmi_version=2 pmi_subversion=0\n", "PMI version 2"},
		"no version":        {"cmd=init\n", `without "pmi_version"`},
		"unknown":           {init + "cmd=dance\n", `unknown command "dance"`},
		"spawn":             {init + "mcmd=spawn\n", "multi-line"},
		"no key":            {init + "cmd=get kvsname=job\n", "PMI key"},
		"other kvs":         {init + "cmd=get kvsname=other key=k\n", `"other"`},
		"empty value":       {init + "cmd=put kvsname=job key=k value=\n", "PMI value"},
		"during a barrier":  {init + "cmd=barrier_in\ncmd=barrier_in\n", "waits in a barrier"},
		"after finalize":    {init + "cmd=finalize\ncmd=get_maxes\n", `after "finalize"`},
		"joins again":       {init + "cmd=finalize\ncmd=init pmi_version=1 pmi_subversion=1\n", "joins the job again"},
		"no newline":        {strings.Repeat("x", 2*pmi.MaxLine), "no newline"},
		"ends within":       {"cmd=in", "within a line"},
		"key longer than C": {init + "cmd=get kvsname=job key=" + strings.Repeat("k", 64) + "\n", "PMI key"},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, Config{Size: 2, KVSName: "job"})
			good := j.client(t, 0)
			_, err := j.far[1].Write([]byte(c.send))
			require.NoError(t, err)
			require.NoError(t, j.far[1].(*net.UnixConn).CloseWrite())
			err = <-j.ends[1]
			require.ErrorContains(t, err, "rank 1 on its PMI connection")
			require.ErrorContains(t, err, c.text)
			if j.server.State(1) != Finalized { // what it says then is no matter
				require.Equal(t, Garbled, j.server.State(1))
			}
			require.NoError(t, good.Put(t.Context(), "k", "v"), "V1: the server goes on")
		})
	}
}

// TestWhatARankSaysLastIsHeard: it sent more than it waited for answers of, and left.
func TestWhatARankSaysLastIsHeard(t *testing.T) {
	aborted := make(chan int, 1)
	s, err := New(Config{Size: 2, KVSName: "job", OnAbort: func(_, code int, _ string) { aborted <- code }})
	require.NoError(t, err)
	near, far := pair(t)
	_, err = far.Write([]byte("cmd=init pmi_version=1 pmi_subversion=1\n" + strings.Repeat("cmd=get_maxes\n", 100) + "cmd=abort exitcode=7\n"))
	require.NoError(t, err)
	far.Close()
	require.NoError(t, s.Serve(1, near))
	require.Len(t, aborted, 1)
	require.Equal(t, 7, <-aborted)
}

func TestNameServiceIsRefusedPolitely(t *testing.T) {
	j := start(t, Config{Size: 1, KVSName: "job"})
	c := j.client(t, 0)
	_, err := j.far[0].Write([]byte("cmd=publish_name service=s port=p\n"))
	require.NoError(t, err)
	buf := make([]byte, 200)
	n, err := j.far[0].Read(buf)
	require.NoError(t, err)
	require.Contains(t, string(buf[:n]), "cmd=publish_result rc=-1")
	require.NoError(t, c.Finalize(), "the connection goes on")
}

func TestARankThatDoesNotReadLosesItsConnection(t *testing.T) {
	j := start(t, Config{Size: 2, KVSName: "job"})
	good := j.client(t, 0)
	j.client(t, 1)
	go func() {
		for range 100_000 {
			if _, err := j.far[1].Write([]byte("cmd=get_maxes\n")); err != nil {
				return
			}
		}
	}()
	select {
	case err := <-j.ends[1]:
		require.ErrorContains(t, err, "rank 1 on its PMI connection: it has not read the launcher's answers for 1s")
		require.Equal(t, Broken, j.server.State(1), "what it said was PMI-1")
	case <-time.After(10 * time.Second):
		t.Fatal("V3: still served")
	}
	require.NoError(t, good.Put(t.Context(), "k", "v"))
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{
		{KVSName: "job"},
		{Size: 1},
		{Size: 1, KVSName: "a b"},
		{Size: 1, KVSName: strings.Repeat("x", 256)},
		{Size: 1, KVSName: "job", Preset: map[string]string{"a b": "c"}},
		{Size: 1, KVSName: "job", Preset: map[string]string{"a": ""}},
	} {
		_, err := New(c)
		require.Error(t, err, "%+v", c)
	}
}

// mangle breaks a true dialogue of rank 1 somewhere.
func mangle(rnd *rand.Rand) []byte {
	b := []byte("cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\ncmd=put kvsname=job key=a value=b\n" +
		"cmd=get kvsname=job key=a\ncmd=finalize\n")
	for range 1 + rnd.IntN(5) {
		i := rnd.IntN(len(b))
		switch rnd.IntN(3) {
		case 0:
			b[i] = byte(rnd.IntN(256))
		case 1:
			b = append(b[:i:i], b[min(len(b), i+1+rnd.IntN(9)):]...)
		default:
			b = append(b[:i:i], append([]byte{byte(rnd.IntN(256)), '='}, b[i:]...)...)
		}
	}
	return b
}

// TestMalformedConversations sends 10 000 broken conversations by rank 1; the server must outlive each and serve rank 0.
func TestMalformedConversations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	broken := 0
	for range 10_000 {
		if converseMangled(t, mangle(rnd)) != nil {
			broken++
		}
	}
	require.Greater(t, broken, 5000)
}

func converseMangled(t testing.TB, bytes []byte) error {
	s, err := New(Config{Size: 2, KVSName: "job"})
	require.NoError(t, err)
	near, far := net.Pipe()
	end := make(chan error, 1)
	go func() { end <- s.Serve(1, near) }()
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := far.Read(buf); err != nil {
				return
			}
		}
	}()
	_, _ = far.Write(bytes)
	far.Close()
	err = <-end
	if err != nil {
		require.ErrorContains(t, err, "rank 1 on its PMI connection")
	}
	_, err2 := s.handle(0, pmi.Msg("init", "pmi_version", "1"), nil)
	require.NoError(t, err2)
	answer, err2 := s.handle(0, pmi.Msg("get", "kvsname", "job", "key", "PMI_process_mapping"), nil)
	require.NoError(t, err2)
	value, _ := answer.Get("value")
	require.Equal(t, "(vector,(0,1,2))", value)
	return err
}

func FuzzServe(f *testing.F) {
	f.Add([]byte("cmd=init pmi_version=1 pmi_subversion=1\ncmd=barrier_in\n"))
	f.Add([]byte("cmd=abort exitcode=x msg=a b c\n"))
	f.Add([]byte("cmd=init pmi_version=1\ncmd=finalize\ncmd=finalize\n"))
	f.Fuzz(func(t *testing.T, b []byte) { _ = converseMangled(t, b) })
}

func BenchmarkGet(b *testing.B) {
	j := start(b, Config{Size: 1, KVSName: "job"})
	c := pmi.NewClient(j.far[0], 0, 1)
	require.NoError(b, c.Init(b.Context()))
	for b.Loop() {
		if _, err := c.Get(b.Context(), "PMI_process_mapping"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMissingText(t *testing.T) {
	var many []int
	for r := range 13 {
		many = append(many, r)
	}
	require.Equal(t, "all others have given up too", missingText(nil))
	require.Equal(t, "rank 7 has not come", missingText([]int{7}))
	require.Equal(t, "ranks 0, 1 have not come", missingText(many[:2]))
	require.Equal(t, "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more have not come", missingText(many))
}

func TestMapping(t *testing.T) {
	for want, blocks := range map[string][]int{
		"(vector,(0,1,4))":                 {4},
		"(vector,(0,2,2))":                 {2, 2},
		"(vector,(0,1,2),(1,1,1),(2,2,3))": {2, 1, 3, 3},
		"(vector,(0,1,1),(1,1,2),(2,1,1))": {1, 2, 1},
	} {
		require.Equal(t, want, Mapping(blocks))
	}
	// One that is longer than a value is not there.
	s, err := New(Config{Size: 300, KVSName: "k", Mapping: Mapping(slices.Repeat([]int{1, 2}, 100))})
	require.NoError(t, err)
	require.NotContains(t, s.kvs, "PMI_process_mapping")
}
