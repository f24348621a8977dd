package render

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	workspaceRoot     = "/release"
	maxWorkspace      = 32 << 20 // bytes of all files together
	maxKustomizations = 500      // each counts as often as it is built
)

// workspace is what kustomize sees of a release: its files, with escaped names, of which every
// kustomization is rewritten when it is read. Nothing can be written to it.
type workspace struct {
	filesys.FileSystem // an empty one, for what building a kustomization does not use
	release            fs.FS
	top                string            // directory that is built
	read               map[string][]byte // files by their names
	size               int               // of these
	kustomizations     int
	err                error // the first one of what cannot be read
}

// at is the file of the release that a path leads to.
func (w *workspace) at(name string) string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(unescape(filepath.ToSlash(name)), workspaceRoot), "/"), ".")
}

// CleanedAbs implements filesys.FileSystem.
func (w *workspace) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	info, err := fs.Stat(w.release, w.at(name))
	switch {
	case err != nil:
		return "", "", err
	case info.IsDir():
		return filesys.ConfirmedDir(path.Clean(name)), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
}

// Exists implements filesys.FileSystem.
func (w *workspace) Exists(name string) bool {
	_, err := fs.Stat(w.release, w.at(name))
	return err == nil
}

// IsDir implements filesys.FileSystem.
func (w *workspace) IsDir(name string) bool {
	info, err := fs.Stat(w.release, w.at(name))
	return err == nil && info.IsDir()
}

// ReadFile implements filesys.FileSystem.
func (w *workspace) ReadFile(name string) ([]byte, error) {
	at := w.at(name)
	text, err := w.file(at)
	if err == nil && isKustomizationName(at) {
		text, err = w.rewrite(at, text)
	}
	w.err = cmp.Or(w.err, err)
	return text, err
}

func (w *workspace) file(name string) ([]byte, error) {
	if text, again := w.read[name]; again {
		return text, nil
	}
	text, err := ReadFile(w.release, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if w.size += len(text); w.size > maxWorkspace {
		return nil, fmt.Errorf("the files that a kustomization is made of are larger than %d MiB together", maxWorkspace>>20)
	}
	w.read[name] = text
	return text, nil
}

func isKustomizationName(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// Names of files are escaped where they could be more to kustomize than names: ~20 is a space.
var (
	notPlain = regexp.MustCompile(`[^a-zA-Z0-9_./-]|\.git|_git`)
	escaped  = regexp.MustCompile(`~[0-9a-f]{2}`)
)

func escape(name string) string {
	return notPlain.ReplaceAllStringFunc(name, func(s string) string {
		out := ""
		for _, c := range []byte(s) {
			out += fmt.Sprintf("~%02x", c)
		}
		return out
	})
}

func unescape(name string) string {
	return escaped.ReplaceAllStringFunc(name, func(s string) string {
		c, _ := strconv.ParseUint(s[1:], 16, 8)
		return string([]byte{byte(c)})
	})
}

var errNotInRelease = errors.New("no file or directory of the release")

// kustomization is a file that makes a directory a kustomization, while it is rewritten.
type kustomization struct {
	release   fs.FS
	file, dir string
}

// unknown is the error for a name that leads nowhere.
func (k *kustomization) unknown(name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		name = strconv.Quote(name)
	}
	return fmt.Errorf("%s names %s, which is %w", k.file, name, errNotInRelease)
}

// find is what a name in the kustomization leads to.
func (k *kustomization) find(name string) (fs.FileInfo, error) {
	if name == "" || path.IsAbs(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return nil, k.unknown(name)
	}
	info, err := fs.Stat(k.release, path.Join(k.dir, name))
	if err != nil {
		return nil, k.unknown(name)
	}
	return info, nil
}

func (k *kustomization) source(name string) (string, error) {
	info, err := k.find(name)
	switch {
	case err != nil:
		return "", err
	case info.IsDir() && Kustomization(k.release, path.Join(k.dir, name)) == "":
		return "", fmt.Errorf("%s has no %s", path.Join(k.dir, name), konfig.DefaultKustomizationFileName())
	case info.IsDir():
		return "./" + escape(path.Clean(name)), nil
	}
	return k.content(name)
}

func (k *kustomization) content(name string) (string, error) {
	info, err := k.find(name)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", fmt.Errorf("%s names %s, which is a directory where a file is wanted", k.file, name)
	case isKustomizationName(name):
		return "", fmt.Errorf("%s names %s as a file; name the directory of a kustomization", k.file, name)
	}
	return "./" + escape(path.Clean(name)), nil
}
