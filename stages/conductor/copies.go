package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Copies are copies of a deployment's state where no clean-up of an engine reaches them.
type Copies interface {
	// Newest is the newest one that was taken on this engine or, without one, on another; nil
	// if there is none.
	Newest() (*Kept, error)
	// Keep has write write a copy to a folder, and keeps it unless it is older than the one
	// that there is. have identifies the backups that need not be written again; a copy that
	// names others and is written without them gets those that there are.
	Keep(write func(dir, have string) error) error
	// Remove removes those that were taken on this engine, and names what it has left beside
	// them because it does not know whose that is.
	Remove() (left []string, err error)
}

// Kept is a copy that is kept.
type Kept struct {
	*contract.Copy
	Dir    string // has its files
	Engine string // on which it was taken; empty: this one
}

// BadCopy is the fault of a copy that cannot be used.
func BadCopy(dir string, err error) error {
	return &fault.Fault{
		Code: contract.CodeCopy, Class: fault.Preflight, Op: "restore the deployment's state from the copy in " + dir, Err: err,
		Fix: "put a backup of that folder in its place; or move it away, then run again, for a new deployment with new secrets: slipway install",
	}
}

// copier takes copies for a run; a nil one takes none. Its methods may be called concurrently.
type copier struct {
	records *Records
	run     string
	say     func(string) // may be nil

	mu      sync.Mutex // of one copy at a time
	begun   sync.WaitGroup
	fails   error             // of the last copy; nil: it was taken
	backups *dagger.Directory // the last copy with the backups that it is kept without; nil: it lacks none
}

// How long a copy may take: of the state, while the run has the lock; and of the backups, once it
// has given that up. 256 MiB of backups come over 4 Mbit/s in that time.
const (
	copyLimit    = 2 * time.Minute
	backupsLimit = 10 * time.Minute
)

// The causes of contexts in which a copy took too long.
var (
	errCopyTime    = fmt.Errorf("the state did not come within %s", copyLimit)
	errBackupsTime = fmt.Errorf("they did not come within %s", backupsLimit)
)

// take takes a copy, but for backups that are new. That it could not be taken fails no run.
func (c *copier) take(ctx context.Context) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, copyLimit, errCopyTime)
	defer cancel()
	c.backups = nil
	c.fails = c.records.copies.Keep(func(dir, have string) error {
		e := c.records.looking(containers.Exec{Args: []string{"slipway", "state", "copy", contract.CopyOut, have, "--run", c.run}})
		done, out, err := c.records.deployment.ExecDirectory(ctx, e, contract.CopyOut)
		if err == nil {
			err = ended(e.Args, done)
		}
		if err == nil {
			err = c.records.deployment.Export(ctx, out.WithoutFile(contract.CopyBackupsFile), dir)
		}
		if err != nil {
			return err
		}
		if lacks, err := lacksBackups(dir); err != nil || !lacks {
			return err
		}
		c.backups = out
		return nil
	})
}

// lacksBackups reports whether the copy in a folder names a file of backups that is not there.
func lacksBackups(dir string) (bool, error) {
	text, err := bounded.File(filepath.Join(dir, contract.CopyFile), bounded.Generated)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // of a deployment that has no identity yet there is no copy
	}
	var c contract.Copy
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	_, named := c.Files[contract.CopyBackupsFile]
	return named, err
}

// rest completes the last copy by its backups, which needs no lock: they were put together when
// the run had it. It returns why it could not.
func (c *copier) rest(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.backups == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, backupsLimit, errBackupsTime)
	defer cancel()
	size, err := c.backups.File(contract.CopyBackupsFile).Size(ctx)
	if err == nil {
		if c.say != nil {
			c.say(fmt.Sprintf("copying the backups of the platform's data to this machine: %.1f MiB, for %s at most", float64(size)/(1<<20), backupsLimit))
		}
		err = c.records.copies.Keep(func(dir, _ string) error { return c.records.deployment.Export(ctx, c.backups, dir) })
	}
	if err != nil {
		return fmt.Errorf("the copy of the deployment's state is without its newest backups: %w", err)
	}
	return nil
}

// after returns observe, which also begins to take a copy once what is generated is in the
// state, if any of that is new.
func (c *copier) after(ctx context.Context, graph []pipeline.Node, observe func(pipeline.Event)) func(pipeline.Event) {
	if c == nil {
		return observe
	}
	steps := []pipeline.Key{contract.SecretsStep().Key, contract.TLSStep().Key}
	wait, did := 0, false
	for _, n := range graph {
		if slices.Contains(steps, n.Key) {
			wait++
		}
	}
	return func(e pipeline.Event) { // one call at a time
		if observe != nil {
			observe(e)
		}
		if !slices.Contains(steps, e.Result.Key) || !e.Status.OK() {
			return
		}
		wait--
		if did = did || e.Status == pipeline.Succeeded; did && wait == 0 {
			c.begun.Go(func() { c.take(ctx) })
		}
	}
}

