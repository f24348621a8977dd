package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/diff"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type migrateOptions struct {
	source source.Source
	dry    bool
}

func newConfigMigrate(p *Program) *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{Use: "migrate", Short: "Update a configuration to the current version", Example: `  slipway config migrate --config slipway.yaml --dry-run`, Args: noArgs, RunE: atOnce(o.run),
		Long: "Update a configuration to the current version of its schema, and keep the original beside it."}
	addSource(cmd, p, &o.source)
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show the changes and write nothing")
	return cmd
}

// codeBackup: a file is in the way of the backup of a migrated configuration.
const codeBackup fault.Code = "CFG-006"

// run writes the configuration as the current version of the schema has it, and keeps the
// original beside it. If it would not be valid then, run leaves it as it is.
func (o *migrateOptions) run(_ context.Context, io console.Streams, _ []string) error {
	text, err := o.source.Read(io)
	if err != nil {
		return err
	}
	if o.source.File == "" {
		return usage.Errorf("give --config FILE, or --name NAME of a stored configuration")
	}
	file := o.source.FileName()
	migrated, changes, err := config.Migrate(text, file)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(io.Err, "%s is of the current version, %s\n", file, config.APIVersion)
		if o.source.File == "-" && !o.dry {
			_, err = io.Out.Write(text)
		}
		return err
	}
	if _, err := o.source.Parse(text, nil); err != nil {
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
	fmt.Fprintf(io.Text(), "%s is now of version %s; the original is %s\n", o.source.File, config.APIVersion, backup)
	return nil
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
