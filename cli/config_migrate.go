package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/diff"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type migrateOptions struct {
	source  source.Source
	release release.Flags
	from    string
	to      string
	dry     bool
}

func newConfigMigrate(p *Program) *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{Use: "migrate", Short: "Update a configuration to the current version, or to another platform release", Example: `  slipway config migrate --config slipway.yaml --dry-run
  slipway config migrate --config slipway.yaml --to 2.0.0`, Args: noArgs, RunE: atOnce(o.run),
		Long: `Update a configuration to the current version of its schema, and keep the original beside it.

With --to or --platform its settings also get the names that they have in that platform release.
--from is needed only where the configuration does not name the release that it was written for.`}
	addSource(cmd, p, &o.source)
	o.release.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.to, "to", "", "version of the platform release that the configuration will be for")
	cmd.Flags().StringVar(&o.from, "from", "", "version of the platform release that it was written for")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show the changes and write nothing")
	return cmd
}

// codeBackup: a file is in the way of the backup of a migrated configuration.
const codeBackup fault.Code = "CFG-006"

// codeNewerFile: a configuration was written for a newer release than it is to be migrated to.
const codeNewerFile fault.Code = "CFG-042"

// run writes the configuration as the current version of the schema has it, or a release, and
// keeps the original beside it. One that would not be valid then is left as it is.
func (o *migrateOptions) run(_ context.Context, io console.Streams, _ []string) error {
	text, err := o.source.Read(io)
	if err != nil {
		return err
	}
	if o.source.File == "" {
		return usage.Errorf("give --config FILE, or --name NAME of a stored configuration")
	}
	file := o.source.FileName()
	migrated, changes, state, err := o.migrate(text, file)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(io.Err, "%s is of %s\n", file, state)
		if o.source.File == "-" && !o.dry {
			_, err = io.Out.Write(text)
		}
		return err
	}
	for _, c := range changes {
		fmt.Fprintf(io.Err, "  %s\n", c)
	}
	if err := diff.YAML(io.Err, file, text, migrated); err != nil {
		return err
	}
	switch {
	case o.dry:
		return nil
	case o.source.File == "-":
		_, err = io.Out.Write(migrated)
		return err
	}
	backup, err := keepOriginal(o.source.File, text)
	if err != nil {
		return err
	}
	if err := atomicfile.Overwrite(o.source.File, migrated, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", o.source.File, err)
	}
	fmt.Fprintf(io.Text(), "%s is now of %s; the original is %s\n", o.source.File, state, backup)
	return nil
}

// migrate returns the configuration as it is to be, what changed, and what it is then of:
// "version slipway.sh/v1", "release 2.0.0".
func (o *migrateOptions) migrate(text []byte, file string) (migrated []byte, changes []migrate.Change, state string, err error) {
	quiet := func([]migrate.Change) {}
	if o.to == "" && o.release.Dir == "" {
		state = "the current version, " + config.APIVersion
		if migrated, changes, err = config.Migrate(text, file); err == nil && len(changes) > 0 {
			state = "version " + config.APIVersion
			_, err = o.source.Parse(text, quiet)
		}
		return migrated, changes, state, err
	}
	cfg, err := o.source.Parse(text, quiet)
	if err != nil {
		return nil, nil, "", err
	}
	written, named := cmp.Or(o.from, cfg.WrittenFor()), cfg.Platform.Release
	o.release.Choose(cfg, o.to)
	r, err := o.release.Load(cfg, o.source.Path)
	if err == nil {
		err = o.release.CheckVersion(cfg, r, o.to)
	}
	if err != nil {
		return nil, nil, "", err
	}
	if platform.Older(r.Version, written) {
		return nil, nil, "", &fault.Fault{
			Code: codeNewerFile, Class: fault.Usage, Op: "migrate " + file + " to release " + r.Version, Err: errors.New("it was written for release " + written + ", which is newer"),
			Fix: "name that release or a newer one: --to VERSION; if the file was written for another one than it names: --from VERSION",
		}
	}
	if o.from == "" && errors.Is(r.Fits(cfg), &fault.Fault{Code: platform.CodeOutdated}) {
		written = "" // whatever it says
	}
	names := ""
	if cfg.Platform.Release != named {
		names = cfg.Platform.Release
	}
	if migrated, changes, err = config.UpgradeFile(text, file, r.Since(written), names); err != nil {
		return nil, nil, "", err
	}
	if cfg, err = o.source.Parse(migrated, quiet); err == nil {
		err = r.Fits(cfg)
	}
	return migrated, changes, "release " + r.Version, err
}

// keepOriginal writes text beside the file that it came from, which a link may lead to.
func keepOriginal(file string, text []byte) (string, error) {
	file, err := atomicfile.Target(file)
	if err != nil {
		return "", usage.Wrap(err)
	}
	backup := file + ".orig"
	f := &fault.Fault{Code: codeBackup, Class: fault.Usage, Op: "keep the original in " + backup, Fix: "move that file away, then run the same command again"}
	if _, err := atomicfile.Target(backup); err != nil {
		f.Err = err
		return "", f
	}
	switch there, err := bounded.File(backup, bounded.Written); {
	case err == nil && !bytes.Equal(there, text):
		f.Err = errors.New("there is another file")
		return "", f
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		f.Err = err
		return "", f
	}
	if err := atomicfile.Write(backup, text, 0o600); err != nil {
		f.Err, f.Fix = err, "make the folder of the configuration writable, then run the same command again"
		return "", f
	}
	return backup, nil
}
