package e2e

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sendlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	sendtraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// telemetry is what a collector has got from the engine, over OTLP.
type telemetry struct {
	env []string // what has a command's engine send it

	mu    sync.Mutex
	spans map[string]string // text, by id: one is sent when it begins, and when it has ended
	logs  map[string]string // text, by span and stream
}

// collector takes spans and logs as OpenTelemetry sends them.
func collector(t *testing.T) *telemetry {
	t.Helper()
	got := &telemetry{spans: map[string]string{}, logs: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var sent sendtraces.ExportTraceServiceRequest
		if receive(w, r, &sent) {
			got.addSpans(&sent)
		}
	})
	mux.HandleFunc("POST /v1/logs", func(w http.ResponseWriter, r *http.Request) {
		var sent sendlogs.ExportLogsServiceRequest
		if receive(w, r, &sent) {
			got.addLogs(&sent)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, kind := range []string{"traces", "logs"} {
		name := "OTEL_EXPORTER_OTLP_" + strings.ToUpper(kind)
		got.env = append(got.env, name+"_ENDPOINT="+server.URL+"/v1/"+kind, name+"_PROTOCOL=http/protobuf")
	}
	return got
}

// receive decodes what was sent; if it cannot, the sender is told.
func receive(w http.ResponseWriter, r *http.Request, into proto.Message) bool {
	body := io.Reader(r.Body)
	var err error
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(r.Body)
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(body)
	}
	if err == nil {
		err = proto.Unmarshal(text, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	return true
}

func (g *telemetry) addSpans(sent *sendtraces.ExportTraceServiceRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, resource := range sent.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				var b strings.Builder
				fmt.Fprintln(&b, s.GetName(), s.GetStatus().GetMessage())
				attributes(&b, s.GetAttributes())
				for _, e := range s.GetEvents() {
					fmt.Fprintln(&b, e.GetName())
					attributes(&b, e.GetAttributes())
				}
				g.spans[string(s.GetSpanId())] = b.String()
			}
		}
	}
}

func (g *telemetry) addLogs(sent *sendlogs.ExportLogsServiceRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, resource := range sent.GetResourceLogs() {
		for _, scope := range resource.GetScopeLogs() {
			for _, r := range scope.GetLogRecords() {
				from := string(r.GetSpanId())
				for _, a := range r.GetAttributes() {
					if a.GetKey() != "stdio.eof" {
						from += " " + a.String()
					}
				}
				g.logs[from] += r.GetBody().GetStringValue() // a text comes in pieces
			}
		}
	}
}

// attributes writes attributes as text: a call of the engine's API, which is a message of
// protocol buffers in base64, as it is in there, so that strings in it are found.
func attributes(b *strings.Builder, all []*common.KeyValue) {
	for _, a := range all {
		text := a.GetValue().GetStringValue()
		if a.GetKey() == "dagger.io/dag.call" {
			call, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				call = []byte(err.Error())
			}
			text = string(call)
		} else if text == "" {
			text = a.GetValue().String()
		}
		fmt.Fprintln(b, a.GetKey(), text)
	}
}

// texts are all spans and all logs.
func (g *telemetry) texts() (spans, logged string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	join := func(texts map[string]string) string {
		return strings.Join(slices.Collect(maps.Values(texts)), "\n")
	}
	return join(g.spans), join(g.logs)
}

// The canaries of canaried.
const (
	canaryToken    = "c4nary-token-Kq&81xWv0"
	canaryPassword = "c4nary-password-Zr72yUt9"
	canaryValue    = "c4nary-value-Mn63wQs8"
	canaryOutput   = "c4nary-output-Lp54vRq7"
)

// canaried is a configuration with canaries: a secret, a variable that looks like one, a value
// of a component, and what a hook prints, which is in no other form in the script.
const canaried = configured + `
platform: {components: {guestbook: {values: {title: ` + canaryValue + `}}}}
hooks:
  - name: canary
    after: preorchestrator/namespaces
    script: |
      kubectl get namespace argocd
      echo "token $TOKEN, password $DB_PASSWORD, $GREETING"
      echo "forms: $(printf %s "$TOKEN" | base64) $(printf %s "$TOKEN" | base64 -w 0 | base64 -w 0) $(printf %s "$TOKEN" | od -An -tx1 -v | tr -d ' \n') $(printf %s "$TOKEN" | sed 's/&/\&amp;/')"
      echo "wrapped: $(printf %s "$TOKEN" | base64 -w 16)"
      echo "escaped: $(printf %s "$TOKEN" | sed 's/&/\\&/')"
      printf 'split: %.9s' "$TOKEN"; sleep 1; echo "${TOKEN#?????????}"
      printf 'c4nary-%s\n' output-Lp54vRq7
    kubeconfig: true
    env: {DB_PASSWORD: ` + canaryPassword + `, GREETING: hello}
    secrets: {TOKEN: env:SLIPWAY_E2E_TOKEN}
`

