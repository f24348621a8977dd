package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
)

// errRefused: there can be no release of this checkout with these options; nothing was made.
var errRefused = errors.New("no release")

func refused(why error) error { return fmt.Errorf("%w: %w", errRefused, why) }

// source is the checkout that a release is made of.
type source struct {
	root   string
	commit string    // empty where the checkout has changes: it is that of none
	at     time.Time // of the commit; every file of a release has this time
	notes  string    // the version's section of the changelog
}

// check finds out what is released and with which key. It names every reason for which there
// can be no release.
func (o *options) check(ctx context.Context, root string) (*source, crypto.Signer, error) {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if semver.Canonical(o.version) != o.version || o.version == "" {
		refuse("VERSION=%s is no semantic version such as v1.2.3 or v1.2.3-rc.1", o.version)
	}
	slices.Sort(o.targets)
	o.targets = slices.Compact(o.targets)
	for _, t := range o.targets {
		if system, arch, ok := strings.Cut(t, "/"); !ok || system == "" || arch == "" || strings.Contains(arch, "/") {
			refuse("TARGETS: %q is not of the form OS/ARCH", t)
		}
	}
	if len(o.targets) == 0 {
		refuse("TARGETS names no system")
	}
	if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 {
		refuse("OUT: %s is not empty", o.out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		refuse("OUT: %w", err)
	}
	if o.registry != "" && !o.dry && o.bundle == "" {
		refuse("REGISTRY: there is no bundle to push: set SLIPWAY_BUNDLE and SLIPWAY_BUNDLE_DIGEST")
	}
	if dir, digest, _ := strings.Cut(o.other, "@"); o.other != "" && (dir == "" || !bundle.IsDigest(digest)) {
		refuse("OTHER: %q is not of the form DIR@sha256:DIGEST", o.other)
	}
	var key crypto.Signer
	if o.key != "" {
		text, err := os.ReadFile(o.key)
		if err == nil {
			key, err = trust.PrivateKey(text)
		}
		if err != nil {
			refuse("KEY: %w", err)
		}
	}
	s, err := o.checkout(ctx, root, refuse)
	if err != nil {
		return nil, nil, err
	}
	if len(problems) > 0 {
		return nil, nil, refused(errors.Join(problems...))
	}
	return s, key, nil
}

// checkout looks at the commit, its tag and the changelog.
func (o *options) checkout(ctx context.Context, root string, refuse func(string, ...any)) (*source, error) {
	s := &source{root: root}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	seconds, err := git(ctx, root, "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the time of the commit %s: %w", commit, err)
	}
	s.at = time.Unix(unix, 0).UTC()
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	tags, err := git(ctx, root, "tag", "--points-at", "HEAD")
	if err != nil {
		return nil, err
	}
	if changes == "" {
		s.commit = commit
	} else if !o.dry {
		refuse("the checkout has changes that are in no commit:\n%s", changes)
	}
	if !o.dry && !slices.Contains(strings.Fields(tags), o.version) {
		refuse("the commit %.12s has no tag %s", commit, o.version)
	}
	const changelog = "CHANGELOG.md"
	text, err := os.ReadFile(filepath.Join(root, changelog))
	if err != nil {
		return nil, err
	}
	s.notes = section(string(text), o.version)
	if s.notes == "" && o.dry {
		s.notes = section(string(text), "")
	}
	if s.notes == "" && !o.dry {
		refuse("%s has no section \"## %s\" with text in it", changelog, strings.TrimPrefix(o.version, "v"))
	}
	return s, nil
}

// section returns the text below the heading of a version. The heading may have a v before the
// version and text after it: "## 1.2.3 - 2026-01-31", "## 1.2.3 (unreleased)". Without a
// version it returns the newest section; without such a section, nothing.
func section(changelog, version string) string {
	var text strings.Builder
	inside := false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			name, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			version = cmp.Or(version, name)
			inside = strings.TrimPrefix(name, "v") == strings.TrimPrefix(version, "v")
		} else if inside {
			text.WriteString(line)
		}
	}
	return strings.TrimSpace(text.String())
}

// git is what git prints, without the newline at its end.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}
