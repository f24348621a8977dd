// Package copies keeps copies of the state of deployments in the user's data folder, where no
// clean-up of an engine reaches them. They hold what is secret in the state, in clear: folders
// have mode 0700, files 0600.
package copies

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/adrg/xdg"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/engine"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Env is the environment variable that overrides the system's folder for data.
const Env = "SLIPWAY_DATA_DIR"

// Folder has the copies of deployments of one name. Those of one engine's address and state are in
// a folder of their own, which tells whose they are even where they cannot be read: a copy is in
// <name>/<place>/<id>, with a record that names its files and is replaced atomically. Which machine
// the address is of, its record alone says.
type Folder struct {
	dir    string
	name   string
	engine engine.Location // the one at hand
	store  string          // where the state is: the URL of a bucket; empty: on the engine
	user   string          // whose program it is: with sudo, several share the folder
}

// record is what is kept beside the files of a copy.
type record struct {
	contract.Copy
	engine.Location        // of the engine on which it was taken
	Store           string `json:"store,omitempty"`
	User            string `json:"user,omitempty"` // whose program took it; empty: an earlier version's
}

// idRE is what an identity looks like.
var idRE = regexp.MustCompile(`^[a-z0-9]{8,64}$`)

// root is the folder of all copies; empty for a user without a home.
func root() (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		dir, err := filepath.Abs(dir)
		return filepath.Join(dir, "state"), err
	}
	if !filepath.IsAbs(xdg.DataHome) {
		return "", nil
	}
	return filepath.Join(xdg.DataHome, "slipway", "state"), nil
}

// Open is the folder of a user for the deployments of a name on an engine, whose state is in a
// bucket or, with an empty URL, on the engine. It is nil for a user without a home. It makes
// nothing.
func Open(name string, at engine.Location, store, user string) (*Folder, error) {
	dir, err := root()
	if err != nil || dir == "" {
		return nil, err
	}
	return &Folder{filepath.Join(dir, name), name, at, store, user}, nil
}

// place is the name of the folder for what is at the address of this engine and in this state.
func (f *Folder) place() string {
	sum := sha256.Sum256([]byte(f.engine.Address + "\n" + f.store))
	return hex.EncodeToString(sum[:8])
}

// own is the path of that folder.
func (f *Folder) own() string { return filepath.Join(f.dir, f.place()) }

// Newest is that of conductor.Copies.
func (f *Folder) Newest() (*conductor.Kept, error) {
	all, err := f.all()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	here := func(k *conductor.Kept) int {
		if k.Engine == "" {
			return 1
		}
		return 0
	}
	return slices.MaxFunc(all, func(a, b *conductor.Kept) int { return cmp.Or(here(a)-here(b), a.At.Compare(b.At)) }), nil
}

// all are the newest copies, by deployment. One that cannot be read is an error if it is where
// those of this engine are, and else as if it were not there.
func (f *Folder) all() ([]*conductor.Kept, error) {
	dirs, err := f.dirs()
	if err != nil {
		return nil, conductor.BadCopy(f.dir, err)
	}
	var out []*conductor.Kept
	for _, dir := range dirs {
		r, err := read(dir)
		switch {
		case err != nil && filepath.Dir(dir) == f.own():
			return nil, conductor.BadCopy(dir, err)
		case err != nil || r == nil || r.Store != f.store:
			continue
		}
		k := &conductor.Kept{Copy: &r.Copy, Dir: dir, Engine: r.Location.String()}
		if r.Is(f.engine) {
			k.Engine = ""
		}
		out = append(out, k)
	}
	return out, nil
}

// IDs are the identities of the deployments of that name of which there is a copy, wherever they
// are, but for copies that another user's program took last.
func (f *Folder) IDs() ([]string, error) {
	dirs, err := f.dirs()
	if err != nil {
		return nil, fmt.Errorf("look for copies of the deployment's state: %w", err)
	}
	var ids []string
	for _, dir := range dirs {
		if r, err := read(dir); err == nil && r != nil && r.User != "" && r.User != f.user {
			continue
		}
		ids = append(ids, filepath.Base(dir))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// dirs are the paths of the folders with copies, of all places. That a place cannot be read is an
// error if it is this engine's.
func (f *Folder) dirs() ([]string, error) {
	places, err := folders(f.dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, place := range places {
		ids, err := folders(filepath.Join(f.dir, place))
		if err != nil && place == f.place() {
			return nil, err
		}
		for _, id := range ids {
			dirs = append(dirs, filepath.Join(f.dir, place, id))
		}
	}
	return dirs, nil
}

// folders are the names of the folders in one, places or identities; none if it is not there.
func folders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && idRE.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// read is the record in a folder; nil if there is none.
func read(dir string) (*record, error) {
	text, err := bounded.File(filepath.Join(dir, contract.CopyFile), bounded.Generated)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("decode %s: %w", contract.CopyFile, err)
	}
	return &r, nil
}

// Remove is that of conductor.Copies. What was taken on this engine is removed also if it cannot
// be read; what else somebody has put beside it stays, and so do copies of a machine whose engine
// has the same address.
func (f *Folder) Remove() (left []string, err error) {
	f.sweep()
	entries, err := os.ReadDir(f.own())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the copies of the deployment's state: %w", err)
	}
	var errs []error
	for _, e := range entries {
		dir := filepath.Join(f.own(), e.Name())
		r, err := read(dir)
		switch {
		case strings.HasPrefix(e.Name(), unfinished): // somebody takes a copy
		case !e.IsDir() || !idRE.MatchString(e.Name()), err == nil && r != nil && !f.has(r, e.Name()):
			left = append(left, dir)
		case err == nil && r != nil && !r.Is(f.engine): // of another machine
		default:
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	_, _ = os.Remove(f.own()), os.Remove(f.dir) // unless there are others
	if err := errors.Join(errs...); err != nil {
		return left, fmt.Errorf("remove the copies of the deployment's state: %w", err)
	}
	return left, nil
}

// has reports whether a record belongs in the folder of that identity in this place.
func (f *Folder) has(r *record, id string) bool {
	return r.Address == f.engine.Address && r.Store == f.store && r.ID == id
}
