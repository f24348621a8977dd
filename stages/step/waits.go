package step

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/stages/contract"
)

// Waits notes what the step waits for, for `slipway status`, or that this is over. That it
// cannot be noted does no harm to the step, and is only logged.
func (e *Env) Waits(what string, since, until time.Time, seen string, over bool) {
	e.waiting.Lock()
	defer e.waiting.Unlock()
	e.waits = slices.DeleteFunc(e.waits, func(w contract.Wait) bool { return w.For == what })
	if !over {
		e.waits = append(e.waits, contract.Wait{Step: e.ID, For: what, Since: since.UTC(), Until: until.UTC(), Seen: e.Clean(seen)})
	}
	if err := e.keepWaits(); err != nil {
		e.Logger.Warn("the status does not show what the step waits for", "error", err)
	}
}

func (e *Env) keepWaits() error {
	stage, step, _ := strings.Cut(e.ID, "/")
	dir := recordDir(e.StateDir, e.Run, stage, step)
	if len(e.waits) == 0 {
		err := os.Remove(filepath.Join(dir, contract.WaitsFile))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	text, err := json.Marshal(e.waits)
	if err != nil {
		return err
	}
	return e.Keep(contract.WaitsFile, text)
}
