package tests

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
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
		if strings.HasSuffix(r.URL.Path, "/secrets/own") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Secret", "data": {"key": "%s"}}`, base64.StdEncoding.EncodeToString([]byte("blue-otter-4711")))
			return
		}
		q := r.URL.Query()
		mu.Lock()
		asked = append(asked, strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/shop/pods/")+" "+q.Get("container")+" "+q.Get("previous"))
		mu.Unlock()
		if q.Get("previous") == "true" {
			fmt.Fprintln(w, "the first try")
			fmt.Fprintln(w, "it is blue-otter-4711")
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
	logs := newLogs(t.Context(), client, &out, nil)
	defer logs.close()
	l := logs.job()
	env := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}}}
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ask", EnvFrom: []corev1.EnvFromSource{env}}}}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "ask", RestartCount: 1, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		{Name: "waits"},
	}}}
	pod.Name, pod.Namespace, pod.UID = "ask-1", "shop", "u"
	l.follow([]corev1.Pod{pod})
	l.follow([]corev1.Pod{pod})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	last, err := l.end(ctx)
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	require.ElementsMatch(t, []string{"ask-1/log ask ", "ask-1/log ask true"}, asked)
	require.Len(t, last, lastLines)
	require.Contains(t, last, "last")
	text := out.String()
	require.Equal(t, 1, strings.Count(text, "ask-1/ask: the first try\n"))
	require.Equal(t, 1, strings.Count(text, "ask-1/ask: line 0\n"))
	require.NotContains(t, text, "hunter2hunter2")
	require.Equal(t, 1, strings.Count(text, "ask-1/ask: it is ***\n"))
	for line := range strings.Lines(text) {
		require.Less(t, len(line), longestLine+100)
	}
}

// TestALogThatCannotBeReadIsReadAgain from where it was, to its end, however long it is: what it
// counts is said there.
func TestALogThatCannotBeReadIsReadAgain(t *testing.T) {
	tries := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries++
		if tries == 1 {
			http.Error(w, "container is waiting to start", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, "begins\ncount rows ")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "8")
		if tries == 2 { // the connection breaks in the middle of a line
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "12\n", strings.Repeat(strings.Repeat("x", 1000)+"\n", 2000), "count rows-there 811\nends\n")
	}))
	t.Cleanup(s.Close)
	client, err := kube.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	counted := map[string]int64{}
	var out bytes.Buffer
	logs := newLogs(t.Context(), client, &out, func(name string, n int64) { counted[name] = n })
	defer logs.close()
	l := logs.job()
	pod := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "ask", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
	}}}
	pod.Name, pod.Namespace, pod.UID = "ask-1", "shop", "u"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n := range 4 {
		l.follow([]corev1.Pod{pod})
		_, err := l.end(ctx)
		if n < 2 {
			require.ErrorContains(t, err, "its log cannot be read: ")
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 3, tries, "what was read to its end is not read again")
	require.Equal(t, map[string]int64{"rows": 812, "rows-there": 811}, counted)
	require.Equal(t, 1, strings.Count(out.String(), ": begins\n"))
	require.Equal(t, 1, strings.Count(out.String(), ": the rest of its log is left out\n"))
	require.Less(t, out.Len(), mostOfALog+100<<10)
}

// TestALogThatTakesTooLong is an error only where it is needed and not read to its end.
func TestALogThatTakesTooLong(t *testing.T) {
	l := newLogs(t.Context(), nil, io.Discard, nil).job()
	block := make(chan struct{})
	defer close(block)
	l.busy.Go(func() { <-block })
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l.runs["of a pod that has failed"] = &reading{busy: true}
	l.runs["read"] = &reading{needed: true, whole: true}
	_, err := l.end(ctx)
	require.NoError(t, err)
	l.runs["of a pod that has succeeded"] = &reading{needed: true, busy: true}
	_, err = l.end(ctx)
	require.EqualError(t, err, "its log was not read in time")
}

// TestWhatAJobCounts is a line of its own, of a name and a number.
func TestWhatAJobCounts(t *testing.T) {
	counted := map[string]int64{}
	var out bytes.Buffer
	l := newLogs(t.Context(), nil, &out, func(name string, n int64) { counted[name] = n }).job()
	defer l.close()
	for _, line := range []string{
		"count rows 7", "count rows 40\r", "count missing-rows 0", "count Rows 1", "count rows -1", "count rows 1.5", "count rows",
		" count spaced 1", "count rows 41 more", "we count rows 42", "count big 9999999999999999999",
	} {
		l.line("ask-1", "ask", line)
	}
	require.Equal(t, map[string]int64{"rows": 40, "missing-rows": 0}, counted)
	require.Contains(t, out.String(), "ask-1/ask: count rows 7\n")
}
