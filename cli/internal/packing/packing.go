// Package packing makes run packages of a deployment's state, and opens them.
package packing

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// The codes of this package's faults.
const (
	// codeNotEnded: the run still goes on, or left nothing that could be packed.
	codeNotEnded fault.Code = "PKG-005"
	// codeOtherRelease: the release, or a configuration to sign, is not the run's.
	codeOtherRelease fault.Code = "PKG-006"
	// codeHeld: a file that must go into the package as it is holds a secret.
	codeHeld fault.Code = "PKG-007"
)

// Options say what is packed.
type Options struct {
	Run string        // id; empty: the last one
	Out string        // file; empty: one named for the run
	Key crypto.Signer // nil: the key of the configuration, if it names one
	// Secrets are known besides those of the configuration: they are in no package.
	Secrets []string
}

// Packed is a package that was made.
type Packed struct {
	File  string
	Info  runpackage.Info
	Files int
	Bytes int
	// Absent are secrets of the configuration that could not be read, and so not searched for.
	Absent []string
	Lacks  string // why it lacks what an upgrade began from; empty: it does not, or is no upgrade
}

// Make packs a run of a deployment, of which f are the flags.
func Make(ctx context.Context, f *deployment.Flags, d *deployment.Deployment, o Options) (*Packed, error) {
	if o.Key == nil {
		if err := o.signWith(ctx, d); err != nil {
			return nil, err
		}
	}
	p := &packer{flags: f, deployment: d, options: o, files: runpackage.Files{}}
	for _, s := range o.Secrets {
		p.clean.known.Add(s)
	}
	dir, err := os.MkdirTemp("", "slipway-package-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the package: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := p.collect(ctx, o.Run, dir); err != nil {
		return nil, err
	}
	if err := p.gate(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := runpackage.Write(&out, p.info, p.files, Signer(o.Key)); err != nil {
		return nil, unwritten(o.Out, err)
	}
	file := o.Out
	if file == "" {
		file = defaultFile(d.Config.Global.Name, p.info.Run)
	}
	if err := put(file, out.Bytes()); err != nil {
		return nil, err
	}
	return &Packed{File: file, Info: p.info, Files: len(p.files), Bytes: out.Len(), Absent: p.absent, Lacks: p.lacks}, nil
}

// Signer signs the index of a package with key; nil: a package is not signed.
func Signer(key crypto.Signer) func(index []byte) ([]byte, error) {
	if key == nil {
		return nil
	}
	return func(index []byte) ([]byte, error) {
		return trust.Statement[struct{}]{
			Type: trust.StatementType, PredicateType: runpackage.PredicateType,
			Subject: []trust.Subject{trust.SubjectOf(runpackage.IndexFile, index)},
		}.Sign(key)
	}
}

// defaultFile is the default file of a package. Both parts are checked names, never a path from a record.
func defaultFile(deployment, run string) string {
	return "slipway-" + deployment + "-" + run + runpackage.Suffix
}

// put writes a package, and replaces nothing but a package.
func put(file string, data []byte) error {
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		if _, err := runpackage.Read(file, nil); errors.Is(err, &fault.Fault{Code: runpackage.CodeUnreadable}) {
			return unwritten(file, errors.New("there is something else already, which is no package"))
		}
	}
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = atomicfile.Overwrite(file, data, 0o600)
	}
	if err != nil {
		return unwritten(file, err)
	}
	return nil
}

func unwritten(file string, err error) error {
	return &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: strings.TrimSpace("write the package " + file), Err: err,
		Fix: "run the same command again, and name another place with room for it: --out FILE" + runpackage.Suffix}
}

// gate fails if a known secret is left.
func (p *packer) gate() error {
	held := p.clean.gate(p.files)
	if len(held) == 0 {
		return nil
	}
	return &fault.Fault{Code: codeHeld, Class: fault.Usage, Op: "pack run " + p.info.Run,
		Err: fmt.Errorf("a secret of the deployment is in %s, which a package must hold as it is", strings.Join(held, ", ")),
		Fix: "move the secret from the platform release to platform.secrets, change it, and install; then: slipway save"}
}