// last takes the copy at the end of a run, and returns why it could not be taken.
func (c *copier) last(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.begun.Wait()
	c.take(ctx)
	if c.fails == nil {
		return nil
	}
	return fmt.Errorf("the copy of the deployment's state could not be taken: %w", c.fails)
}

// open has the run, which has the lock, find out what the state knows. A state that the engine
// has thrown away is restored from a copy. Without the cluster only an install and a destroy go
// on.
func (r *run) open(ctx context.Context) error {
	if r.workflow.Tries && r.opts.Caller.Join {
		_, _, err := r.recover(ctx, true)
		return err
	}
	if !installs(r.workflow.Name) && !r.workflow.Removes {
		return nil
	}
	now, restored, err := r.recover(ctx, true)
	if err != nil {
		return err
	}
	if now.Removed && r.opts.Copies != nil { // somebody else's destroy has left them
		if err := r.removeCopies(); err != nil {
			r.warn(err.Error())
		}
	}
	r.past = now.Phases
	return r.judge(now, restored)
}

// removeCopies removes the copies of what was removed, and warns of what it has left.
func (c *Conductor) removeCopies() error {
	left, err := c.opts.Copies.Remove()
	for _, what := range left {
		c.warn("left among the copies of deployment " + c.name + ", as it is not known whose it is: " + what)
	}
	return err
}

// warn is Options.Warn.
func (c *Conductor) warn(text string) {
	if c.opts.Warn != nil {
		c.opts.Warn(text)
	}
}

// recover is what the state knows, which is restored from a copy if the engine has thrown it
// away. Without a copy, a deployment of which nothing is known gets an identity if begins; then
// it is noted, too, whose the deployment is.
func (r *run) recover(ctx context.Context, begins bool) (now contract.Opened, restored bool, err error) {
	kept, bad := r.Records.copied()
	const at = "/slipway/opened.json"
	flags := append(r.who(), "--workflow", r.workflow.Name)
	if !begins {
		flags = append(flags, "--unclaimed")
	}
	args := append([]string{"slipway", "state", "open", at, "--deployment", r.name}, flags...)
	if kept != nil || bad != nil || !begins {
		args = append(args, "--no-identity")
	}
	over, err := r.over()
	if err != nil {
		return now, false, err
	}
	if err := r.commands.result(ctx, r.looking(containers.Exec{Args: append(args, over...), Result: at}), &now); err != nil {
		return now, false, err
	}
	if now.Identity == nil && bad != nil {
		return now, false, bad
	}
	if now.Identity == nil && kept != nil {
		if err := r.restore(ctx, kept, at, &now, flags); err != nil {
			return now, false, err
		}
		restored = true
	}
	return now, restored, nil
}

// over are the flags that say what the run is to bring over what is installed; none where the
// records do not tell what that is, as of a cluster that others run, or where only the cluster
// can, as of a rollback.
func (r *run) over() ([]string, error) {
	release := r.opts.Release
	if !r.node || release == nil || r.workflow.Name != config.Install && r.workflow.Name != config.Upgrade {
		return nil, nil
	}
	text, err := json.Marshal(contract.Over{
		Platform: release.Name, Version: release.Version, UpgradableFrom: release.UpgradableFrom, Data: len(release.Data) > 0,
		Upgrade: r.workflow.Name == config.Upgrade, Change: r.inputs.Change,
	})
	return []string{"--over", string(text)}, err
}

// who are the flags that say whose run it is.
func (r *run) who() []string {
	return []string{"--user", r.opts.User, "--host", r.opts.Host, "--run", r.steps.requests.run}
}

// restore restores the state from a copy.
func (r *run) restore(ctx context.Context, kept *Kept, at string, now *contract.Opened, flags []string) error {
	files := []string{contract.CopyFile}
	for _, f := range kept.Files {
		files = append(files, f.Name)
	}
	slices.Sort(files)
	dir := r.opts.Client.Host().Directory(kept.Dir, dagger.HostDirectoryOpts{Include: files, NoCache: true})
	e := containers.Exec{
		Args: append([]string{"slipway", "state", "restore", at, contract.CopyDir}, flags...), Result: at,
		Directories: map[string]*dagger.Directory{contract.CopyDir: dir},
	}
	err := r.commands.result(ctx, r.looking(e), now)
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == contract.CodeCopy {
		return BadCopy(kept.Dir, f.Err)
	}
	return err
}
