package conductor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/stages/contract"
)

// SaveCluster writes what the deployment's own cluster has on its volume to a file of this
// machine, which appears when it is whole. The cluster must not run.
func (c *Conductor) SaveCluster(ctx context.Context, file string) error {
	const what = "save the cluster"
	if _, err := c.get(); err != nil {
		return err
	}
	if err := c.Cluster.installed(ctx, what); err != nil {
		return err
	}
	file, err := filepath.Abs(file)
	if err == nil {
		file, err = atomicfile.Target(file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return c.underLock(ctx, what, func(ctx context.Context, r *run) (err error) {
		e := r.looking(containers.Exec{Args: []string{"slipway", "state", "save-cluster", contract.ClusterOut, "--run", r.steps.requests.run, "--deployment", c.name}})
		done, out, err := c.commands.deployment.ExecDirectory(ctx, e, contract.ClusterOut)
		if err == nil {
			err = ended(e.Args, done)
		}
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp(filepath.Dir(file), ".slipway-cluster-")
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if err := c.commands.deployment.Export(ctx, out, dir); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		saved := filepath.Join(dir, contract.ClusterFile)
		f, err := os.OpenFile(saved, os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := errors.Join(f.Chmod(0o600), f.Sync(), f.Close()); err != nil { // the engine may go next
			return fmt.Errorf("%s: %w", what, err)
		}
		return os.Rename(saved, file)
	})
}

// RestoreCluster puts what SaveCluster wrote onto the volume of the deployment's own cluster,
// which must not run. A cluster that is there is replaced only with force.
func (c *Conductor) RestoreCluster(ctx context.Context, file string, force bool) error {
	const what = "restore the cluster"
	if _, err := c.get(); err != nil {
		return err
	}
	file, err := filepath.Abs(file)
	if err == nil {
		file, err = filepath.EvalSymlinks(file) // Dagger would take the link for the file
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return c.underLock(ctx, what, func(ctx context.Context, r *run) error {
		args := append([]string{"slipway", "state", "restore-cluster", contract.ClusterIn + "/" + filepath.Base(file), "--deployment", c.name}, r.who()...)
		if force {
			args = append(args, "--force")
		}
		dir := c.opts.Client.Host().Directory(filepath.Dir(file), dagger.HostDirectoryOpts{Include: []string{pattern(filepath.Base(file))}, NoCache: true})
		_, err := c.commands.exec(ctx, r.looking(containers.Exec{Args: args, Directories: map[string]*dagger.Directory{contract.ClusterIn: dir}}))
		return err
	})
}

// pattern is a pattern of Dagger's that matches a file of that name: one character may be any
// other where patterns have a meaning for it, which nothing takes away on every system.
func pattern(name string) string { return special.ReplaceAllString(name, "?") }

var special = regexp.MustCompile(`[^\pL\pN._-]`)
