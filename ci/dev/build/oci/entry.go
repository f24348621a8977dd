// Package oci makes container images whose digests depend on their content
// alone: layers from folders and files, images, and OCI archives. It writes no
// clock time, no user name and no path of the machine that builds.
//
// Layers are compressed by zstd at a fixed level: containerd 1.5 and later and
// BuildKit read it, and it unpacks several times faster than gzip, which is
// what an install waits for.
package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Tree is a folder whose content goes into a layer.
type Tree struct {
	Root string
	// Into is where the content goes in the image; empty is the image's root.
	Into string
	// Overlay says that Root is the upper folder of an overlay mount: its
	// whiteouts and opaque folders become those of an OCI layer.
	Overlay bool
	// Owner gives every entry to one user and group; nil keeps what the folder
	// has.
	Owner *Owner
	// Uniform keeps only name, content and who may execute it: machines whose folders were unpacked
	// in different ways make the same layer.
	Uniform bool
	// Skip leaves out what it returns true for, with what is below; it gets the
	// path below Root ("usr/share/doc"). May be nil.
	Skip func(path string) bool
}

// Owner is a numeric user and group.
type Owner struct{ UID, GID int }

// File is one entry of a layer that has no folder to come from. Exactly one of
// Source, Data, Link and Dir says what it is.
type File struct {
	Path   string      // in the image, without leading slash
	Mode   fs.FileMode // permission bits and setuid, setgid, sticky
	Owner  Owner
	Source string // a regular file of this machine
	Data   []byte // a regular file with this content; not nil
	Link   string // a symbolic link to this target
	Dir    bool
}

type entry struct {
	name   string // clean, slashes, no leading slash
	file   File
	info   fs.FileInfo // of entries from a Tree
	rdev   uint64
	xattrs map[string]string
	hard   string // name of the entry that holds the content
}

// Whiteouts of an OCI layer.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// entries lists what a layer consists of, in the order of its names; what comes
// later in the arguments replaces what came before under the same name.
func entries(trees []Tree, files []File) ([]entry, error) {
	byName := map[string]entry{}
	for _, t := range trees {
		if err := walk(t, byName); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		name, err := clean(f.Path)
		if err != nil {
			return nil, err
		}
		byName[name] = entry{name: name, file: f}
	}
	list := make([]entry, 0, len(byName))
	for _, e := range byName {
		list = append(list, e)
	}
	// A folder comes before its content: compare path element by path element.
	slices.SortFunc(list, func(a, b entry) int {
		return slices.Compare(strings.Split(a.name, "/"), strings.Split(b.name, "/"))
	})
	linkHard(list)
	return list, nil
}

func clean(name string) (string, error) {
	cleaned := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
	if cleaned == "" || strings.Contains("/"+name+"/", "/../") {
		return "", fmt.Errorf("%q is no path of a layer's entry", name)
	}
	return cleaned, nil
}

func walk(t Tree, byName map[string]entry) error {
	return filepath.WalkDir(t.Root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read a layer's folder: %w", err)
		}
		below, err := filepath.Rel(t.Root, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if below != "." && t.Skip != nil && t.Skip(below) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type()&fs.ModeSocket != 0 {
			return nil
		}
		inImage := strings.TrimPrefix(path.Join("/", t.Into, below), "/")
		e, err := read(name, inImage)
		if err != nil {
			return fmt.Errorf("read a layer's folder: %w", err)
		}
		if t.Uniform {
			executable := e.file.Mode&0o111 != 0
			e.info, e.xattrs, e.file.Owner, e.file.Mode = nil, nil, Owner{}, 0o644
			if executable {
				e.file.Mode = 0o755
			}
		}
		if t.Owner != nil {
			e.file.Owner = *t.Owner
		}
		if t.Overlay {
			if e.info.Mode()&fs.ModeCharDevice != 0 && e.rdev == 0 {
				e = hidden(path.Join(path.Dir(inImage), whiteout+path.Base(inImage)))
			} else if d.IsDir() && isOpaque(name) {
				mark := hidden(path.Join(inImage, opaque))
				byName[mark.name] = mark
			}
		}
		if e.name != "" { // the root has none
			byName[e.name] = e
		}
		return nil
	})
}

// hidden is the marker of something that lower layers have and the image has
// not.
func hidden(name string) entry {
	return entry{name: name, file: File{Path: name, Mode: 0o644, Data: []byte{}}}
}

func read(name, inImage string) (entry, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return entry{}, err
	}
	e := entry{name: inImage, info: info}
	e.file = File{Path: inImage, Mode: info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return entry{}, fmt.Errorf("%s: no numeric owner on this system", name)
	}
	e.file.Owner = Owner{int(stat.Uid), int(stat.Gid)}
	switch mode := info.Mode(); {
	case mode.IsDir():
		e.file.Dir = true
	case mode.IsRegular():
		e.file.Source = name
		e.xattrs, err = capabilities(name)
	case mode&fs.ModeSymlink != 0:
		e.file.Link, err = os.Readlink(name)
	case mode&(fs.ModeDevice|fs.ModeCharDevice|fs.ModeNamedPipe) != 0:
		e.rdev = uint64(stat.Rdev)
	default:
		err = fmt.Errorf("%s: a layer cannot hold a %s", name, mode.Type())
	}
	return e, err
}

// capabilities reads the one extended attribute that changes what a program may
// do.
func capabilities(name string) (map[string]string, error) {
	const attribute = "security.capability"
	buffer := make([]byte, 64)
	n, err := unix.Lgetxattr(name, attribute, buffer)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read attributes of %s: %w", name, err)
	}
	return map[string]string{attribute: string(buffer[:n])}, nil
}

// isOpaque reports whether the folder of an upper layer hides what lower layers
// have in it.
func isOpaque(name string) bool {
	buffer := make([]byte, 8)
	for _, attribute := range []string{"trusted.overlay.opaque", "user.overlay.opaque"} {
		if n, err := unix.Lgetxattr(name, attribute, buffer); err == nil && string(buffer[:n]) == "y" {
			return true
		}
	}
	return false
}

// linkHard makes the second and later names of a file links to its first.
func linkHard(list []entry) {
	type inode struct{ dev, ino uint64 }
	first := map[inode]string{}
	for i, e := range list {
		if e.info == nil || !e.info.Mode().IsRegular() {
			continue
		}
		stat, ok := e.info.Sys().(*syscall.Stat_t)
		if !ok || stat.Nlink < 2 {
			continue
		}
		id := inode{uint64(stat.Dev), stat.Ino}
		if name, seen := first[id]; seen {
			list[i].hard = name
		} else {
			first[id] = e.name
		}
	}
}
