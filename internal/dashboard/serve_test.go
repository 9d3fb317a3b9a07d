package dashboard

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
)

func TestAddresses(t *testing.T) {
	for _, address := range []string{":0", "0", "127.0.0.1:0", "localhost:0"} {
		s, err := Listen(address)
		require.NoError(t, err, address)
		require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, s.URL(), "D1")
		require.NoError(t, s.Close(), "it need not have served")
	}
	s, err := Listen("0.0.0.0:0")
	require.NoError(t, err)
	defer s.Close()
	require.Regexp(t, `^http://127\.0\.0\.1:`, s.URL(), "somewhere a browser here can go")

	_, port, _ := net.SplitHostPort(s.at.Addr().String())
	_, err = Listen("0.0.0.0:" + port)
	require.ErrorContains(t, err, "port "+port+" is in use")
	for _, bad := range []string{"", "x", "1:2:3", ":99999", ":"} {
		_, err := Listen(bad)
		require.Error(t, err, "%q", bad)
	}
}

func ask(t *testing.T, h http.Handler, method, host, path string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestAnswers(t *testing.T) {
	b, _ := begun(2)
	b.Sampled(0, control.Sample{Waits: []control.Wait{{Op: "barrier", Peer: -1}}})
	const here = "127.0.0.1:8080"
	h := handler(b, here)
	for path, kind := range map[string]string{
		"/": "text/html", "/app.js": "javascript", "/draw.js": "javascript", "/style.css": "text/css", "/state.json": "application/json", "/metrics": "text/plain; version=0.0.4",
	} {
		res := ask(t, h, http.MethodGet, here, path)
		require.Equal(t, http.StatusOK, res.StatusCode, path)
		require.Contains(t, res.Header.Get("Content-Type"), kind, path)
		require.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'")
	}
	var s snapshot
	require.NoError(t, json.NewDecoder(ask(t, h, http.MethodGet, here, "/state.json").Body).Decode(&s))
	require.Equal(t, "waits", s.Ranks[0].State)
	require.Equal(t, http.StatusNotFound, ask(t, h, http.MethodGet, here, "/page/app.js").StatusCode)
	require.Equal(t, http.StatusMethodNotAllowed, ask(t, h, http.MethodPost, here, "/state.json").StatusCode, "D2")
}

// D4: whom a page of somebody else's calls by his name learns nothing.
func TestForeignNames(t *testing.T) {
	b, _ := begun(1)
	for _, c := range []struct {
		host, address string
		want          int
	}{
		{"localhost:80", "127.0.0.1:80", http.StatusOK},
		{"[::1]:80", "[::1]:80", http.StatusOK},
		{"evil.example:80", "127.0.0.1:80", http.StatusForbidden},
		{"evil.example", "127.0.0.1:80", http.StatusForbidden},
		{"", "127.0.0.1:80", http.StatusForbidden},
		{"node7:80", "0.0.0.0:80", http.StatusOK},
		{"node7:80", "10.0.0.7:80", http.StatusOK},
	} {
		require.Equal(t, c.want, ask(t, handler(b, c.address), http.MethodGet, c.host, "/state.json").StatusCode, c)
	}
}

func TestServeAndClose(t *testing.T) {
	b, _ := begun(1)
	s, err := Listen(":0")
	require.NoError(t, err)
	s.Serve(b)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Get(s.URL())
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Contains(t, string(body), "<title>pgasrun</title>")
	require.NoError(t, s.Close())
	_, err = c.Get(s.URL())
	require.Error(t, err, "it ends with the job")
}

// Nothing is fetched from anywhere else, and nothing is made of text as markup: names come from programs.
func TestThePageIsAlone(t *testing.T) {
	for _, name := range []string{"index.html", "app.js", "draw.js", "style.css"} {
		b, err := page.ReadFile("page/" + name)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "") // a name, not an address
		require.NotRegexp(t, regexp.MustCompile(`https?:|@import|url\(|innerHTML|insertAdjacentHTML|document\.write|eval\(`), text, name)
	}
}
