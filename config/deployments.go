package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/folder"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// The codes of the faults of a Folder.
const (
	// CodeNotStored: no configuration is stored under that name, or the configuration of the
	// current deployment no longer exists.
	CodeNotStored fault.Code = "CFG-008"
	// CodeFolder: the folder with the stored configurations cannot be read or
	// written.
	CodeFolder fault.Code = "CFG-010"
)

// EnvFolder is the environment variable that overrides the system's folder for
// configurations.
const EnvFolder = folder.Env

// Folder is the directory with the user's configurations by the names of their deployments, and which of
// them is the current one; it need not exist. A user without a home directory has the zero Folder, which
// is empty and cannot be written to.
//
// Its methods may be called by several processes at the same time.
type Folder string

// DefaultFolder returns the folder in EnvFolder, or else slipway in the user's configuration
// directory (XDG_CONFIG_HOME, ~/.config).
func DefaultFolder() (Folder, error) {
	dir, err := folder.Default()
	if err != nil {
		return "", folderFault("find the user's configuration folder", err)
	}
	return Folder(dir), nil
}

// configSuffix is the suffix of the files.
const configSuffix = ".yaml"

// File returns the path for the configuration named name, whether it exists or not; empty
// if that is not a valid name.
func (f Folder) File(name string) string {
	if f == "" || !IsName(name) {
		return ""
	}
	return filepath.Join(f.dir(), name+configSuffix)
}

func (f Folder) dir() string { return filepath.Join(string(f), "deployments") }

func (f Folder) current() string { return filepath.Join(string(f), "current") }

// Names returns the names of the stored configurations, sorted; none if the folder does
// not exist.
func (f Folder) Names() ([]string, error) {
	if f == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(f.dir())
	if err != nil && !absent(err) {
		return nil, folderFault("list the deployments", err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), configSuffix)
		if !ok {
			continue
		}
		if ok, err = f.Has(name); err != nil {
			return nil, err
		}
		if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names) // ReadDir returns a-b.yaml before a.yaml
	return names, nil
}

// Has reports whether a configuration is stored under name. For an invalid name there is
// none.
func (f Folder) Has(name string) (bool, error) {
	file := f.File(name)
	if file == "" {
		return false, nil
	}
	info, err := os.Stat(file)
	switch {
	case absent(err):
		return false, nil
	case err != nil:
		return false, folderFault("look for deployment "+name, err)
	}
	return info.Mode().IsRegular(), nil
}

// Find returns the path of the configuration stored under name. If there is none, the
// error is a fault CodeNotStored.
func (f Folder) Find(name string) (string, error) {
	there, err := f.Has(name)
	if err != nil {
		return "", err
	}
	if there {
		return f.File(name), nil
	}
	names, err := f.Names()
	if err != nil {
		return "", err
	}
	none := &fault.Fault{Code: CodeNotStored, Class: fault.Usage, Op: "find deployment " + document.Quote(name)}
	switch {
	case f == "":
		return "", folderFault("find deployment "+document.Quote(name), errNoHome)
	case len(names) == 0:
		none.Err, none.Fix = fmt.Errorf("there are none in %s", f.dir()), "create it: slipway configure"
	default:
		meant := ""
		if near := document.Nearest(name, names); near != "" {
			meant = fmt.Sprintf("; did you mean %q?", near)
		}
		none.Err = fmt.Errorf("it does not exist; there are %s%s", strings.Join(names, ", "), meant)
		none.Fix = "choose one of those, or create it: slipway configure"
	}
	return "", none
}

// Write atomically creates or replaces the configuration named name. Only the user can
// read it.
func (f Folder) Write(name string, text []byte) error {
	op := "save the configuration of deployment " + name
	if f == "" {
		return folderFault(op, errNoHome)
	}
	file := f.File(name)
	if file == "" {
		return fmt.Errorf("save a configuration: %s is not a valid name for a deployment", document.Quote(name))
	}
	if err := os.MkdirAll(f.dir(), 0o700); err != nil {
		return folderFault(op, err)
	}
	return folderFault(op, atomicfile.Write(file, text, 0o600))
}

// Current returns the name of the deployment chosen with Use; empty if there is none. If
// its configuration no longer exists, the error is a fault CodeNotStored.
func (f Folder) Current() (string, error) {
	if f == "" {
		return "", nil
	}
	text, err := bounded.File(f.current(), bounded.Written)
	if err != nil && !absent(err) {
		return "", folderFault("read which deployment is the current one", err)
	}
	name := strings.TrimSpace(string(text))
	if name == "" {
		return "", nil
	}
	there, err := f.Has(name)
	if err != nil {
		return "", err
	}
	if !there {
		return "", &fault.Fault{Code: CodeNotStored, Class: fault.Usage, Op: "find the current deployment",
			Fix: "choose another one: slipway use NAME; or create it: slipway configure --name " + fault.Quote(name),
			Err: fmt.Errorf("%s names %s, which no longer exists", f.current(), document.Quote(name))}
	}
	return name, nil
}

// Use makes a stored configuration the current one; none if name is empty.
func (f Folder) Use(name string) error {
	const op = "choose the current deployment"
	if name == "" {
		if f == "" {
			return nil
		}
		if err := os.Remove(f.current()); err != nil && !absent(err) {
			return folderFault(op, err)
		}
		return nil
	}
	if _, err := f.Find(name); err != nil {
		return err
	}
	return folderFault(op, atomicfile.Write(f.current(), []byte(name+"\n"), 0o600))
}

// Remove removes the configuration stored under name, but not what is installed. If it is
// the current one, there is none afterwards.
func (f Folder) Remove(name string) error {
	file, err := f.Find(name)
	if err != nil {
		return err
	}
	current, err := f.Current()
	if err != nil && !errors.Is(err, &fault.Fault{Code: CodeNotStored}) {
		return err
	}
	if current == name {
		if err := f.Use(""); err != nil {
			return err
		}
	}
	return folderFault("remove the configuration of deployment "+name, os.Remove(file))
}

// absent reports whether err means that the file or its folder does not exist, also where
// HOME is /dev/null.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

var errNoHome = errors.New("there is no folder for configurations: neither HOME nor " + EnvFolder + " is set")

// folderFault is the fault of an operation on the folder; nil where err is.
func folderFault(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fault.Fault{Code: CodeFolder, Class: fault.Preflight, Op: op, Err: err,
		Fix: "make the folder readable and writable for you, or name another one in the environment variable " + EnvFolder}
}
