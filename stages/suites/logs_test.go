package suites

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestLogsAreReadWhileTheyAreWritten: what a container has written is there although its
// pod is gone, each run of it once.
func TestLogsAreReadWhileTheyAreWritten(t *testing.T) {
	var mu sync.Mutex // logs are read beside each other
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		mu.Lock()
		asked = append(asked, strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/shop/pods/")+" "+q.Get("container")+" "+q.Get("previous"))
		mu.Unlock()
		if q.Get("previous") == "true" {
			fmt.Fprintln(w, "the first try")
			return
		}
		for n := range lastLines {
			fmt.Fprintf(w, "line %d\n", n)
		}
		fmt.Fprintf(w, "%s\npassword=hunter2hunter2\r\n\nlast", strings.Repeat("x", longestLine+10))
	}))
	t.Cleanup(s.Close)
	client, err := kube.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	var out bytes.Buffer
	l := newLogs(t.Context(), client, &out, nil)
	defer l.close()
	pod := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "ask", RestartCount: 1, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		{Name: "waits"},
	}}}
	pod.Name, pod.Namespace, pod.UID = "ask-1", "shop", "u"
	l.follow("shop/ask", []corev1.Pod{pod})
	l.follow("shop/ask", []corev1.Pod{pod})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	last := l.end(ctx, "shop/ask")
	require.NoError(t, ctx.Err())
	require.ElementsMatch(t, []string{"ask-1/log ask ", "ask-1/log ask true"}, asked)
	require.Len(t, last, lastLines)
	require.Contains(t, last, "last")
	text := out.String()
	require.Equal(t, 1, strings.Count(text, "ask-1/ask: the first try\n"))
	require.Equal(t, 1, strings.Count(text, "ask-1/ask: line 0\n"))
	require.NotContains(t, text, "hunter2hunter2")
	for line := range strings.Lines(text) {
		require.Less(t, len(line), longestLine+100)
	}
	require.Empty(t, l.end(ctx, "shop/other"))
}

// TestWhatAJobCounts is a line of its own, of a name and a number.
func TestWhatAJobCounts(t *testing.T) {
	counted := map[string]int64{}
	var out bytes.Buffer
	l := newLogs(t.Context(), nil, &out, func(name string, n int64) { counted[name] = n })
	defer l.close()
	for _, line := range []string{
		"count rows 7", "count rows 40\r", "count missing-rows 0", "count Rows 1", "count rows -1", "count rows 1.5", "count rows",
		" count spaced 1", "count rows 41 more", "we count rows 42", "count big 9999999999999999999",
	} {
		l.line("shop/ask", "ask-1", "ask", line)
	}
	require.Equal(t, map[string]int64{"rows": 40, "missing-rows": 0}, counted)
	require.Contains(t, out.String(), "ask-1/ask: count rows 7\n")
}
