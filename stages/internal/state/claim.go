package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/versions"
	"github.com/slipway-sh/slipway/stages/contract"
)

// engineFile, in the volume, tells the engine from others that work on the deployment, where
// the state is in a bucket.
const engineFile = "engine"

// claims is whose the deployment is.
func claims() versions.Value { return versions.Value{Prefix: "claims/", Suffix: ".json"} }

// ClaimOf says whose the deployment in s is; the zero value where nobody has worked on it, or
// only an earlier version.
func ClaimOf(ctx context.Context, s *store.Store) (contract.Claim, error) {
	c, err := newest[contract.Claim](ctx, s, claims(), nil)
	if c == nil {
		c = &contract.Claim{}
	}
	return *c, err
}

// caller is who works on the deployment.
func (p Place) caller() (c contract.Caller, err error) {
	if p.Caller == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(p.Caller), &c); err != nil {
		return c, fmt.Errorf("decode %s: %w", contract.CallerVariable, err)
	}
	return c, nil
}

// CheckClaim refuses a caller whose the deployment is not, and an engine that does not have
// its cluster, unless they are to take it on.
func (p Place) CheckClaim(ctx context.Context, s *store.Store) error {
	caller, err := p.caller()
	if err != nil {
		return err
	}
	claim, err := ClaimOf(ctx, s)
	if err != nil {
		return err
	}
	if err := p.checkOwner(ctx, s, caller, claim); err != nil {
		return err
	}
	away, err := p.Away(ctx, s, claim)
	if err != nil || !away || caller.Here {
		return err
	}
	return contract.Elsewhere("recognise the deployment", caller.Deployment, claim.Engine,
		"or name another deployment: --name; or, if that engine is gone or has lost it, make this one the deployment's, which leaves what is there: slipway install --here; slipway destroy --here gives the deployment up, and removes its state, secrets and backups included")
}

func (p Place) checkOwner(ctx context.Context, s *store.Store, caller contract.Caller, claim contract.Claim) error {
	if caller.Owner == "" || caller.Join || len(claim.Owners) == 0 || owns(claim, caller.Owner) {
		return nil
	}
	last, err := lastRun(ctx, s)
	if err != nil {
		return err
	}
	names := make([]string, len(claim.Owners))
	for i, o := range claim.Owners {
		names[i] = o.Name
	}
	where := "on this engine"
	if p.Remote() {
		where = "in " + s.Location()
	}
	text := fmt.Sprintf("deployment %s %s is %s's, since %s", caller.Deployment, where, strings.Join(names, " and "), claim.Owners[0].Since.Format(time.RFC3339))
	if last != nil {
		text += fmt.Sprintf("; its last run was %s %s of %s", last.Workflow, last.ID, last.Started.UTC().Format(time.RFC3339))
		if last.Owner != "" {
			text += ", of " + last.Owner
		}
	}
	return &fault.Fault{
		Code: contract.CodeTheirs, Class: fault.Usage, Op: "recognise the deployment",
		Err: fmt.Errorf("%s; you are %s; nothing was changed", text, caller.Owner),
		Fix: "choose another name: --name; or, to work on that one as well, run the same command with --join, once; who you are is what --owner, SLIPWAY_OWNER or advanced.owner in the configuration says, else your user and machine",
	}
}

// owns reports whether somebody is one of those who work on a deployment.
func owns(c contract.Claim, name string) bool {
	return slices.ContainsFunc(c.Owners, func(o contract.Owner) bool { return o.Name == name })
}

// engine identifies the engine of the volume; empty while it has not had the cluster.
func (p Place) engine() (string, error) {
	text, err := os.ReadFile(filepath.Join(p.Volume, engineFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// Away reports whether the cluster of a deployment with that claim is a service of another
// engine. Where only an earlier version has worked on it, it is one of the engine that has the
// access to it.
func (p Place) Away(ctx context.Context, s *store.Store, claim contract.Claim) (bool, error) {
	caller, err := p.caller()
	if err != nil || !caller.Node || !p.Remote() {
		return false, err
	}
	if claim.Engine == nil {
		here, known, err := p.HasKubeconfig(ctx, s)
		return known && !here, err
	}
	this, err := p.engine()
	if err != nil {
		return false, fmt.Errorf("find out which engine this is: %w", err)
	}
	return this != claim.Engine.ID, nil
}

// Claim notes whose the deployment is from now on, and that this engine has its cluster, for a
// run of who, which has the lock.
func (p Place) Claim(ctx context.Context, w *Work, was contract.Claim, who lock.Holder) error {
	caller, err := p.caller()
	if err != nil {
		return err
	}
	now, at := was, time.Now().UTC().Truncate(time.Second)
	if caller.Owner != "" && !owns(was, caller.Owner) && (caller.Join || len(was.Owners) == 0) {
		now.Owners = append(slices.Clone(was.Owners), contract.Owner{Name: caller.Owner, Since: at})
	}
	if caller.Node && p.Remote() {
		id, err := p.makeEngine()
		if err != nil {
			return fmt.Errorf("note which engine this is: %w", err)
		}
		if was.Engine == nil || was.Engine.ID != id {
			now.Engine = &contract.Engine{ID: id, By: who.User + "@" + who.Host, Run: who.Run, Since: at}
		}
	}
	if len(now.Owners) == len(was.Owners) && now.Engine == was.Engine {
		return nil
	}
	data, err := json.Marshal(now)
	if err == nil {
		err = claims().Put(ctx, w.Store, w.Generation, data)
	}
	if err != nil {
		return fmt.Errorf("note whose the deployment is: %w", err)
	}
	return nil
}

// makeEngine is engine; it makes an id where there is none, and keeps it in the volume.
func (p Place) makeEngine() (string, error) {
	id, err := p.engine()
	if err != nil {
		return "", err
	}
	if id == "" {
		id = strings.ToLower(rand.Text())
	}
	return id, atomicfile.Write(filepath.Join(p.Volume, engineFile), []byte(id+"\n"), 0o644)
}
