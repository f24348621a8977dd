package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/document"
)

const (
	workspaceRoot     = "/release"
	maxWorkspace      = 32 << 20 // bytes of all files together
	maxKustomizations = 500      // each counts as often as it is built
)

// workspace is what kustomize sees of a release: the files that a kustomization names, and
// kustomizations written anew, in which every name begins with "./" and is the name of such a
// file. kustomize takes no such name for an address or a repository, which it would fetch by
// HTTP or by running git with what stands in the name.
type workspace struct {
	release        fs.FS
	files          filesys.FileSystem
	size           int
	kustomizations int
}

// kustomization is a file that makes a directory a kustomization, while it is written anew.
type kustomization struct {
	*workspace
	file, dir string
	parents   []string // directories that led here, and dir
}

var errNotInRelease = errors.New("no file or directory of the release")

// addKustomization adds the kustomization in dir and what it is made of. parents are the
// directories of the kustomizations that led to it.
func (w *workspace) addKustomization(dir string, parents []string) error {
	k := kustomization{workspace: w, file: Kustomization(w.release, dir), dir: dir, parents: append(slices.Clone(parents), dir)}
	if k.file == "" {
		return fmt.Errorf("%s has no %s", dir, konfig.DefaultKustomizationFileName())
	}
	if w.kustomizations++; w.kustomizations > maxKustomizations {
		return fmt.Errorf("%s is made of more than %d kustomizations", k.parents[0], maxKustomizations)
	}
	text, err := readFile(w.release, k.file)
	if err != nil {
		return fmt.Errorf("read %s: %w", k.file, err)
	}
	var content types.Kustomization
	if err := content.Unmarshal(text); err != nil {
		return fmt.Errorf("decode %s: %w", k.file, err)
	}
	content.FixKustomization() // moves deprecated fields to those that take their place
	if err := content.CheckEmpty(); err != nil {
		return fmt.Errorf("%s: %w", k.file, err)
	}
	if len(content.HelmCharts) > 0 || content.HelmGlobals != nil {
		return fmt.Errorf("%s has helmCharts, for which kustomize runs Helm; make the chart a component of kind chart", k.file)
	}
	if len(content.Generators)+len(content.Transformers)+len(content.Validators) > 0 {
		return fmt.Errorf("%s has generators, transformers or validators, which kustomize may run as programs; use its other fields, such as configMapGenerator, labels and patches", k.file)
	}
	if err := k.rewrite(&content); err != nil {
		return err
	}
	if content.MetaData == nil {
		content.MetaData = &types.ObjectMeta{} // with lists without entries it would count as empty
	}
	if text, err = yaml.Marshal(content); err != nil {
		return fmt.Errorf("encode %s: %w", k.file, err)
	}
	return w.write(k.file, text)
}

// write adds a file to what kustomize sees. A file that is written again is as it was: names
// that Slipway makes up are of one directory and field.
func (w *workspace) write(name string, text []byte) error {
	at := path.Join(workspaceRoot, legal(name))
	if w.files.Exists(at) {
		return nil
	}
	if w.size += len(text); w.size > maxWorkspace {
		return fmt.Errorf("the files that a kustomization is made of are larger than %d MiB together", maxWorkspace>>20)
	}
	if err := document.CheckAliases(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.files.WriteFile(at, text)
}

// find is the file or directory that a name in the kustomization leads to.
func (k *kustomization) find(name string) (string, fs.FileInfo, error) {
	at := path.Join(k.dir, name)
	if name == "" || path.IsAbs(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", nil, errNotInRelease
	}
	info, err := fs.Stat(k.release, at)
	if err != nil {
		return "", nil, errNotInRelease
	}
	return at, info, nil
}

// unknown is the error for a name that leads nowhere.
func (k *kustomization) unknown(name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		name = strconv.Quote(name)
	}
	return fmt.Errorf("%s names %s, which is %w", k.file, name, errNotInRelease)
}

// source adds the file or the kustomization of that name.
func (k *kustomization) source(name string) (string, error) {
	at, info, err := k.find(name)
	if err != nil {
		return "", k.unknown(name)
	}
	if !info.IsDir() {
		return k.content(name)
	}
	if slices.Contains(k.parents, at) {
		return "", fmt.Errorf("%s names %s, which it is part of", k.file, name)
	}
	return "./" + legal(path.Clean(name)), k.addKustomization(at, k.parents)
}

// content adds the file of that name.
func (k *kustomization) content(name string) (string, error) {
	text, at, err := k.read(name)
	if err != nil {
		return "", err
	}
	return "./" + legal(path.Clean(name)), k.write(at, text)
}

func (k *kustomization) read(name string) (text []byte, at string, err error) {
	at, info, err := k.find(name)
	switch {
	case err != nil:
		return nil, "", k.unknown(name)
	case info.IsDir():
		return nil, "", fmt.Errorf("%s names %s, which is a directory where a file is wanted", k.file, name)
	case slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(at)): // which is written anew
		return nil, "", fmt.Errorf("%s names %s as a file; name the directory of a kustomization", k.file, name)
	}
	if text, err = readFile(k.release, at); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", at, err)
	}
	return text, at, nil
}
