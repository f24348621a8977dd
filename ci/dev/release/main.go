// Command release makes a release of slipway out of the checkout: archives and Debian packages
// with completions, SBOMs, checksums, provenance and release notes.
// `make release` runs it, ci/README.md lists the files.
package main

import (
	"context"
	"crypto"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

func run(ctx context.Context, args []string, stderr io.Writer) int {
	r, err := parse(args, stderr)
	if err == nil {
		err = r.check(ctx)
	}
	if err != nil {
		fmt.Fprintln(stderr, "error: no release:", err)
		return int(fault.Usage)
	}
	if err := r.create(ctx, stderr); err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return int(fault.Step)
	}
	return int(fault.OK)
}

// release is what is released, of what, and where to.
type release struct {
	version string   // "v1.2.3"
	out     string   // the folder to make
	targets []string // GOOS/GOARCH
	keyFile string
	dry     bool

	root   string        // of the checkout
	commit string        // empty if the checkout has changes
	at     time.Time     // of the commit; every file of the release has this time
	notes  string        // the version's section of the changelog
	key    crypto.Signer // nil: nothing is signed
}

const host = runtime.GOOS + "/" + runtime.GOARCH

func parse(args []string, stderr io.Writer) (*release, error) {
	r := &release{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&r.version, "version", "", "the `VERSION` to release: the commit has this tag, and CHANGELOG.md a section")
	flags.StringVar(&r.out, "out", "dist", "`folder` to make")
	flags.StringVar(&r.keyFile, "key", "", "`file` with the private key that signs the provenance: PEM, ECDSA P-256 or Ed25519")
	flags.BoolVar(&r.dry, "dry", false, "try it: require neither a clean checkout nor tag and section")
	targets := flags.String("targets", host, "`systems` to build for: OS/ARCH …")
	err := flags.Parse(args)
	r.targets = strings.Fields(*targets)
	return r, err
}

// check finds out what is released, and reports every reason why there can be no release.
func (r *release) check(ctx context.Context) (err error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if semver.Canonical(r.version) != r.version || r.version == "" {
		problem("VERSION=%s is no semantic version such as v1.2.3 or v1.2.3-rc.1", r.version)
	}
	for _, t := range r.targets {
		if strings.Count(t, "/") != 1 {
			problem("TARGETS: %q is not of the form OS/ARCH", t)
		}
	}
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		problem("OUT: %s is not empty", r.out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problem("OUT: %w", err)
	}
	if r.keyFile != "" {
		text, err := os.ReadFile(r.keyFile)
		if err == nil {
			r.key, err = trust.PrivateKey(text)
		}
		if err != nil {
			problem("KEY: %w", err)
		}
	}
	if r.root == "" {
		if r.root, err = gotool.Checkout(); err != nil {
			return err
		}
	}
	var said [4]string
	for i, args := range []string{"rev-parse HEAD", "log -1 --format=%ct", "status --porcelain", "tag --points-at HEAD"} {
		git := exec.CommandContext(ctx, "git", strings.Fields(args)...)
		git.Dir = r.root
		out, err := git.Output()
		if err != nil {
			return fmt.Errorf("git %s: %w", args, err)
		}
		said[i] = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(said[1], 10, 64)
	if err != nil {
		return err
	}
	r.at = time.Unix(seconds, 0).UTC()
	if said[2] == "" {
		r.commit = said[0]
	} else if !r.dry {
		problem("the checkout has changes that are in no commit:\n%s", said[2])
	}
	if !r.dry && !slices.Contains(strings.Fields(said[3]), r.version) {
		problem("the commit %.12s has no tag %s", said[0], r.version)
	}
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	r.notes = section(string(text), r.version)
	switch {
	case r.notes == "" && r.dry:
		r.notes = section(string(text), "")
	case r.notes == "":
		problem("CHANGELOG.md has no section \"## %s\" with text in it", r.number())
	}
	return errors.Join(problems...)
}

// section returns the text below the heading of a version, "## 1.2.3" and perhaps more, or, for
// "", of the newest one.
func section(changelog, version string) string {
	for part := range strings.SplitSeq("\n"+changelog, "\n## ") {
		heading, text, _ := strings.Cut(part, "\n")
		name, _, _ := strings.Cut(heading, " ")
		if name != "" && (version == "" || strings.TrimPrefix(name, "v") == strings.TrimPrefix(version, "v")) {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// number is the version without its v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }
