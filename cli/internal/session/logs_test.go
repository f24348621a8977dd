package session

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	telemetry "github.com/dagger/otel-go"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"
)

func TestLogsOfContainersAreReceivedByTheLine(t *testing.T) {
	var out bytes.Buffer
	r, err := receive(t.Context(), &out)
	require.NoError(t, err)
	post := func(url string, body []byte) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	send := func(span string, stream int64, text string, ended bool, more ...*common.KeyValue) {
		t.Helper()
		record := &logs.LogRecord{
			SpanId: []byte(span), Body: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: text}},
			Attributes: append(more,
				&common.KeyValue{Key: "stdio.stream", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: stream}}},
				&common.KeyValue{Key: "stdio.eof", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: ended}}}),
		}
		body, err := proto.Marshal(&collector.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{record}}}}}})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, post(r.URL, body))
	}
	send("a", 2, "one\ntw", false)
	send("b", 2, "another's\n", false)
	send("a", 1, "on standard output\n", false)
	send("a", 2, "o\nthree", false)
	require.Equal(t, "one\nanother's\non standard output\ntwo\n", out.String())
	send("a", 2, "", true)
	require.True(t, strings.HasSuffix(out.String(), "\nthree\n"))
	out.Reset()
	send("c", 1, strings.Repeat("x", longestLine+1), false)
	require.Equal(t, longestLine+2, out.Len(), "a line without an end")
	require.Empty(t, r.rest)

	out.Reset()
	verbose := &common.KeyValue{Key: telemetry.LogsVerboseAttr, Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}}
	send("d", 1, "client-key-data: c4nary\nc4nary", false, verbose)
	send("d", 1, "", true, verbose)
	require.Empty(t, out.String(), "what a call returned is not for the log")
	require.Empty(t, r.rest)

	require.Equal(t, http.StatusBadRequest, post(r.URL, []byte("no protobuf")))
	require.Equal(t, http.StatusNotFound, post(strings.Replace(r.URL, "/v1/logs", "x/v1/logs", 1), nil), "who does not know the path says nothing")
	require.Empty(t, out.String())
	require.Contains(t, r.Environment(), "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT="+r.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://collector:4318/v1/logs")
	require.Nil(t, r.Environment(), "the user's own collector")
	r.Close()
	require.Empty(t, out.String())
}
