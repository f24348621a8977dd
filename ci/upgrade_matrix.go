package main

import (
	"context"
	"crypto/rand"
	"strconv"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// UpgradeMatrix tries upgrades between many releases and returns a table.
//
// Each cell is a deployment of its own. What came of it is kept, by name, until the next
// matrix: see upgrade-matrix-results. One that was interrupted goes on with the cells that
// are missing.
//
// +cache="never"
func (m *Slipway) UpgradeMatrix(
	ctx context.Context,
	// Versions of the release that is installed first.
	from []string,
	// Versions of the release that it is upgraded to.
	to []string,
	// The deployments' configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// Name of the matrix, with which those of its deployments begin.
	// +default="matrix"
	name string,
	// Scales; that of the configuration if not given.
	// +optional
	scale []int,
	// Styles of the upgrade: graceful, in-place.
	// +optional
	style []string,
	// What happens to the upgrade: none, kill-at-each-step.
	// +optional
	faults []string,
	// How many cells run at the same time.
	// +default=1
	parallel int,
	// Run a part of the cells, i/n: each is in one of n parts.
	// +optional
	shard string,
) (string, error) {
	c, err := m.conductor(ctx, config, nil, name)
	if err != nil {
		return "", err
	}
	c.ctr = c.ctr.WithMountedCache(matrixDir, matrixVolume(name))
	args := []string{"upgrade-matrix", "--out", matrixDir + "/results", "--parallel", strconv.Itoa(parallel)}
	for flag, values := range map[string][]string{"--from": from, "--to": to, "--style": style, "--faults": faults} {
		for _, v := range values {
			args = append(args, flag, v)
		}
	}
	for _, s := range scale {
		args = append(args, "--scale", strconv.Itoa(s))
	}
	if shard != "" {
		args = append(args, "--shard", shard)
	}
	return c.stdout(ctx, args...)
}

// UpgradeMatrixResults is what the last matrix of a name left.
//
// matrix.json, junit.xml, matrix.html, and logs and report of each cell.
//
// +cache="never"
func (m *Slipway) UpgradeMatrixResults(
	ctx context.Context,
	// Name of the matrix.
	// +default="matrix"
	name string,
) (*dagger.Directory, error) {
	c, err := m.conductor(ctx, nil, nil, "")
	if err != nil {
		return nil, err
	}
	done := c.ctr.WithMountedCache(matrixDir, matrixVolume(name)).
		WithEnvVariable("SLIPWAY_NONCE", rand.Text()).
		WithExec([]string{"cp", "-R", matrixDir + "/results", "/slipway/out/results"})
	return done.Directory("/slipway/out/results"), nil
}

// matrixDir is where the results of a matrix are.
const matrixDir = "/slipway/matrix"

// matrixVolume keeps the results of a matrix. Only this module reads it, so it may be the
// module's own.
func matrixVolume(name string) *dagger.CacheVolume { return dag.CacheVolume("slipway-matrix-" + name) }
