package copies

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Keep is that of conductor.Copies.
func (f *Folder) Keep(write func(dir, have string) error) (err error) {
	for _, dir := range []string{filepath.Dir(f.dir), f.dir, f.own()} {
		if err := private(dir); err != nil {
			return err
		}
	}
	f.sweep()
	dir, done, err := f.begin()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
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
	r.Location, r.Store, r.User = f.engine, f.store, f.user
	return f.put(dir, r)
}

// private makes a folder that nobody else may look into, also of one that is there.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// put moves the files of a new copy to where they stay. One without the file of its backups gets
// those of the copy before, if that has any.
func (f *Folder) put(from string, r *record) error {
	to := filepath.Join(f.own(), r.ID)
	if err := private(to); err != nil {
		return err
	}
	old, err := read(to)
	if err != nil || old == nil { // it is replaced
		old = &record{}
	}
	if r.Older(&old.Copy) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(from, filepath.Base(r.Files[contract.CopyBackupsFile].Name))); errors.Is(err, fs.ErrNotExist) {
		delete(r.Files, contract.CopyBackupsFile)
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
		r.Backups = ""
		if file, ok := old.Files[contract.CopyBackupsFile]; ok {
			r.Backups, r.Files[contract.CopyBackupsFile] = old.Backups, file
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(to, contract.CopyFile), text, 0o600); err != nil {
		return err
	}
	return leave(to, r)
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

// leave leaves the files of a copy in its folder, and removes those of earlier ones.
func leave(dir string, r *record) error {
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

// takenFile is the name of the file in such a folder that is locked by whoever takes the copy, so
// that the folder of one that was killed is known at once.
const takenFile = ".taken"

// begun is how old such a folder is, at least, when the file in it is locked.
const begun = 2 * time.Second

// abandoned is when a copy that is being taken was left by somebody who was killed, where files
// cannot be locked.
const abandoned = time.Hour

// begin makes a folder for a copy that is being taken; done removes it.
func (f *Folder) begin() (dir string, done func() error, err error) {
	dir, err = os.MkdirTemp(f.own(), unfinished)
	if err != nil {
		return "", nil, err
	}
	taken := flock.New(filepath.Join(dir, takenFile))
	if _, err := taken.TryLock(); errors.Is(err, fs.ErrNotExist) { // this process stood still
		return "", nil, err
	}
	return dir, func() error { return errors.Join(taken.Close(), os.RemoveAll(dir)) }, nil
}

// sweep removes what was left unfinished.
func (f *Folder) sweep() {
	entries, _ := os.ReadDir(f.own())
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), unfinished) || time.Since(info.ModTime()) < begun {
			continue
		}
		dir := filepath.Join(f.own(), e.Name())
		taken := flock.New(filepath.Join(dir, takenFile))
		free, err := taken.TryLock()
		if err != nil {
			free = time.Since(info.ModTime()) > abandoned
		}
		_ = taken.Close() // Windows removes no file that is open
		if free {
			_ = os.RemoveAll(dir) // the next one tries again
		}
	}
}
