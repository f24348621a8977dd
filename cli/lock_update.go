package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/output"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/lock/update"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type lockUpdateOptions struct{ file, platform string }

func newLockUpdate() *cobra.Command {
	var o lockUpdateOptions
	cmd := &cobra.Command{
		Use: "update", Short: "Find public sources of images that a lock.yaml lacks", Args: noArgs, RunE: atOnce(o.run),
	}
	output.Regular(cmd.Flags(), &o.file, "file", "containers/lock/lock.yaml", "the lock.yaml to complete")
	cmd.Flags().StringVar(&o.platform, "platform", "linux/amd64", "linux/amd64 or linux/arm64")
	return cmd
}

// run enters what two public sources agree on, and says what it could not
// find out. The file changes only when something was found.
func (o *lockUpdateOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	text, err := bounded.File(o.file, bounded.Written)
	if err != nil {
		return &fault.Fault{Code: lock.CodeFile, Class: fault.Usage, Op: "read the lock", Err: err,
			Fix: "give the path of a lock.yaml: slipway lock update --file containers/lock/lock.yaml"}
	}
	unusable := func(op string, err error) error {
		return &fault.Fault{Code: lock.CodeFile, Class: fault.Usage, Op: op + " " + o.file, Err: err,
			Fix: "correct the file, or give another lock.yaml that you may write: slipway lock update --file PATH"}
	}
	pins, err := lock.Parse(text)
	if err != nil {
		return unusable("read", err)
	}
	findings, err := update.Public().Resolve(ctx, pins, o.platform)
	if err != nil {
		return err
	}
	entered := 0
	for _, f := range findings {
		if f.Problem != "" {
			fmt.Fprintf(io.Text(), "%s: not entered: %s\n", f.Name, f.Problem)
			continue
		}
		entered++
		fmt.Fprintf(io.Text(), "%s: %s %s\n", f.Name, f.Place, f.Digest)
	}
	if entered == 0 {
		fmt.Fprintf(io.Text(), "%s is left as it is\n", o.file)
		return nil
	}
	text, err = update.Enter(text, findings)
	if err != nil {
		return unusable("complete", err)
	}
	if err := atomicfile.Write(o.file, text, 0o644); err != nil {
		return unusable("write", err)
	}
	return nil
}
