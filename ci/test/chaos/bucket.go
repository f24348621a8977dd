package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/ci/test/s3/gateway"
	"github.com/slipway-sh/slipway/ci/test/s3/proxy"
)

// bucket is one on this machine with the deployment's state. Containers reach it through a proxy.
type bucket struct {
	server      *gateway.Server
	proxy       *proxy.Proxy
	credentials string // file
}

// prefix is what the deployments are below, in the bucket.
const prefix = "chaos"

// openBucket starts a bucket that keeps everything in a directory, and is reached at a host of this
// machine. root is the checkout.
func openBucket(ctx context.Context, root, dir, host string, seed uint64) (b *bucket, err error) {
	b = &bucket{credentials: filepath.Join(dir, "aws.env")}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start a bucket: %w", errors.Join(err, b.close()))
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return b, err
	}
	env := []string{"AWS_ACCESS_KEY_ID=chaos-access-key-id", "AWS_SECRET_ACCESS_KEY=c4nary-chaos-secret-access-key"}
	if err := os.WriteFile(b.credentials, []byte(env[0]+"\n"+env[1]+"\n"), 0o600); err != nil {
		return b, err
	}
	address, err := gateway.Free("127.0.0.1")
	if err != nil {
		return b, err
	}
	if b.server, err = gateway.Serve(ctx, filepath.Join(root, "ci/test/s3/server"), dir, address, append(os.Environ(), env...)); err != nil {
		return b, err
	}
	b.proxy, err = proxy.Listen(host, address, seed)
	return b, err
}

// close ends it; what is in it stays.
func (b *bucket) close() error {
	var errs []error
	if b.proxy != nil {
		errs = append(errs, b.proxy.Close())
	}
	if b.server != nil {
		errs = append(errs, b.server.Close())
	}
	return errors.Join(errs...)
}

// flags are those with which a command finds it.
func (b *bucket) flags() []string {
	return []string{"--state", gateway.URL(b.proxy.Address(), gateway.Bucket, prefix), "--state-credentials", b.credentials}
}

// below is the directory with the state of the deployment with this name.
func (b *bucket) below(name string) string { return filepath.Join(b.server.Objects(), prefix, name) }

// late is by how much requests are delayed, at most. There are three in a heartbeat.
const late = 4 * time.Second

// partition has the network between the containers and the bucket fail in one way, which is
// drawn, for the round's pause, or until the install has ended.
func (r *round) partition(ctx context.Context, inst *running) (string, error) {
	modes := []proxy.Mode{proxy.Cut, proxy.Delay, proxy.Duplicate}
	mode := modes[r.random.IntN(len(modes))]
	began, before := time.Now(), r.bucket.proxy.Counts()[mode]
	r.bucket.proxy.Set(proxy.Fault{Mode: mode, Delay: late})
	r.wait(ctx, inst)
	r.bucket.proxy.Set(proxy.Fault{})
	n := r.bucket.proxy.Counts()[mode] - before
	if n == 0 {
		return "", errGone
	}
	return fmt.Sprintf("%s %d requests to the bucket in %s", mode, n, time.Since(began).Round(time.Second)), nil
}
