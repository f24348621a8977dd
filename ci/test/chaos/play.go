package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// cleanLimit bounds the removal of the deployment at the end, which also happens
// when the program is interrupted.
const cleanLimit = 5 * time.Minute

// atLimit is how long after the beginning of the step of --at something is done.
const atLimit = 5 * time.Second

// play runs the reference and the rounds.
func play(ctx context.Context, s settings, out io.Writer) (err error) {
	if s.logs == "" {
		s.logs, err = os.MkdirTemp("", "slipway-chaos-")
	} else {
		err = os.MkdirAll(s.logs, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make a directory for the logs: %w", err)
	}
	d := &deployment{
		Deployment: slipway.Deployment{Name: s.name, Bundle: s.bundle, Lock: s.lock, Root: s.root},
		config:     s.config, own: s.own, platform: s.platform, other: s.other,
	}
	fmt.Fprintf(out, "chaos: %d rounds of %s, seed %d, logs in %s\n", s.rounds, names(s.kinds), s.seed, s.logs)
	if s.bucket {
		if err := d.keepInBucket(ctx, s); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.bucket.close()) }()
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
		defer cancel()
		if e := d.run(filepath.Join(s.logs, "clean.log"), d.destroy(ctx)); e != nil {
			err = errors.Join(err, fmt.Errorf("remove deployment %s: %w", s.name, e))
		}
	}()

	ref, err := d.undisturbed(ctx, filepath.Join(s.logs, "reference.log"))
	if err != nil {
		return fmt.Errorf("the undisturbed install: %w", err)
	}
	fmt.Fprintf(out, "reference: platform %s, %d facts of cluster and state, %d steps in the journal, after %s\n",
		ref.facts["platform"], len(ref.facts), len(ref.journaled), ref.took.Round(100*time.Millisecond))
	if s.at != "" && !hasStep(ref.facts, s.at) {
		return fmt.Errorf("--at %s: the install has no such step", s.at)
	}

	var wrong []error
	var all []result
	for n := 1; n <= s.rounds; n++ {
		r := d.round(ctx, s, ref, n)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fmt.Fprintln(out, r)
		all = append(all, r)
		if r.err != nil {
			wrong = append(wrong, fmt.Errorf("round %d: %w", n, r.err))
		}
	}
	return errors.Join(append(wrong, summarise(out, all))...)
}

// keepInBucket opens the bucket that has the deployment's state from now on.
func (d *deployment) keepInBucket(ctx context.Context, s settings) (err error) {
	// Once a container has run there is a network to listen on; and what an earlier call has left
	// on the engine, which had its state there, is not known in the bucket.
	if err := d.run(filepath.Join(s.logs, "clean.log"), d.destroy(ctx)); err != nil {
		return err
	}
	host, err := slipway.Bridge()
	if err != nil {
		return err
	}
	d.bucket, err = openBucket(ctx, s.root, filepath.Join(s.logs, "bucket"), host, s.seed)
	return err
}

// round plays the round with a number.
func (d *deployment) round(ctx context.Context, s settings, ref reference, n int) result {
	random := rand.New(rand.NewPCG(s.seed, uint64(n))) // moments, not secrets
	r := round{
		deployment: d, kind: s.kinds[(n-1)%len(s.kinds)], reference: ref, random: random, pause: s.pause,
		log:    filepath.Join(s.logs, fmt.Sprintf("round-%03d", n)),
		at:     s.at,
		moment: time.Duration((0.03 + 0.9*random.Float64()) * float64(ref.took)),
	}
	if r.at != "" {
		r.moment = time.Duration(random.Float64() * float64(atLimit))
	}
	began := time.Now()
	seen, err := r.play(ctx)
	return result{seen, n, r.kind.name, r.moment, time.Since(began), err}
}