// masked are the lines that the hook of canaried prints of its secrets; what is encoded twice is
// masked but for its end.
var masked = []*regexp.Regexp{
	regexp.MustCompile(`token \*\*\*, password \*\*\*, hello\n`),
	regexp.MustCompile(`forms: \*\*\* \*\*\*\S{0,3} \*\*\*( \*\*\*)?\n`), // the text behind hexadecimal numbers may be masked with them
	regexp.MustCompile(`wrapped: \*\*\*\n`),
	regexp.MustCompile(`escaped: \*\*\*\n`),
	regexp.MustCompile(`split: \*\*\*\n`),
}

// requireNoCanary asserts that no canary of canaried, and no key of the cluster's, is in what
// the engine sends of runs in which the hook ran.
func (g *telemetry) requireNoCanary(t *testing.T) {
	spans, logged := g.texts()
	require.Contains(t, spans, "preorchestrator/gitea", "the collector got the spans")
	require.Contains(t, spans, "SLIPWAY_DEPLOYMENT", "and arguments of calls in them")
	for _, line := range masked {
		require.Regexp(t, line, logged, "and what the hook printed")
	}
	require.Contains(t, logged, canaryOutput)
	secrets := map[string][]string{"canary of the hook's secrets": forms(canaryToken), "canary of its variables": forms(canaryPassword), "canary of a component's values": forms(canaryValue)}
	key := map[string][]string{"cluster's key": {"client-key-data", "PRIVATE KEY-----"}}
	requireNone(t, secrets, map[string]string{"a span": spans, "a log": logged})
	requireNone(t, key, map[string]string{"a span": spans, "a log": logged})
	requireNone(t, map[string][]string{"canary that the hook printed": forms(canaryOutput)}, map[string]string{"a span": spans})
}

// requireNone asserts that no secret, nor a key of a cluster's, is in what the engine sends of runs.
func (g *telemetry) requireNone(t *testing.T, secrets map[string][]string) {
	t.Helper()
	spans, logged := g.texts()
	require.Contains(t, spans, `{"who":{`, "the collector got the arguments of calls")
	require.Contains(t, logged, "step succeeded", "and what steps printed")
	secrets = maps.Clone(secrets)
	secrets["cluster's key"] = []string{"client-key-data", "PRIVATE KEY-----"}
	requireNone(t, secrets, map[string]string{"a span": spans, "a log": logged})
}

// TestTheCollectorReadsArgumentsAndPieces: a secret in the argument of a call, and one that is
// sent in two records.
func TestTheCollectorReadsArgumentsAndPieces(t *testing.T) {
	got := collector(t)
	post := func(kind string, message proto.Message) {
		t.Helper()
		body, err := proto.Marshal(message)
		require.NoError(t, err)
		i := slices.IndexFunc(got.env, func(v string) bool { return strings.HasSuffix(v, "/v1/"+kind) })
		_, url, _ := strings.Cut(got.env[i], "=")
		answer, err := http.Post(url, "application/x-protobuf", strings.NewReader(string(body)))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	text := func(s string) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
	}
	call := text(base64.StdEncoding.EncodeToString([]byte("\n\x05x" + canaryToken)))
	span := &traces.Span{SpanId: []byte("one"), Attributes: []*common.KeyValue{{Key: "dagger.io/dag.call", Value: call}}}
	post("traces", &sendtraces.ExportTraceServiceRequest{ResourceSpans: []*traces.ResourceSpans{{ScopeSpans: []*traces.ScopeSpans{{Spans: []*traces.Span{span}}}}}})
	for _, piece := range [][2]string{{"one", "before " + canaryToken[:9]}, {"two", "between"}, {"one", canaryToken[9:] + " after"}} {
		record := &logs.LogRecord{SpanId: []byte(piece[0]), Body: text(piece[1])}
		post("logs", &sendlogs.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{record}}}}}})
	}
	spans, logged := got.texts()
	require.Contains(t, spans, canaryToken)
	require.Contains(t, logged, "before "+canaryToken+" after")
}
