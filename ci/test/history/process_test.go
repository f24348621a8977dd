package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// variable tells a process that it is a contender, and which.
const variable = "SLIPWAY_TEST_CONTENDER"

// TestContender is a contender that is a process. It ends with its standard input.
func TestContender(t *testing.T) {
	text := os.Getenv(variable)
	if text == "" {
		return // it is none
	}
	var d description
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	require.NoError(t, d.contend(ctx))
}

// process is a contender that is one.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  bytes.Buffer
}

func (d description) start() (*process, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestContender$")}
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	// In a session of its own: a process group that loses its last parent outside is
	// sent SIGCONT, which would wake one that stands still.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// end lets it end, or kills it.
func (p *process) end(kill bool) error {
	if kill {
		_ = p.cmd.Process.Kill() // it may have ended, and then Wait says why
	}
	_ = p.stdin.Close()
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && kill && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, p.said.String())
	}
	return nil
}

// live lets a contender be one process after another until ctx ends: each stands still a few
// times, most often while it holds the lock, and is killed. It counts what it does.
func (r round) live(ctx context.Context, d description, holder func() string, random *rand.Rand) (summary, error) {
	name, counts := d.Name, summary{}
	for life := 1; ctx.Err() == nil; life++ {
		d.Name, d.Seed = fmt.Sprintf("%s-%d", name, life), random.Uint64()
		p, err := d.start()
		if err != nil {
			return counts, err
		}
		err = r.disturbed(ctx, p, random, func() bool { return holder() == d.Name }, counts)
		kill := err != nil || ctx.Err() == nil
		if err := errors.Join(err, p.end(kill)); err != nil {
			return counts, fmt.Errorf("%s: %w", d.Name, err)
		}
		if kill {
			counts[killed]++
		}
	}
	return counts, nil
}

// disturbed stops a process a few times, or until ctx ends, and lets it go on.
func (r round) disturbed(ctx context.Context, p *process, random *rand.Rand, holds func() bool, counts summary) error {
	for range 1 + random.IntN(4) {
		for began := time.Now(); ctx.Err() == nil && time.Since(began) < 2*r.over() && !holds(); {
			sleep(ctx, r.Beat)
		}
		sleep(ctx, time.Duration(random.Float64()*float64(r.TTL)))
		if ctx.Err() != nil || r.calm {
			return nil
		}
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		counts[stopped]++
		sleep(ctx, time.Duration(random.Float64()*2*float64(r.over())))
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		sleep(ctx, r.over()/2)
	}
	return nil
}
