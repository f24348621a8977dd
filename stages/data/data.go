// Package data has the steps that keep a platform's data through an upgrade: they back it up
// and prove the backup, carry migrations out, take them back, and restore a backup. The
// commands are the release's, and run in pods that are made for them.
package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// The codes of this package's faults.
const (
	// CodeBackup: data cannot be dumped, or its backup does not restore to data that is whole.
	CodeBackup fault.Code = "BAK-001"
	// CodeNotKept: the release that is installed is not in the deployment's state.
	CodeNotKept fault.Code = "BAK-005"
	// CodePod: the pod in which the commands of data run does not start.
	CodePod fault.Code = "BAK-006"
	// CodeRestore: a backup cannot be put in the place of the present data.
	CodeRestore fault.Code = "BAK-007"
	// CodeMigration: a migration failed or cannot be taken back, or what uses the data cannot be
	// stopped for it or started again.
	CodeMigration fault.Code = "UPG-013"
	// CodeCheck: the data is not whole after an upgrade or a rollback.
	CodeCheck fault.Code = "UPG-016"
)

// Register adds the code of these steps to r.
func Register(r *step.Registry) {
	step.Register(r, contract.BackupDataStep(), step.Once(backUp).Planned(planBackUp))
	step.Register(r, contract.BackupStep(), step.Once(complete).Planned(planComplete))
	step.Register(r, contract.MigrateBeforeStep(), step.Once(migrateBefore).Planned(planMigrateBefore))
	step.Register(r, contract.MigrateAfterStep(), step.Once(migrateAfter).Planned(planMigrateAfter))
	step.Register(r, contract.RestoreStep(), step.Once(restore))
	step.Register(r, contract.DataCheckStep(), step.Once(checkAll))
}

type work struct {
	env     *step.Env
	client  *kube.Client
	repo    *backup.Repository
	release *platform.Release // whose data and commands they are
	in      contract.PodInput
	exec    executor
	next    string   // ends a remedy: what to do once the cause is corrected
	held    []string // data whose users stay stopped: it was saved, and is to be replaced
}

// open prepares a step on the data of the release in PlatformDir.
func open(ctx context.Context, env *step.Env, in contract.PodInput) (*work, error) {
	w, err := look(env, in)
	if err != nil {
		return nil, err
	}
	if err := w.client.HideSecrets(ctx, env.Deployment, env.Redact); err != nil {
		return nil, err
	}
	w.exec = kubectl(env)
	w.repo, err = openRepository(ctx, env)
	return w, err
}

func openRepository(ctx context.Context, env *step.Env) (*backup.Repository, error) {
	s, err := env.Store(ctx)
	if err != nil {
		return nil, err
	}
	return backup.Open(ctx, env.Backend, s)
}

func (w *work) dataNamed(name string) (platform.Data, error) {
	d, ok := w.release.DataNamed(name)
	if !ok {
		return d, fmt.Errorf("platform %s %s has no data %s", w.release.Name, w.release.Version, name)
	}
	return d, nil
}

// because is a fault about data, with the class of its cause; a fault of a store, a pod or a dump
// keeps its code.
func because(code fault.Code, op, fix string, err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok && (strings.HasPrefix(string(f.Code), "STO-") || slices.Contains([]fault.Code{CodePod, CodeBackup, backup.CodeDamaged}, f.Code)) {
		return err
	}
	return &fault.Fault{Code: code, Class: step.ClassOf(err), Op: op, Fix: fix, Err: err}
}
