package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/configure"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

func newConfigure(p *Program) *cobra.Command {
	var c configure.Command
	cmd := &cobra.Command{
		Use: "configure", Short: "Write a configuration, from a form or from given answers", Example: `  slipway configure   # a form
  slipway configure --name shop --set global.scale=100`, Long: configure.Long,
		Args: usage.NoArgs, RunE: console.Run("stopping", func(ctx context.Context, io console.Streams, _ []string) error { return c.Run(ctx, io) }),
	}
	c.AddFlags(cmd, p)
	return cmd
}

func newSchema(p *Program) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of the configuration", Example: `  slipway schema > config.schema.json`, Args: usage.NoArgs,
		RunE: console.AtOnce(func(_ context.Context, io console.Streams, _ []string) error {
			text, err := config.Schema(p.Providers.Sections())
			if err == nil {
				_, err = io.Out.Write(text)
			}
			return err
		}),
	}
}

func newConfigExplain(p *Program) *cobra.Command {
	var from source.Local
	var as console.Format
	cmd := &cobra.Command{
		Use: "explain", Short: "Show each value and where it comes from", Example: `  slipway config explain --config slipway.yaml`, Args: usage.NoArgs,
		RunE: console.AtOnce(func(_ context.Context, streams console.Streams, _ []string) error {
			cfg, r, err := from.Load(streams)
			if err != nil {
				return err
			}
			all, err := cfg.Explain()
			if err == nil {
				all, err = source.Settings(all, cfg, r)
			}
			if err != nil {
				return err
			}
			return as.Print(streams.Out, all, func(out io.Writer) error { return listSettings(out, all) })
		}),
	}
	from.Declare(cmd, p)
	from.Source.AddState(cmd.Flags())
	as.AddFlag(cmd.Flags())
	return cmd
}

// listSettings prints a line per value.
func listSettings(out io.Writer, all []config.Setting) error {
	w := console.NewTable(out)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Path, s.Value, s.Origin)
	}
	return w.Flush()
}

type migrateOptions struct {
	source source.Source
	dry    bool
}

func newConfigMigrate(p *Program) *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{Use: "migrate", Short: "Update a configuration to the current version", Example: `  slipway config migrate --config slipway.yaml --dry-run`, Args: usage.NoArgs, RunE: console.AtOnce(o.run),
		Long: "Update a configuration to the current version of its schema, and keep the original beside it."}
	o.source.Declare(cmd, p)
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show the changes and write nothing")
	return cmd
}

// codeBackup: a file is in the way of the backup of a migrated configuration.
const codeBackup fault.Code = "CFG-006"

// run writes the migrated configuration if it is valid, and keeps the original.
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
	if err := console.Diff(io.Err, file, text, migrated); err != nil {
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

// keepOriginal writes text beside its file, after following links, and replaces no other file.
func keepOriginal(file string, text []byte) (string, error) {
	file, err := atomicfile.Target(file)
	if err != nil {
		return "", usage.Wrap(err)
	}
	backup := file + ".orig"
	there, err := bounded.File(backup, bounded.Written)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = atomicfile.Write(backup, text, 0o600)
	case err == nil && !bytes.Equal(there, text):
		err = errors.New("there is another file")
	}
	if err != nil {
		return "", &fault.Fault{Code: codeBackup, Class: fault.Usage, Op: "keep the original in " + backup, Err: err,
			Fix: "move that file away, or make the folder writable, then run the same command again"}
	}
	return backup, nil
}
