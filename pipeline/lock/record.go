package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// Keys, and the kind and version with which records are sealed.
const (
	prefix  = "lock/"
	kind    = "lock"
	version = 1
)

// Holder identifies who holds the lock, or breaks it.
type Holder struct {
	User     string `json:"user"`
	Host     string `json:"host"`
	Run      string `json:"run,omitempty"`
	Workflow string `json:"workflow,omitempty"` // "install"
}

func (h Holder) String() string {
	s := h.User + "@" + h.Host
	switch {
	case h.Workflow != "" && h.Run != "":
		s += " (" + h.Workflow + ", run " + h.Run + ")"
	case h.Workflow != "" || h.Run != "":
		s += " (" + h.Workflow + h.Run + ")"
	}
	return s
}

// State is the state of a generation.
type State string

// The states.
const (
	Held     State = "held"
	Released State = "released"
	Forced   State = "forced" // nobody holds it: the previous holder's lock was broken by force
)

// Record is one generation of the lock.
type Record struct {
	Generation int64     `json:"generation"`
	State      State     `json:"state"`
	Holder     Holder    `json:"holder"` // if forced: who broke the lock
	Token      string    `json:"token"`  // random, chosen by the holder
	Acquired   time.Time `json:"acquired"`
	Beat       time.Time `json:"beat"` // the last heartbeat, by the holder's clock
	Released   time.Time `json:"released,omitzero"`
	Every      int64     `json:"everyMilliseconds,omitempty"` // between heartbeats; if forced, this and what follows are of the holder that lost the lock
	TTL        int64     `json:"ttlMilliseconds,omitempty"`
	Grace      int64     `json:"graceMilliseconds,omitempty"` // if forced: 0 if nothing works for that holder any more
	After      *Broken   `json:"after,omitempty"`             // the generation that was broken; nil if the lock was free
}

// Broken describes a generation that its holder did not release.
type Broken struct {
	Generation int64     `json:"generation"`
	Holder     Holder    `json:"holder"` // empty if its record was damaged
	Acquired   time.Time `json:"acquired,omitzero"`
	Beat       time.Time `json:"beat,omitzero"`
	Why        string    `json:"why"`
}

// write seals the record and has put, Put or Create of a store, write it.
func (r Record) write(ctx context.Context, put func(ctx context.Context, key string, data []byte) error) error {
	data, err := store.Seal(kind, version, r)
	if err != nil {
		return err
	}
	return put(ctx, key(r.Generation), data)
}

// every, ttl and grace return the holder's settings, clamped to a sane range.
func (r Record) every() time.Duration { return clamp(r.Every) }
func (r Record) ttl() time.Duration   { return clamp(r.TTL) }
func (r Record) grace() time.Duration { return clamp(r.Grace) }

// over returns how long after a holder's last heartbeat nothing works for it any more: what
// watches the lock notices within a beat that there was none for the time to live.
func (r Record) over() time.Duration { return r.ttl() + r.every() + r.grace() }

func clamp(milliseconds int64) time.Duration {
	return min(max(time.Duration(milliseconds)*time.Millisecond, time.Millisecond), 10*time.Minute)
}

// records are the records of all generations.
func records() store.Versions { return store.Versions{Prefix: prefix, Suffix: ".json"} }

func key(generation int64) string { return records().Key(generation) }

// What lies between one generation and the next is 1, unless somebody else has put a record there.
// Within these limits such a record counts. Beyond them it does not: the numbers would soon end.
const (
	gap   = 1_000_000
	first = 100_000_000_000
)

// generations returns the generations that have a record, lowest first, without those that nobody can
// have taken.
func (l *Lock) generations(ctx context.Context) ([]int64, error) {
	all, err := l.listed(ctx)
	for i, g := range all { // older ones are removed, so that the first one is seldom 1
		if i == 0 && g > first || i > 0 && g-all[i-1] > gap {
			return all[:i], err
		}
	}
	return all, err
}

// listed returns the generations of all records, lowest first.
func (l *Lock) listed(ctx context.Context) ([]int64, error) {
	keys, err := l.store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []int64
	for _, k := range keys {
		if n, is := records().Of(k); is {
			all = append(all, n)
		}
	}
	return all, nil
}

// highest returns the highest generation, or 0 if the lock was never taken.
func (l *Lock) highest(ctx context.Context) (int64, error) {
	all, err := l.generations(ctx)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1], nil
}

// damaged reports whether err says that a record cannot be read, whoever asks.
func damaged(err error) bool {
	_, is := errors.AsType[*store.RecordError](err)
	return is || errors.Is(err, &fault.Fault{Code: store.CodeDamaged})
}

// read returns the record of a generation. The error is damaged if the record is.
func (l *Lock) read(ctx context.Context, generation int64) (Record, error) {
	data, err := l.store.Get(ctx, key(generation))
	if err != nil {
		return Record{}, err
	}
	return decode(data, generation)
}

func decode(data []byte, generation int64) (Record, error) {
	var r Record
	if err := store.Unseal(data, kind, version, &r); err != nil {
		return Record{}, fmt.Errorf("lock record %s: %w", key(generation), err)
	}
	if r.Generation != generation {
		return Record{}, fmt.Errorf("lock record %s: %w", key(generation), store.Foreign("it is of generation %d", r.Generation))
	}
	return r, nil
}

// ago formats how long before now t was.
func ago(now, t time.Time) string {
	d := now.Sub(t).Round(time.Second)
	if d < 0 {
		return strings.TrimPrefix(d.String(), "-") + " ahead of this machine's clock"
	}
	return d.String() + " ago"
}
