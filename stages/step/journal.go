package step

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/stages"
)

// entry is what the journal keeps of a step's last success.
type entry struct {
	Stage    string          `json:"stage"`
	Step     string          `json:"step"`
	Run      string          `json:"run"`
	Digest   string          `json:"digest"`
	Status   stages.Status   `json:"status"`
	Output   json.RawMessage `json:"output"`
	Finished time.Time       `json:"finished"`
}

func journalFile(state string, req stages.Request) string {
	return filepath.Join(state, "journal", req.Stage+"."+req.Step+".json")
}

// recall returns the output of an earlier success with req's digest, or why
// there is none. A damaged entry is as good as none.
func recall(state string, req stages.Request) (out json.RawMessage, why string) {
	b, err := os.ReadFile(journalFile(state, req))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "the journal has none"
	}
	if err != nil {
		return nil, err.Error()
	}
	var e entry
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, "the journal's entry is damaged: " + err.Error()
	}
	if e.Status != stages.Succeeded {
		return nil, "it did not succeed"
	}
	if e.Digest != req.Digest {
		return nil, "its input, configuration or tools were different"
	}
	return e.Output, ""
}

// remember keeps out as the last success of req's step.
func remember(state string, req stages.Request, out json.RawMessage) error {
	b, err := json.MarshalIndent(entry{
		Stage: req.Stage, Step: req.Step, Run: req.Run, Digest: req.Digest,
		Status: stages.Succeeded, Output: out, Finished: time.Now().UTC(),
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(journalFile(state, req), append(b, '\n'))
}

// writeFile writes b to path so that after a crash there is the old content or
// the new one, and makes the directory if needed. Same content is left alone.
func writeFile(path string, b []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
		return nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
