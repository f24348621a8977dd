package packing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/folder"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
)

// CodeIncomplete: the package lacks something that an install or a reproduction needs.
const CodeIncomplete fault.Code = "PKG-009"

// Opened is a verified package, with its configuration and platform release as files.
type Opened struct {
	*runpackage.Package
	Source
	sections []config.Section
}

// Source is what a deployment is made from.
type Source struct {
	Config  string // file
	Release string // directory
}

// Open verifies a package, with a key unless keyFile is empty, and unpacks it into the user's cache.
func Open(file, keyFile string, sections []config.Section) (*Opened, error) {
	p, err := Verify(file, keyFile)
	if err != nil {
		return nil, err
	}
	dir, err := folder.Cache()
	if usage.InModule() { // in a container that ends with the command
		dir, err = os.TempDir(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("find a place for what is in %s: %w", file, err)
	}
	if len(p.Hidden) > 0 {
		return nil, incomplete("unpack "+file, "write the configuration, give the values there, and install with it: slipway configure --out slipway.yaml --file "+fault.Quote(file),
			fmt.Errorf("its configuration has no value for what looked like a secret: %s", strings.Join(p.Hidden, ", ")))
	}
	o := &Opened{Package: p, sections: sections}
	at := filepath.Join(dir, "packages", strings.TrimPrefix(p.Digest, "sha256:")[:32], "slipway.yaml")
	o.Source, err = o.source(file, at, o.Platform, o.Files)
	return o, err
}

// Origin unpacks what an upgrade began from; nil: the package does not have it.
func (o *Opened) Origin(file string) (*Source, error) {
	if o.Workflow != config.Upgrade || o.Before == nil {
		return nil, nil
	}
	if !slices.Contains([]string{"", contract.Graceful, contract.InPlace}, o.Before.Style) {
		return nil, incomplete("unpack "+file, fixAgain, fmt.Errorf("%q is no style of an upgrade", o.Before.Style))
	}
	out, err := o.source(file, filepath.Join(filepath.Dir(o.Config), "before.yaml"), o.Before.Platform, o.Sub(runpackage.BeforeDir))
	return &out, err
}

// source unpacks a configuration as the file at, and the platform release beside it. It expands no variables.
func (o *Opened) source(file, at string, of runpackage.Platform, files runpackage.Files) (Source, error) {
	text := files[runpackage.ConfigFile].Data
	if len(text) == 0 {
		return Source{}, incomplete("unpack "+file, fixAgain, errors.New("there is no configuration in it"))
	}
	// In the current version, because a later migration could move text into a field that expands variables.
	text, _, err := config.Migrate(text, "the configuration in "+file)
	if err == nil {
		text, err = answers.Readable(answers.NewSchema(config.Describe(o.sections), nil), text)
	}
	if errors.Is(err, &fault.Fault{Code: config.CodeNewer}) { // its own error says more
		return Source{}, err
	}
	if err != nil {
		return Source{}, incomplete("unpack "+file, fixAgain, fmt.Errorf("read its configuration: %w", err))
	}
	release, err := keep(file, o.Workflow, of, files.Sub(runpackage.ReleaseDir), filepath.Dir(at), true)
	if err != nil {
		return Source{}, err
	}
	if err := atomicfile.Write(at, text, 0o600); err != nil {
		return Source{}, fmt.Errorf("unpack %s: %w", file, err)
	}
	return Source{Config: at, Release: release}, nil
}

const fixAgain = "get the package again from where it was made"

// KeepRelease unpacks the platform release of a package into a directory of parent, which it returns. It
// replaces a changed one, or chooses another name.
func KeepRelease(file string, p *runpackage.Package, parent string, replace bool) (string, error) {
	return keep(file, p.Workflow, p.Platform, p.Sub(runpackage.ReleaseDir), parent, replace)
}

func keep(file, workflow string, release runpackage.Platform, files runpackage.Files, parent string, replace bool) (string, error) {
	op := "unpack the platform release in " + file
	want := release.Digest
	if want == "" {
		return "", incomplete(op, "name a package of an install or an upgrade: slipway runs lists them",
			fmt.Errorf("it is of a run that has no platform release (%s)", workflow))
	}
	is := func(dir string) bool {
		digest, err := platform.Digest(os.DirFS(dir))
		return err == nil && digest == want
	}
	sum, ok := strings.CutPrefix(want, "sha256:")
	if !ok || !bundle.IsSHA256(sum) {
		return "", incomplete(op, fixAgain, fmt.Errorf("%q is no digest of a release", want))
	}
	dir := filepath.Join(parent, "release-"+sum[:16])
	for n, plain := 2, dir; !is(dir) && !replace; n++ {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = fmt.Sprintf("%s-%d", plain, n)
	}
	if is(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("%s: %w", op, err)
	}
	beside, err := os.MkdirTemp(parent, ".unpacking-*")
	if err != nil {
		return "", fmt.Errorf("%s: %w", op, err)
	}
	defer func() { _ = os.RemoveAll(beside) }()
	if err := files.WriteTo(beside); err != nil {
		return "", fmt.Errorf("%s: %w", op, err)
	}
	if !is(beside) {
		return "", incomplete(op, fixAgain, fmt.Errorf("its digest is not %s", want))
	}
	if err := errors.Join(os.Chmod(beside, 0o755), os.RemoveAll(dir), os.Rename(beside, dir)); err != nil && !is(dir) { // unless another process has just done it
		return "", fmt.Errorf("%s: %w", op, err)
	}
	return dir, nil
}

// Ran is the record of the run in the package, and the digests of what it ran with.
func (o *Opened) Ran() (*report.Run, Digests, error) {
	var digests Digests
	var record *report.Run
	text, images := o.Files[runpackage.RunDir+"/"+report.RecordFile].Data, o.Files[runpackage.ImagesFile].Data
	err := errors.Join(checkTokens(text), checkTokens(images))
	if err == nil {
		record, err = report.Decode(text)
	}
	if err == nil {
		err = json.Unmarshal(images, &digests)
	}
	if err = bounded.Error(err); err != nil {
		return nil, digests, incomplete("read the run in the package", fixAgain, err)
	}
	return record, digests, nil
}

// maxTokens limits the values of a run's record: an empty step is two bytes of JSON and hundreds in memory.
const maxTokens = 250_000

// checkTokens rejects JSON with more than maxTokens. Its decoder reports other errors.
func checkTokens(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	for range maxTokens {
		if _, err := d.Token(); err != nil {
			return nil
		}
	}
	return fmt.Errorf("it has more than %d values", maxTokens)
}

func incomplete(op, fix string, err error) error {
	return &fault.Fault{Code: CodeIncomplete, Class: fault.Usage, Op: op, Err: err, Fix: fix}
}

// Verify reads a package and verifies its signature, unless keyFile is empty.
func Verify(file, keyFile string) (*runpackage.Package, error) {
	if keyFile == "" {
		return runpackage.Read(file, nil)
	}
	signer, err := secrets.Verifier(keyFile)
	if err != nil {
		return nil, err
	}
	return runpackage.Read(file, func(index, signature []byte) (by string, err error) {
		return trust.Vouch(signer, index, signature, runpackage.PredicateType)
	})
}

// signWith takes the key of the configuration, if it names one.
func (o *Options) signWith(ctx context.Context, d *deployment.Deployment) error {
	ref := d.Config.Advanced.Save.Key
	if ref == "" {
		return nil
	}
	secret, err := d.Inputs.Secrets.Find(ctx, ref)
	var text string
	if err == nil {
		text, err = secret.Plaintext(ctx)
	}
	if err != nil {
		return secrets.NoKey(string(ref), err)
	}
	o.Key, err = trust.PrivateKey([]byte(text))
	o.Secrets = append(o.Secrets, text)
	return err
}

// Localise changes the configuration to a fresh local deployment, and returns a line per substitution.
func (s *Source) Localise(sections []config.Section) (substituted []string, err error) {
	text, err := bounded.File(s.Config, bounded.Written)
	if err == nil {
		if text, substituted, err = localise(text, sections); err != nil {
			return nil, incomplete("make the configuration of the package one of a local deployment", fixAgain, err)
		}
	}
	at := filepath.Join(filepath.Dir(s.Config), "local-"+filepath.Base(s.Config))
	if err == nil {
		err = atomicfile.Write(at, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("make the configuration of the package one of a local deployment: %w", err)
	}
	s.Config = at
	return substituted, nil
}

func localise(text []byte, sections []config.Section) ([]byte, []string, error) {
	d, err := answers.NewDraft(answers.NewSchema(config.Describe(sections), nil), text)
	if err != nil {
		return nil, nil, err
	}
	var substituted []string
	if provider := d.Get("provider"); provider != "" && provider != local.Name {
		substituted = append(substituted, fmt.Sprintf("provider %s by %s, a Kubernetes that Slipway runs itself", redact.OneLine(provider), local.Name))
		d.SetText("provider", local.Name)
		d.Remove(provider)
	}
	if d.Has("state") {
		substituted = append(substituted, "the bucket with the deployment's state by a volume of the engine")
		d.Remove("state")
	}
	if bind := d.Get("local.bind"); bind != "" {
		substituted = append(substituted, "the address "+redact.OneLine(bind)+", on which the cluster is published, by 127.0.0.1")
		d.Remove("local.bind")
	}
	text, err = d.Bytes()
	return text, substituted, err
}
