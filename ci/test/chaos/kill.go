package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

func (r *round) killConductor(_ context.Context, inst *running) (string, error) {
	return "", inst.process.Kill()
}

func (r *round) killStep(ctx context.Context, inst *running) (string, error) {
	p, err := r.find(ctx, inst, func(p process) bool { return p.isStep() && p.request().Deployment == r.Name })
	if err != nil {
		return "", err
	}
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return "", err
	}
	return "killed " + p.args[2], nil
}

// killEngine ends the engine's process; what it had started goes with it. The
// install then ends by itself.
func (r *round) killEngine(ctx context.Context, inst *running) (string, error) {
	engine, err := r.engine(ctx)
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(engine, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("kill the engine, process %d: %w", engine, err)
	}
	var late error
	select {
	case <-inst.gone:
	case <-time.After(time.Minute):
		late = errors.New("the install goes on a minute after its engine was killed")
	}
	log, err := os.OpenFile(r.log+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return "", fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	return "", errors.Join(late, r.startEngine(ctx, log))
}

// killHolder ends what holds the lock of the install, which must stop by itself.
func (r *round) killHolder(ctx context.Context, inst *running) (string, error) {
	_, holder, _, err := r.holder(ctx, inst)
	if err == nil {
		err = holder.signal(syscall.SIGKILL)
	}
	if err != nil {
		return "", err
	}
	return "killed its holder", stops(inst, time.Now(), noticed)
}
