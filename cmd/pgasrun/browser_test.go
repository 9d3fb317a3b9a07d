package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// browser is a headless Chromium with one page, driven over a pair of pipes: messages of the DevTools protocol, each ended by a
// zero byte. It is one goroutine's.
type browser struct {
	t       *testing.T
	out     *os.File
	in      *bufio.Reader
	session string
	next    int
	// trouble is what the page complained of: exceptions, console errors, requests that failed.
	trouble []string
}

// message is an answer or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// browsers are programs that can be driven so, the lightest first.
var browsers = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

func findBrowser(t *testing.T) string {
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return debtest.Need(t, browsers[0], browsers[0])
}

// newBrowser starts the browser with an empty page.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	theirIn, ourOut, err := os.Pipe()
	require.NoError(t, err)
	ourIn, theirOut, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(findBrowser(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	require.NoError(t, cmd.Start())
	theirIn.Close()
	theirOut.Close()
	b := &browser{t: t, out: ourOut, in: bufio.NewReaderSize(ourIn, 1<<20)}
	t.Cleanup(func() { // before the folder above goes
		_ = b.send("Browser.close", nil, false)
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		ourOut.Close()
		ourIn.Close()
	})
	require.NoError(t, ourIn.SetReadDeadline(time.Now().Add(2*time.Minute)))
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Page", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) send(method string, params any, toPage bool) error {
	b.next++
	m := map[string]any{"id": b.next, "method": method}
	if params != nil {
		m["params"] = params
	}
	if toPage && b.session != "" {
		m["sessionId"] = b.session
	}
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = b.out.Write(append(line, 0))
	return err
}

// call sends a command and reads up to its answer, noting events on the way.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	require.NoError(b.t, b.send(method, params, true), method)
	id := b.next
	for {
		raw, err := b.in.ReadBytes(0)
		require.NoError(b.t, err, method)
		var m message
		require.NoError(b.t, json.Unmarshal(raw[:len(raw)-1], &m))
		switch {
		case m.ID == id:
			require.Nil(b.t, m.Error, "%s: %s", method, raw)
			if result != nil {
				require.NoError(b.t, json.Unmarshal(m.Result, result))
			}
			return
		case m.ID == 0:
			b.event(m)
		}
	}
}

func (b *browser) event(m message) {
	var p struct {
		Type  string
		Entry struct{ Level, Text, URL string }
	}
	_ = json.Unmarshal(m.Params, &p)
	switch {
	case m.Method == "Runtime.exceptionThrown", m.Method == "Network.loadingFailed",
		m.Method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning" || p.Type == "assert"),
		m.Method == "Log.entryAdded" && (p.Entry.Level == "error" || p.Entry.Level == "warning"):
		b.trouble = append(b.trouble, fmt.Sprintf("%s: %s", m.Method, m.Params))
	}
}

// eval returns the value of an expression in the page.
func (b *browser) eval(expression string, value any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	require.Empty(b.t, string(r.ExceptionDetails), expression)
	if value != nil {
		require.NoError(b.t, json.Unmarshal(r.Result.Value, value), "%s is %s", expression, r.Result.Value)
	}
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	require.Eventually(b.t, func() (ok bool) { b.eval("Boolean("+expression+")", &ok); return ok }, time.Minute, 50*time.Millisecond, expression)
}
