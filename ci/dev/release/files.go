package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/sbom"
	"github.com/slipway-sh/slipway/containers/trust"
)

// lockFile is the name of the lock file of the Dagger module, which is in ci.
const lockFile = "slipway.lock.json"

// create makes the release in a new folder, which takes the place of OUT when it is complete.
func (r *release) create(ctx context.Context, stderr io.Writer) (err error) {
	if err := os.MkdirAll(filepath.Dir(r.out), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(r.out), filepath.Base(r.out)+".new-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	dir := filepath.Join(work, "dist")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	_, digest, err := gotool.Sources(ctx, r.root)
	if err != nil {
		return err
	}
	programs := map[string]string{} // files, by system
	for _, system := range append(r.targets, host) {
		if programs[system] != "" {
			continue
		}
		fmt.Fprintln(stderr, "compiling slipway for", system)
		programs[system] = filepath.Join(work, strings.ReplaceAll(system, "/", "_"), "slipway")
		err := gotool.Command{
			Name: "slipway for " + system, Module: r.root, Package: ".", System: system,
			LDFlags: []string{"-s", "-w", "-X", "main.version=" + r.version, "-X", "main.source=" + digest},
		}.Compile(ctx, programs[system])
		if err != nil {
			return err
		}
	}
	own := programs[host]
	maps.DeleteFunc(programs, func(system, _ string) bool { return !slices.Contains(r.targets, system) })
	if err := r.write(ctx, work, dir, own, programs); err != nil {
		return err
	}
	if err := r.lock(dir, digest, stderr); err != nil {
		return err
	}
	if err := r.attest(ctx, dir, digest, programs); err != nil {
		return err
	}
	if r.key == nil {
		fmt.Fprintln(stderr, "warning: nothing is signed, and there is no provenance: there is no KEY")
	}
	if err := os.Remove(r.out); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is empty
		return err
	}
	return os.Rename(dir, r.out)
}

// lock puts the commit's lock file, by which the Dagger module finds its images, into the folder
// dir, and its signature; both may be missing. The bundles in it must have the program that is
// released, whose sources have this digest.
func (r *release) lock(dir, digest string, stderr io.Writer) error {
	from := filepath.Join(r.root, "ci", lockFile)
	f, _, err := lock.Read(from)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "warning: the commit has no ci/%s: dagger call -m URL@%s needs --lock\n", lockFile, r.version)
		return nil
	}
	if err != nil {
		return err
	}
	for _, platform := range f.Platforms() {
		pushed := bundle.Bundle{Index: f.Bundles[platform].Index}
		if program, _ := pushed.Tool("slipway"); program.Origin != "source:"+digest {
			return fmt.Errorf("ci/%s has a bundle for %s with another program: push that of this checkout, and commit and tag the lock file that this writes", lockFile, platform)
		}
	}
	signature := filepath.Join(dir, lockFile+trust.Suffix)
	if err := build.CopyFile(signature, from+trust.Suffix, 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return build.CopyFile(filepath.Join(dir, lockFile), from, 0o644)
}

// write writes what is made of the programs, by system, to the folder dir. own is the program for
// this machine.
func (r *release) write(ctx context.Context, work, dir, own string, programs map[string]string) error {
	texts := map[string]string{"LICENSE": filepath.Join(r.root, "LICENSE"), "README.md": filepath.Join(r.root, "README.md")}
	completions := filepath.Join(work, "completions")
	if err := os.Mkdir(completions, 0o755); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "slipway.bash", "zsh": "_slipway", "fish": "slipway.fish", "powershell": "slipway.ps1"} {
		cmd := exec.CommandContext(ctx, own, "completion", shell)
		cmd.Env = []string{"LC_ALL=C.UTF-8"} // variables are defaults of flags
		script, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("slipway completion %s: %w", shell, err)
		}
		texts["completions/"+name] = filepath.Join(completions, name)
		if err := os.WriteFile(texts["completions/"+name], script, 0o644); err != nil {
			return err
		}
	}
	for system, program := range programs {
		name, inside, suffix := "slipway_"+r.number()+"_"+strings.ReplaceAll(system, "/", "_"), "slipway", ".tar.gz"
		if strings.HasPrefix(system, "windows/") {
			inside, suffix = "slipway.exe", ".zip"
		}
		files := maps.Clone(texts)
		files[inside] = program
		if err := r.archive(filepath.Join(dir, name+suffix), name, files); err != nil {
			return err
		}
		build, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		sum, err := bundle.Sum(ctx, program)
		if err != nil {
			return err
		}
		list, err := sbom.Program(r.version, sum, build)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".cdx.json"), list, 0o644); err != nil {
			return err
		}
		if arch, ok := strings.CutPrefix(system, "linux/"); ok {
			if err := r.debianPackage(ctx, filepath.Join(dir, "slipway_"+r.number()+"_"+arch+".deb"), arch, program, completions); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, "notes.md"), []byte(r.notes+"\n"), 0o644)
}

