package console

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// EnvResult names a file in which a command says how it ended, as JSON, for the program that runs it.
const EnvResult = "SLIPWAY_RESULT"

// Result is how a command ended.
type Result struct {
	Code  fault.Code  `json:"code,omitempty"`  // of its error; empty: it has none, or the command succeeded
	Error string      `json:"error,omitempty"` // empty: the command succeeded
	Run   *report.Run `json:"run,omitempty"`   // record of the last run that it carried out

	file string
}

// NewResult is the end of this command. The variable is not for the processes that it starts.
func NewResult() *Result {
	e := &Result{file: os.Getenv(EnvResult)}
	_ = os.Unsetenv(EnvResult)
	return e
}

// Write writes the file, if there is one, of a command that ended with err. It returns err.
func (e *Result) Write(err error) error {
	if e.file == "" {
		return err
	}
	if err != nil {
		e.Error = err.Error()
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		e.Code = f.Code
	}
	text, failed := json.Marshal(e)
	if failed == nil {
		failed = atomicfile.Write(e.file, text, 0o600)
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	return err
}
