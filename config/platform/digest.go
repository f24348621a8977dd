package platform

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"
)

// Digest returns the sha256 over path, executable bit and content of every file in fsys,
// "sha256:<hex>", independent of where the tree is. Links and other special files are
// PLT-001, because a copy of the tree would not contain their targets.
func Digest(fsys fs.FS) (string, error) {
	h := sha256.New()
	if err := eachFile(fsys, func(path string) error { return addFile(h, fsys, path) }); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// Open is Load for a release as its author has it. Links and other special files are PLT-001,
// as for Digest, and none is opened: what they lead to is no part of the release.
func Open(fsys fs.FS) (*Release, error) {
	if _, err := fs.Lstat(fsys, File); err == nil { // else it may be any directory
		if err := eachFile(fsys, func(string) error { return nil }); err != nil {
			return nil, err
		}
	}
	return Load(fsys)
}

// eachFile calls do for every file in fsys, in lexical order. Its errors are PLT-001.
func eachFile(fsys fs.FS, do func(path string) error) error {
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }): // which could pass for other text
			return fmt.Errorf("%q: its name has a character that cannot be printed", path)
		case strings.Contains(path, `\`): // which an archive has for a folder
			return fmt.Errorf("%q: its name has a backslash", path)
		case d.IsDir():
			return nil // it is part of the paths of its files; empty ones do not matter
		case !d.Type().IsRegular():
			return fmt.Errorf("%s: a %s instead of a file", path, kind(d.Type()))
		}
		return do(path)
	})
	if err != nil {
		return unreadable(err)
	}
	return nil
}

// addFile writes the file's digest to h instead of its content, so that no content can
// imitate other entries.
func addFile(h io.Writer, fsys fs.FS, path string) error {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	content := sha256.New()
	if _, err := io.Copy(content, f); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	mode := "file"
	if info.Mode()&0o111 != 0 {
		mode = "exec"
	}
	_, err = fmt.Fprintf(h, "%s %q %x\n", mode, path, content.Sum(nil))
	return err
}

func kind(m fs.FileMode) string {
	if m&fs.ModeSymlink != 0 {
		return "symbolic link"
	}
	return "special file"
}
