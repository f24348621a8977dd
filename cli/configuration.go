package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gonvenience/ytbx"
	"github.com/homeport/dyff/pkg/dyff"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/config/platform"
	reference "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// configCommand is `slipway config`: what is done with a configuration besides
// running it.
func configCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := &target{}
	configurationFlags(set, t)
	set.StringVarP(&t.name, "name", "n", "", "explain: name of the deployment; replaces the one in the configuration")
	set.StringVar(&t.state, "state", "", "explain: URL of the bucket with the deployment's state; replaces state.url")
	set.StringVar(&t.platform, "platform", "", "explain: directory of the platform release; replaces platform.release")
	output := set.StringP("output", "o", "text", `explain: format: "text" or "json"`)
	dry := set.Bool("dry-run", false, "migrate: show the changes and write nothing")
	return func(_ context.Context, io streams, args []string) error {
		if len(args) != 1 {
			return errUsage{errors.New("give migrate or explain")}
		}
		switch args[0] {
		case "migrate":
			return t.migrate(io, *dry)
		case "explain":
			if *output != "text" && *output != "json" {
				return errUsage{fmt.Errorf("--output is %q; give text or json", *output)}
			}
			return t.explain(io, *output == "json")
		}
		return errUsage{fmt.Errorf("there is no %q; give migrate or explain", args[0])}
	}
}

// codeBackup: a file is in the way where the original of a migrated configuration
// is kept.
const codeBackup fault.Code = "CFG-006"

// migrate writes the configuration as the current version of the schema has it, and
// keeps the original beside it. One that would not be valid then is left as it is.
func (t *target) migrate(io streams, dry bool) error {
	text, err := t.read(io)
	if err != nil {
		return err
	}
	if t.config == "" {
		return errUsage{errors.New("give --config FILE or --deployment NAME")}
	}
	file := t.fileName()
	migrated, changes, err := config.Migrate(text, file)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(io.err, "%s is of the current version, %s\n", file, config.APIVersion)
		if t.config == "-" && !dry {
			_, err = io.out.Write(text)
		}
		return err
	}
	if _, err := t.parse(text, func([]migrate.Change) {}); err != nil {
		return err
	}
	for _, c := range changes {
		fmt.Fprintf(io.err, "  %s\n", c)
	}
	if err := difference(io.err, file, text, migrated); err != nil {
		return err
	}
	switch {
	case dry:
		return nil
	case t.config == "-":
		_, err = io.out.Write(migrated)
		return err
	}
	backup, err := keepOriginal(t.config, text)
	if err != nil {
		return err
	}
	info, err := os.Stat(t.config)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.config, err)
	}
	if err := atomicfile.Write(t.config, migrated, info.Mode().Perm()); err != nil {
		return fmt.Errorf("write %s: %w", t.config, err)
	}
	fmt.Fprintf(io.out, "%s is now of version %s; the original is %s\n", t.config, config.APIVersion, backup)
	return nil
}

// keepOriginal writes text beside the file that it came from.
func keepOriginal(file string, text []byte) (string, error) {
	backup := file + ".orig"
	f := &fault.Fault{Code: codeBackup, Class: fault.Usage, Op: "keep the original in " + backup, Fix: "move that file away, then run the same command again"}
	switch there, err := os.ReadFile(backup); {
	case err == nil && !bytes.Equal(there, text):
		f.Err = errors.New("there is another file")
		return "", f
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		f.Err = err
		return "", f
	}
	if err := atomicfile.Write(backup, text, 0o600); err != nil {
		f.Err = err
		return "", f
	}
	return backup, nil
}

// difference shows what differs between two versions of a file.
func difference(w io.Writer, file string, before, after []byte) error {
	load := func(text []byte) (ytbx.InputFile, error) {
		docs, err := ytbx.LoadYAMLDocuments(text)
		return ytbx.InputFile{Location: file, Documents: docs}, err
	}
	from, err := load(before)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	to, err := load(after)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	report, err := dyff.CompareInputFiles(from, to)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	human := dyff.HumanReport{Report: report, OmitHeader: true}
	if err := human.WriteReport(w); err != nil {
		return fmt.Errorf("show the difference: %w", err)
	}
	return nil
}

// explain prints every effective value and where it came from.
func (t *target) explain(io streams, asJSON bool) error {
	cfg, err := t.load(io)
	if err != nil {
		return err
	}
	t.cfg = cfg
	all, err := cfg.Explain()
	if err != nil {
		return err
	}
	release, err := t.releaseHere()
	if err != nil {
		return err
	}
	if all, err = withRelease(all, cfg, release); err != nil {
		return err
	}
	if asJSON {
		return printJSON(io.out, all)
	}
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Path, s.Value, s.Origin)
	}
	return w.Flush()
}

// releaseHere reads the platform release without an engine.
func (t *target) releaseHere() (*platform.Release, error) {
	path := t.platform
	if path == "" && t.cfg.ReleaseIsPath() {
		path = t.releasePath()
	}
	if path == "" {
		fsys, err := reference.Release(t.cfg.Platform.Release)
		if err != nil {
			return nil, err
		}
		return platform.Load(fsys)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, &fault.Fault{Code: codeNoDirectory, Class: fault.Usage, Op: "open " + path,
			Fix: "give the path of a directory that exists", Err: errors.Join(err, errors.New("a platform release is a directory"))}
	}
	return platform.Load(os.DirFS(path))
}

// withRelease adds what the platform release decides: which components are on.
func withRelease(all []config.Setting, cfg *config.Config, release *platform.Release) ([]config.Setting, error) {
	off, err := release.Off(cfg.Choices())
	if err := errors.Join(err, release.Overrides(cfg.Overrides()), release.CheckSettings(cfg.Platform.Settings)); err != nil {
		return nil, err
	}
	for _, c := range release.Components {
		path := "platform.components." + c.Name + ".enabled"
		if slices.ContainsFunc(all, func(s config.Setting) bool { return s.Path == path }) {
			continue
		}
		origin := config.Origin(fmt.Sprintf("platform %s %s", release.Name, release.Version))
		all = append(all, config.Setting{Path: path, Value: strconv.FormatBool(!slices.Contains(off, c.Name)), Origin: origin})
	}
	slices.SortStableFunc(all, func(a, b config.Setting) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// releasePath is the directory that the configuration names as platform release:
// relative to the configuration's own.
func (t *target) releasePath() string {
	path := t.cfg.Platform.Release
	if t.config != "" && t.config != "-" && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(t.config), path)
	}
	return path
}

// tellMigrated says that a configuration was read as if it had been migrated.
func (t *target) tellMigrated(w io.Writer) func([]migrate.Change) {
	return func(changes []migrate.Change) {
		fmt.Fprintf(w, "slipway: %s is of an older version; it is read as if it were of %s:\n", t.fileName(), config.APIVersion)
		for _, c := range changes {
			fmt.Fprintf(w, "  %s\n", c)
		}
		which := "--config " + quoted(t.config)
		if t.byName {
			which = "--deployment " + t.deployment
		}
		fmt.Fprintf(w, "  slipway config migrate %s writes it so\n", which)
	}
}
