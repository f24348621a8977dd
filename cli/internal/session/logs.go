package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"
)

// receiver receives the output of a session's containers from the dagger CLI, over OTLP on loopback, and writes it
// by line. The CLI's own rendering would occupy a processor for as long as a session is lent.
type receiver struct {
	URL string // where the CLI sends logs, secret

	server *http.Server
	done   chan struct{}

	mu   sync.Mutex
	out  io.Writer
	rest map[string][]byte // of lines that have not ended, by span and stream
}

// Limits of what a CLI sends at once, and of a line.
const (
	mostLogs    = 64 << 20
	longestLine = 64 << 10
)

func receive(ctx context.Context, out io.Writer) (*receiver, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the engine's log: %w", err)
	}
	path := "/" + rand.Text() + "/v1/logs"
	r := &receiver{URL: "http://" + listener.Addr().String() + path, done: make(chan struct{}), out: out, rest: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path, r.take)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.done)
		if err := r.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(r, "slipway: the engine's log is lost: %v\n", err)
		}
	}()
	return r, nil
}

// Environment makes the dagger CLI send logs here; nil if the user sends them elsewhere.
func (r *receiver) Environment() []string {
	const prefix = "OTEL_EXPORTER_OTLP_LOGS_"
	if os.Getenv(prefix+"ENDPOINT") != "" {
		return nil
	}
	return []string{prefix + "ENDPOINT=" + r.URL, prefix + "PROTOCOL=http/protobuf", prefix + "COMPRESSION=none"}
}

// Close ends it, once the CLI has.
func (r *receiver) Close() {
	_ = r.server.Close() // its connections are idle
	<-r.done
}

// Write writes what the CLI itself says, beside it.
func (r *receiver) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, mostLogs))
	var sent logs.ExportLogsServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.write(&sent)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// write writes complete lines, per output stream of a container.
func (r *receiver) write(sent *logs.ExportLogsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range sent.GetResourceLogs() {
		for _, scope := range resource.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				from, ended, result := string(record.GetSpanId()), false, false
				for _, a := range record.GetAttributes() {
					switch a.GetKey() { // as the dagger CLI names them, github.com/dagger/otel-go, attrs.go
					case "stdio.stream":
						from += fmt.Sprint("/", a.GetValue().GetIntValue())
					case "stdio.eof":
						ended = a.GetValue().GetBoolValue()
					case "dagger.io/logs.verbose": // what a call returned, not what a container prints
						result = a.GetValue().GetBoolValue()
					}
				}
				if result {
					continue
				}
				text := append(r.rest[from], record.GetBody().GetStringValue()...)
				if end := bytes.LastIndexByte(text, '\n'); end >= 0 {
					_, _ = r.out.Write(text[:end+1]) // a session survives a log that cannot be written
					text = text[end+1:]
				}
				if len(text) > 0 && (ended || len(text) > longestLine) {
					_, _ = io.WriteString(r.out, strings.TrimRight(string(text), "\r")+"\n")
					text = nil
				}
				if delete(r.rest, from); len(text) > 0 {
					r.rest[from] = bytes.Clone(text)
				}
			}
		}
	}
}
