package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/cli/skeleton"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type platformInitOptions struct{ name string }

func newPlatformInit() *cobra.Command {
	var o platformInitOptions
	cmd := &cobra.Command{
		Use: "init DIR", Short: "Create a small platform release that installs as it is", Example: `  slipway platform init shop`,
		Long: `Create a platform release to begin with, in a directory that does not exist or is empty:
platform.yaml, in which comments say what is what, and the files that it names. It has a
component of manifests with a gate, one that is a chart, and a job after both, and installs
as it is, with images that every bundle has.

docs/platforms.md, in the repository, says how to go on from there.`,
		Args: takes(1, 1, "give the directory of the new platform release"), RunE: atOnce(o.run),
	}
	cmd.Flags().StringVar(&o.name, "name", "", "name of the platform and of its namespace; default: the directory's name")
	return cmd
}

func (o *platformInitOptions) run(_ context.Context, io console.Streams, args []string) error {
	dir := args[0]
	name, err := o.platformName(dir)
	if err != nil {
		return err
	}
	files, err := skeleton.Release(name)
	if err != nil {
		return err
	}
	err = skeleton.Write(dir, files)
	if full, ok := errors.AsType[*skeleton.NotEmpty](err); ok {
		return usage.Errorf("%s holds %s; give a directory that does not exist or is empty", dir, full.Holds)
	}
	if err != nil {
		return &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: "write the platform release " + dir, Err: err,
			Fix: "choose another directory, or make that one writable for you, then run again: slipway platform init DIR"}
	}
	fmt.Fprintf(io.Text(), "%s is the platform release %s; %s says what it installs\n\nNext:\n  slipway validate --platform %[4]s\n  slipway install --platform %[4]s --name %[5]s\n",
		dir, name, filepath.Join(dir, platform.File), fault.Quote(dir), fault.Quote(deploymentName(name)))
	return nil
}

// deploymentName is one for a deployment of its own, beside those that there are.
func deploymentName(platform string) string {
	if config.IsName(platform) {
		return platform
	}
	return "my-platform"
}

// platformName is the name that the platform gets.
func (o *platformInitOptions) platformName(dir string) (string, error) {
	name, from := o.name, "--name is"
	if name == "" {
		path, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		name, from = filepath.Base(path), "the directory's name is"
	}
	if want := platform.NamespaceWant(name); want != "" {
		return "", usage.Errorf("%s %q, want %s: slipway platform init DIR --name NAME", from, name, want)
	}
	return name, nil
}
