package main

import (
	"context"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/provenance"
	"github.com/slipway-sh/slipway/containers/trust"
)

const checksumsFile = "checksums.txt"

// checksums writes checksums.txt, which sha256sum -c reads, and returns the files that it
// names: all that are in the folder dir.
func checksums(ctx context.Context, dir string) ([]trust.Subject, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	var all []trust.Subject
	for _, e := range entries {
		sum, err := bundle.Sum(ctx, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
		all = append(all, trust.Subject{Name: e.Name(), Digest: map[string]string{"sha256": sum}})
	}
	return all, os.WriteFile(filepath.Join(dir, checksumsFile), []byte(text.String()), 0o644)
}

// predicate is SLSA provenance, version 1, of a release: the same for the same inputs.
type predicate struct {
	BuildDefinition definition            `json:"buildDefinition"`
	RunDetails      provenance.RunDetails `json:"runDetails"`
}

type definition struct {
	BuildType            string                  `json:"buildType"`
	ExternalParameters   parameters              `json:"externalParameters"`
	InternalParameters   toolchain               `json:"internalParameters"`
	ResolvedDependencies []provenance.Dependency `json:"resolvedDependencies"`
}

// parameters are what who makes a release chooses.
type parameters struct {
	Version string   `json:"version"`
	Targets []string `json:"targets"`
	Dry     bool     `json:"dry,omitempty"` // it is no release, only one that was tried
}

type toolchain struct {
	Go              string `json:"go"`
	SourceDateEpoch int64  `json:"sourceDateEpoch"` // seconds since 1970
}

const (
	buildType = "https://slipway.sh/release/v1"
	builder   = "https://slipway.sh/make-release"
)

// statement says of the files of a release what they were built from. It names the commit
// only if that is all that they were built from.
func (o *options) statement(s *source, of *programs, subjects []trust.Subject) (trust.Statement[predicate], error) {
	builds := map[string]*debug.BuildInfo{}
	for _, p := range of.targets {
		builds[p.system] = p.build
	}
	from, err := provenance.Built(of.sources, builds)
	if err != nil {
		return trust.Statement[predicate]{}, err
	}
	if s.commit != "" {
		from = append([]provenance.Dependency{{URI: "git+" + homepage, Digest: map[string]string{"gitCommit": s.commit}}}, from...)
	}
	p := predicate{BuildDefinition: definition{
		BuildType: buildType, ExternalParameters: parameters{o.version, o.targets, o.dry},
		InternalParameters: toolchain{of.host.build.GoVersion, s.at.Unix()}, ResolvedDependencies: from,
	}}
	p.RunDetails.Builder.ID = builder
	return trust.Statement[predicate]{Type: trust.StatementType, Subject: subjects, PredicateType: provenance.PredicateType, Predicate: p}, nil
}

// writeProvenance writes the statement, signed with key, to the file name.
func (o *options) writeProvenance(name string, s *source, of *programs, subjects []trust.Subject, key crypto.Signer) error {
	says, err := o.statement(s, of, subjects)
	if err != nil {
		return fmt.Errorf("say what the release was built from: %w", err)
	}
	text, err := says.Sign(key)
	if err != nil {
		return fmt.Errorf("sign what the release was built from: %w", err)
	}
	return os.WriteFile(name, text, 0o644)
}
