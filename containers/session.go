package containers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"dagger.io/dagger/engineconn"

	"github.com/slipway-sh/slipway/fault"
)

// CodeSessionEnded: the session on the engine does not answer any more.
const CodeSessionEnded fault.Code = "ENG-010"

// DetectEnd returns a session on the engine whose requests fail with CodeSessionEnded where nobody
// answers them: the process that serves the session has ended, or it does not reach the engine.
func DetectEnd(conn engineconn.EngineConn) engineconn.EngineConn { return endDetector{conn} }

type endDetector struct{ engineconn.EngineConn }

// longestReason is how much of an answer is taken for the reason why the engine does not answer.
const longestReason = 1 << 10

// Do implements engineconn.EngineConn.
func (s endDetector) Do(r *http.Request) (*http.Response, error) {
	answer, err := s.EngineConn.Do(r)
	switch {
	case err != nil && r.Context().Err() == nil:
		return nil, sessionEnded(err)
	case err == nil && answer.StatusCode == http.StatusBadGateway: // of the dagger CLI, which serves the session
		reason, _ := io.ReadAll(io.LimitReader(answer.Body, longestReason))
		_ = answer.Body.Close()
		return nil, sessionEnded(fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(reason))))
	case err != nil:
		return answer, err
	}
	text, err := io.ReadAll(answer.Body) // as the client does
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		if r.Context().Err() == nil {
			err = sessionEnded(err)
		}
		return nil, err
	}
	text = trace.ReplaceAll(text, nil)
	if why := ending(text); why != "" {
		return nil, sessionEnded(errors.New(why))
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}

// trace is what the engine adds to its errors for its own tools: the span that failed.
var trace = regexp.MustCompile(`\s*\[traceparent:[0-9a-f]{32}-[0-9a-f]{16}\]`)

const (
	// closed is what an engine that is ending says of its own database (bbolt's ErrDatabaseNotOpen),
	// whatever it is asked.
	closed = "database not open"
	// unattached begins what Dagger 0.20.8 answers to every request of a container's process if the
	// first came before the engine had its session (github.com/dagger/dagger/pull/13108).
	unattached = "failed to get requester session"
)

// ending is the engine's error in an answer that says that the session is of no use any more; empty
// if none does.
func ending(answer []byte) string {
	if !bytes.Contains(answer, []byte(closed)) && !bytes.Contains(answer, []byte(unattached)) {
		return ""
	}
	var a struct{ Errors []struct{ Message string } }
	if json.Unmarshal(answer, &a) != nil { // which the client reports
		return ""
	}
	for _, e := range a.Errors {
		if strings.HasSuffix(strings.TrimSpace(e.Message), closed) || strings.Contains(e.Message, unattached) {
			return e.Message
		}
	}
	return ""
}

func sessionEnded(err error) error {
	return &fault.Fault{
		Code: CodeSessionEnded, Class: fault.Step, Op: "ask the Dagger engine", Err: err,
		Fix: "run the same command again: finished steps are kept; if it fails again, check that the engine runs (make engine) and that its machine has free memory",
	}
}

func hasEnded(err error) bool { return errors.Is(err, &fault.Fault{Code: CodeSessionEnded}) }
