package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// newest is the newest version of a record; nil if there is none. If it cannot be read, or sound finds
// that something is missing in it, the error is store.CodeDamaged with its key.
func newest[T any](ctx context.Context, s *store.Store, v store.Versions, sound func(*T) error) (*T, error) {
	data, generation, err := v.Newest(ctx, s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := new(T)
	err = json.Unmarshal(data, out)
	if err == nil {
		err = sound(out)
	}
	if err != nil {
		return nil, s.Damaged(v.Key(generation), err)
	}
	return out, nil
}

// Decode is the record of a run out of what is stored of it.
func Decode(s *store.Store, run string, data []byte) (*report.Run, error) {
	r, err := report.Decode(data)
	if err == nil && r.ID != run {
		err = fmt.Errorf("it is the record of run %q, not of run %s", r.ID, run)
	}
	if err != nil {
		return nil, s.Damaged(runKey(run, report.RecordFile), err)
	}
	return r, nil
}

// Damaged is store.CodeDamaged with the key if err is a *report.FileError of a run, and err if not.
func Damaged(s *store.Store, run string, err error) error {
	if f, ok := errors.AsType[*report.FileError](err); ok {
		return s.Damaged(runKey(run, f.Name), f.Err)
	}
	return err
}