// archive writes files, by name in the folder, into an archive: sorted, of one time and of no
// owner, so that the same files are the same bytes on any machine.
func (r *release) archive(name, folder string, files map[string]string) (err error) {
	all := fstest.MapFS{}
	for _, dir := range []string{folder, folder + "/completions"} {
		all[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: r.at}
	}
	for inside, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(inside, "slipway") {
			mode = 0o755
		}
		all[folder+"/"+inside] = &fstest.MapFile{Data: text, Mode: mode, ModTime: r.at}
	}
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if strings.HasSuffix(name, ".zip") {
		w := zip.NewWriter(out)
		return errors.Join(w.AddFS(all), w.Close())
	}
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)
	return errors.Join(w.AddFS(all), w.Close(), compressed.Close())
}

func (r *release) debianPackage(ctx context.Context, name, arch, program, completions string) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "nfpm", "package", "--config", filepath.Join(r.root, "ci/dev/release/nfpm.yaml"), "--packager", "deb", "--target", name)
	cmd.Dir = filepath.Join(r.root, "ci/dev/nfpm")
	cmd.Env = append(os.Environ(), "VERSION="+r.version, "ARCH="+arch, "PROGRAM="+program, "COMPLETIONS="+completions, "ROOT="+r.root,
		fmt.Sprint("SOURCE_DATE_EPOCH=", r.at.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the package for %s: %w: %s", arch, err, out)
	}
	return nil
}

// attest writes checksums.txt, which sha256sum -c reads, about all files in the folder dir, and
// their provenance: what the programs, by system, were built from. It names the commit only if
// that is all that they were built from.
func (r *release) attest(ctx context.Context, dir, digest string, programs map[string]string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var sums strings.Builder
	var subjects []trust.Subject
	for _, e := range entries {
		sum, err := bundle.Sum(ctx, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, e.Name())
		subjects = append(subjects, trust.Subject{Name: e.Name(), Digest: map[string]string{"sha256": sum}})
	}
	goVersion := ""
	for _, program := range programs { // all of one toolchain
		build, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		goVersion = build.GoVersion
	}
	from := []trust.Dependency{trust.Sources(digest)}
	if r.commit != "" {
		from = append([]trust.Dependency{{URI: "git+https://github.com/slipway-sh/slipway", Digest: map[string]string{"gitCommit": r.commit}}}, from...)
	}
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(sums.String()), 0o644); err != nil || r.key == nil {
		return err
	}
	text, err := trust.Statement[map[string]any]{
		Type: trust.StatementType, Subject: subjects, PredicateType: trust.ProvenanceType,
		Predicate: map[string]any{
			"buildDefinition": map[string]any{
				"buildType":            "https://slipway.sh/release/v1",
				"externalParameters":   map[string]any{"version": r.version, "targets": r.targets, "dry": r.dry},
				"internalParameters":   map[string]any{"go": []string{goVersion}, "sourceDateEpoch": r.at.Unix()},
				"resolvedDependencies": from,
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "https://slipway.sh/make-release"}},
		},
	}.Sign(r.key)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "slipway_"+r.number()+".provenance.sigstore.json"), text, 0o644)
}
