// Package copies keeps copies of the state of deployments in the user's data folder, where no
// clean-up of an engine reaches them. They hold what is secret in the state, in clear: folders
// have mode 0700, files 0600.
package copies

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adrg/xdg"

	"github.com/slipway-sh/slipway/cli/internal/engine"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Env is the environment variable that overrides the system's folder for data.
const Env = "SLIPWAY_DATA_DIR"

// Folder has the copies of deployments of one name. A copy is in the folder <name>/<id>, with
// a record that names its files and is replaced atomically.
type Folder struct {
	dir    string
	name   string
	engine engine.Location // the one at hand
	store  string          // where the state is: the URL of a bucket; empty: on the engine
}

// record is what is kept beside the files of a copy.
type record struct {
	contract.Copy
	engine.Location        // of the engine on which it was taken
	Store           string `json:"store,omitempty"`
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

// Open is the folder for the deployments of a name on an engine, whose state is in a bucket
// or, with an empty URL, on the engine. It is nil for a user without a home. It makes nothing.
func Open(name string, at engine.Location, store string) (*Folder, error) {
	dir, err := root()
	if err != nil || dir == "" {
		return nil, err
	}
	return &Folder{filepath.Join(dir, name), name, at, store}, nil
}

// Newest is that of conductor.Copies.
func (f *Folder) Newest() (*conductor.Kept, error) {
	all, err := f.all()
	if err != nil {
		return nil, err
	}
	var newest *conductor.Kept
	for _, k := range all {
		if newest == nil || (k.Engine == "") != (newest.Engine == "") && k.Engine == "" || (k.Engine == "") == (newest.Engine == "") && k.At.After(newest.At) {
			newest = k
		}
	}
	return newest, nil
}

// all are the newest copies, by deployment.
func (f *Folder) all() ([]*conductor.Kept, error) {
	ids, err := f.IDs()
	if err != nil {
		return nil, err
	}
	var out []*conductor.Kept
	for _, id := range ids {
		dir := filepath.Join(f.dir, id)
		r, err := read(dir)
		switch {
		case err != nil:
			return nil, conductor.BadCopy(dir, err)
		case r == nil || r.Store != f.store:
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
// are.
func (f *Folder) IDs() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for copies of the deployment's state: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && idRE.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// read is the record in a folder; nil if there is none.
func read(dir string) (*record, error) {
	text, err := os.ReadFile(filepath.Join(dir, contract.CopyFile))
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

// Keep is that of conductor.Copies.
func (f *Folder) Keep(write func(dir, have string) error) (err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	f.sweep()
	dir, err := os.MkdirTemp(f.dir, unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	have := ""
	if there, err := f.Newest(); err == nil && there != nil && there.Engine == "" {
		file := there.Files[contract.CopyBackupsFile].Name
		if info, err := os.Stat(filepath.Join(there.Dir, file)); file != "" && err == nil && info.Mode().IsRegular() {
			have = there.Backups
		}
	}
	if err := write(dir, have); err != nil {
		return err
	}
	r, err := read(dir)
	switch {
	case err != nil || r == nil: // there is none of a deployment that has no identity yet
		return err
	case !idRE.MatchString(r.ID) || r.Name != f.name:
		return errors.New("the state has no identity of this deployment")
	}
	r.Location, r.Store = f.engine, f.store
	return f.place(dir, r)
}

// place moves the files of a new copy to where they stay.
func (f *Folder) place(from string, r *record) error {
	to := filepath.Join(f.dir, r.ID)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	old, err := read(to)
	if err != nil { // it is replaced
		old = nil
	}
	if old != nil && r.Older(&old.Copy) {
		return nil
	}
	stamp := strconv.FormatInt(time.Now().UnixNano(), 36)
	for what, file := range r.Files {
		was := filepath.Base(file.Name)
		base, ext, _ := strings.Cut(was, ".")
		if ext != "" {
			ext = "." + ext
		}
		file.Name = base + "-" + stamp + ext
		if err := move(filepath.Join(from, was), filepath.Join(to, file.Name)); err != nil {
			return err
		}
		r.Files[what] = file
	}
	if _, ok := r.Files[contract.CopyBackupsFile]; r.Backups != "" && !ok {
		if old == nil || old.Backups != r.Backups || old.Files[contract.CopyBackupsFile].Name == "" {
			return errors.New("the copy is without its backups")
		}
		r.Files[contract.CopyBackupsFile] = old.Files[contract.CopyBackupsFile]
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(to, contract.CopyFile), text, 0o600); err != nil {
		return err
	}
	return clear(to, r)
}

// move moves a file, which only its owner may read from then on.
func move(from, to string) (err error) {
	file, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// clear removes what is of earlier copies.
func clear(dir string, r *record) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	kept := []string{contract.CopyFile}
	for _, file := range r.Files {
		kept = append(kept, file.Name)
	}
	var errs []error
	for _, e := range entries {
		if !slices.Contains(kept, e.Name()) && !strings.HasPrefix(e.Name(), atomicfile.Unfinished) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// unfinished begins the names of folders with copies that are being taken.
const unfinished = ".new-"

// abandoned is when a copy that is being taken was left by somebody who was killed.
const abandoned = time.Hour

// sweep removes what was left unfinished.
func (f *Folder) sweep() {
	entries, _ := os.ReadDir(f.dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), unfinished) && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(filepath.Join(f.dir, e.Name())) // the next one tries again
		}
	}
}

// Remove is that of conductor.Copies. What cannot be read is removed, too.
func (f *Folder) Remove() error {
	ids, err := f.IDs()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		dir := filepath.Join(f.dir, id)
		if r, err := read(dir); err != nil || r == nil || r.Is(f.engine) && r.Store == f.store {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	_ = os.Remove(f.dir) // unless there are others
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the copies of the deployment's state: %w", err)
	}
	return nil
}
