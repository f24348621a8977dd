package containers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"dagger.io/dagger/engineconn"

	"github.com/slipway-sh/slipway/fault"
)

// CodeSessionEnded: the session on the engine does not answer any more.
const CodeSessionEnded fault.Code = "ENG-010"

// Told is a session on the engine whose requests fail with CodeSessionEnded where nobody
// answers them: the process that serves the session has ended, or it does not reach the engine.
func Told(conn engineconn.EngineConn) engineconn.EngineConn { return told{conn} }

type told struct{ engineconn.EngineConn }

// longestReason is how much of an answer is taken for the reason why the engine does not answer.
const longestReason = 1 << 10

// Do implements engineconn.EngineConn.
func (s told) Do(r *http.Request) (*http.Response, error) {
	answer, err := s.EngineConn.Do(r)
	switch {
	case err != nil && r.Context().Err() == nil:
		return nil, sessionEnded(err)
	case err == nil && answer.StatusCode == http.StatusBadGateway: // of the dagger CLI, which serves the session
		reason, _ := io.ReadAll(io.LimitReader(answer.Body, longestReason))
		_ = answer.Body.Close()
		return nil, sessionEnded(fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(reason))))
	}
	return answer, err
}

func sessionEnded(err error) error {
	return &fault.Fault{
		Code: CodeSessionEnded, Class: fault.Step, Op: "ask the Dagger engine", Err: err,
		Fix: "run the same command again: finished steps are kept; if it stays so, see whether the engine runs (make engine) and whether its machine has memory left",
	}
}

// hasEnded reports whether err says that the session has ended.
func hasEnded(err error) bool { return errors.Is(err, &fault.Fault{Code: CodeSessionEnded}) }
