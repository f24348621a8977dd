package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

const (
	homepage    = "https://github.com/slipway-sh/slipway"
	description = "Installs, upgrades and removes a Kubernetes-hosted platform"
	license     = "Apache-2.0"
)

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: slipway
Source: ` + homepage + `

Files: *
Copyright: the authors of Slipway
License: ` + license + `
 On Debian systems the text of this license is in
 /usr/share/common-licenses/Apache-2.0.
`

// debianPackage writes the package of a program to the file name; texts are those of every
// archive. What is only in the package is written below the folder dir.
func (o *options) debianPackage(name string, s *source, p program, texts []file, dir string) (err error) {
	contents := files.Contents{installed(p.path, "/usr/bin/slipway", 0o755)}
	add := func(from, to string) { contents = append(contents, installed(from, to, 0o644)) }
	made := func(to string, text []byte) error {
		from := filepath.Join(dir, path.Base(to))
		add(from, to)
		return os.WriteFile(from, text, 0o644)
	}
	for _, t := range texts {
		switch base := path.Base(t.name); {
		case base == "slipway.bash":
			add(t.path, "/usr/share/bash-completion/completions/slipway")
		case base == "_slipway":
			add(t.path, "/usr/share/zsh/vendor-completions/_slipway")
		case base == "slipway.fish":
			add(t.path, "/usr/share/fish/vendor_completions.d/slipway.fish")
		case strings.HasPrefix(t.name, "man/"):
			page, err := os.ReadFile(t.path)
			if err == nil {
				page, err = compressed(page)
			}
			if err == nil {
				err = made("/usr/share/man/man1/"+base+".gz", page)
			}
			if err != nil {
				return err
			}
		}
	}
	changes, err := compressed([]byte(s.notes + "\n"))
	if err != nil {
		return err
	}
	err = errors.Join(made("/usr/share/doc/slipway/copyright", []byte(copyright)), made("/usr/share/doc/slipway/changelog.gz", changes))
	if err != nil {
		return err
	}
	_, arch, _ := strings.Cut(p.system, "/")
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "slipway", Arch: arch, Version: o.version, Section: "admin", Priority: "optional",
		Maintainer: "Slipway maintainers <slipway-sh@users.noreply.github.com>", Description: description, Homepage: homepage, License: license,
		DisableGlobbing: true, MTime: s.at, Overridables: nfpm.Overridables{
			Contents: contents, Deb: nfpm.Deb{Compression: "gzip:6"}, // 9 takes twice as long and saves two percent
		},
	})
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := deb.Default.Package(info, out); err != nil {
		return fmt.Errorf("make the package for %s: %w", p.system, err)
	}
	return nil
}

func installed(from, to string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root"}}
}

// compressed is a text as gzip -9n writes it.
func compressed(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
