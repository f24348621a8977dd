package bounded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"
)

// EachFile calls do for every file in fsys, in lexical order. Links and other special files are errors:
// what they lead to is no part of the tree, and a copy would not have it.
func EachFile(fsys fs.FS, do func(path string) error) error {
	return fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }): // which could pass for other text
			return fmt.Errorf("%q: its name has a character that cannot be printed", path)
		case strings.Contains(path, `\`): // which an archive has for a folder
			return fmt.Errorf("%q: its name has a backslash", path)
		case d.IsDir():
			return nil // it is part of the paths of its files; empty ones do not matter
		case d.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s: a symbolic link instead of a file", path)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s: a special file instead of a file", path)
		}
		return do(path)
	})
}

// Digest returns the sha256 over path, executable bit and content of every file in fsys,
// "sha256:<hex>", independent of where the tree is. It fails as EachFile does.
func Digest(fsys fs.FS) (string, error) {
	h := sha256.New()
	if err := EachFile(fsys, func(path string) error { return addFile(h, fsys, path) }); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
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
