package step

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages"
)

func openJournal(state string) *journal.Journal {
	return journal.Open(filepath.Join(state, "journal"))
}

// recall returns the output of an earlier success with req's digest, or why
// there is none. A damaged record is as good as none.
func recall(state string, req stages.Request) (out json.RawMessage, why string) {
	e, err := openJournal(state).Read(req.Stage, req.Step)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "the journal has none"
	case err != nil:
		return nil, err.Error()
	case e.Status != string(stages.Succeeded):
		return nil, "the step did not succeed last time"
	case e.Digest != req.Digest:
		return nil, "its input, configuration or tools were different"
	}
	return e.Output, ""
}

// remember keeps how req's step ended; f is nil when it succeeded.
func remember(state string, req stages.Request, started time.Time, out json.RawMessage, f *fault.Fault) error {
	j := openJournal(state)
	e := journal.Entry{
		Digest: req.Digest, Status: string(stages.Succeeded), Output: out,
		Started: started, Finished: time.Now().UTC(), Run: req.Run, Attempt: 1, Fault: f,
	}
	if f != nil {
		e.Status = string(stages.Failed)
	}
	if last, err := j.Read(req.Stage, req.Step); err == nil && last.Digest == req.Digest {
		e.Attempt = last.Attempt + 1
	}
	return j.Write(req.Stage, req.Step, e)
}
