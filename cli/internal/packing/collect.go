package packing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/stages/contract"
)

// packer collects the contents of a package.
type packer struct {
	flags      *deployment.Flags
	deployment *deployment.Deployment
	options    Options
	clean      cleaner
	absent     []string
	lacks      string // why the package lacks what an upgrade began from

	info   runpackage.Info
	files  runpackage.Files
	record *report.Run
	config *config.Config // of the run
}

// collect fills p; dir is for temporary files.
func (p *packer) collect(ctx context.Context, run, dir string) error {
	left := filepath.Join(dir, "run")
	id, err := p.deployment.Report(ctx, run, left)
	if err != nil {
		return err
	}
	if err := errors.Join(p.knowCluster(ctx), p.addPullSecret(ctx)); err != nil {
		return err
	}
	text, err := p.readConfig(ctx, id, left)
	if err != nil {
		return err
	}
	if err := p.vouch(id); err != nil {
		return err
	}
	if err := p.before(ctx, id, left); err != nil {
		return err
	}
	if err := p.runDir(id, left, text); err != nil {
		return err
	}
	p.describe()
	if err := p.release(ctx, filepath.Join(dir, "release")); err != nil {
		return err
	}
	return p.images()
}

// knowCluster learns the access to the cluster, if there is one.
func (p *packer) knowCluster(ctx context.Context) error {
	text, err := p.deployment.Kubeconfig(ctx, "")
	if errors.Is(err, &fault.Fault{Code: contract.CodeNotThere}) {
		return nil
	}
	if class := fault.ClassOf(err); class == fault.Usage || class == fault.Preflight { // the user's own access, which is elsewhere
		p.absent = append(p.absent, "the access to the cluster")
		return nil
	}
	if err != nil {
		return fmt.Errorf("learn what must not be in the package: %w", err)
	}
	p.clean.learn(text)
	return nil
}

// addPullSecret learns the registry account of the nodes, if there is one.
func (p *packer) addPullSecret(ctx context.Context) error {
	secret := p.deployment.Images.PullSecret
	if secret == nil {
		return nil
	}
	text, err := secret.Plaintext(ctx)
	if err != nil {
		return fmt.Errorf("learn what must not be in the package: %w", err)
	}
	redact.DockerSecrets([]byte(text), p.clean.known.Add)
	return nil
}

// readConfig adds the run's configuration without secrets, which it returns, and learns the secrets.
func (p *packer) readConfig(ctx context.Context, id, dir string) ([]byte, error) {
	text, err := bounded.File(filepath.Join(dir, "config.yaml"), bounded.Generated)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notEnded(id, "it ended before it wrote anything down")
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration of run %s: %w", id, err)
	}
	source := p.flags.Source
	source.Release = nil                    // no directory that it names is opened
	source.State, source.Brought = "", true // as stored: flags and variables change nothing
	read := func() error {
		readable, err := answers.Readable(p.schema(), text)
		if err == nil {
			p.config, err = source.Parse(readable, nil)
		}
		if err != nil {
			return fmt.Errorf("read the configuration of run %s: %w", id, err)
		}
		return nil
	}
	if err := read(); err != nil {
		return nil, err
	}
	p.info.Secrets = map[string]string{}
	for setting, ref := range p.config.References(p.sections()) {
		p.info.Secrets[setting] = string(ref)
	}
	p.knowUsers(ctx)
	p.lack("", p.config)
	if text, p.info.Hidden, err = p.clean.config(text); err != nil {
		return nil, err
	}
	p.files[runpackage.ConfigFile] = runpackage.File{Data: text}
	return text, read()
}

func (p *packer) schema() *answers.Schema {
	return answers.NewSchema(config.Describe(p.sections()), nil)
}

func (p *packer) sections() []config.Section { return p.flags.Source.Providers.Sections() }

// knowUsers learns the secrets of the user's configuration. It does not look for those of a stored configuration:
// anyone who can write the state could run commands and read files here.
func (p *packer) knowUsers(ctx context.Context) {
	refs := p.deployment.Config.References(p.sections())
	for _, setting := range slices.Sorted(maps.Keys(refs)) {
		secret, err := p.deployment.Inputs.Secrets.Find(ctx, refs[setting])
		var value string
		if err == nil {
			value, err = secret.Plaintext(ctx)
		}
		if err != nil {
			p.absent = append(p.absent, setting)
			continue
		}
		p.clean.learn(value)
	}
}

// lack notes secrets of a stored configuration that the user's lacks.
func (p *packer) lack(when string, stored *config.Config) {
	users := slices.Collect(maps.Values(p.deployment.Config.References(p.sections())))
	for setting, ref := range stored.References(p.sections()) {
		if name := setting + when; !slices.Contains(users, ref) && !slices.Contains(p.absent, name) {
			p.absent = append(p.absent, name)
		}
	}
	slices.Sort(p.absent)
}

func notEnded(id, why string) error {
	return &fault.Fault{Code: codeNotEnded, Class: fault.Usage, Op: "pack run " + id, Err: errors.New(why),
		Fix: "wait for its end, or name another one: slipway runs lists them; slipway save --run ID"}
}

// runDir cleans the run's directory, renders its report again, and adds it.
func (p *packer) runDir(id, dir string, cleanConfig []byte) error {
	made := []string{report.SummaryFile, report.MarkdownFile, report.JUnitFile, report.PageFile}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || slices.Contains(made, name) {
			return errors.Join(err, os.Remove(file))
		}
		data, err := bounded.File(file, bounded.Generated)
		if err != nil {
			return err
		}
		clean := cleanConfig
		if name != "config.yaml" {
			if clean, err = p.clean.file(filepath.ToSlash(name), data); err != nil {
				return fmt.Errorf("clean %s: %w", name, err)
			}
		}
		if bytes.Equal(clean, data) {
			return nil
		}
		return os.WriteFile(file, clean, 0o600)
	})
	if err != nil {
		return fmt.Errorf("clean run %s: %w", id, err)
	}
	if err := report.Render(dir, id, true); err != nil { // alive: what ended stays as it is
		return fmt.Errorf("write the report of run %s: %w", id, err)
	}
	if p.record, err = report.Load(dir, id, true); err != nil {
		return err
	}
	if p.record.Outcome == report.Running {
		return notEnded(id, "it still goes on")
	}
	return p.files.Add(runpackage.RunDir, os.DirFS(dir))
}

func (p *packer) describe() {
	r := p.record
	info := &p.info
	info.Run, info.Workflow, info.Deployment, info.Provider = r.ID, r.Workflow, r.Deployment, r.Provider
	info.Outcome, info.Started, info.Slipway, info.Engine = string(r.Outcome), r.Started, r.Slipway, r.Engine
	info.Platform = runpackage.Platform{Name: r.Platform.Name, Version: r.Platform.Version, Digest: r.Platform.Digest}
	info.Code, info.Step = r.Failure()
	var seen contract.Result
	var machine contract.Preflight
	result := p.files[runpackage.RunDir+"/steps/infrastructure.preflight/result.json"].Data
	if json.Unmarshal(result, &seen) == nil && json.Unmarshal(seen.Output, &machine) == nil { // a run may have ended before
		info.Kernel = machine.Kernel
	}
}

func (p *packer) add(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		text, err = p.clean.json(append(text, '\n'))
	}
	p.files[name] = runpackage.File{Data: text}
	return err
}

// Digests are those of what a run executes.
type Digests struct {
	All    string            `json:"all"` // of everything below; empty: not known
	Tools  map[string]string `json:"tools"`
	Images map[string]string `json:"images"` // references by digest, by short name
	Others map[string]string `json:"others,omitempty"`
}

// DigestsOf returns the digests of a run's images.
func DigestsOf(from *containers.Images) Digests {
	own := from.Refs
	if from.Registry != nil {
		own = from.Registry
	}
	return Digests{All: from.Digest, Tools: from.Tools, Images: own, Others: from.StandsFor}
}

// images adds the digests of the run's images: of the images at hand if they are the same, else of the record.
func (p *packer) images() error {
	of := DigestsOf(p.deployment.Images)
	if p.record.Images != of.All {
		p.info.OtherImages = true
		of = Digests{All: p.record.Images, Tools: p.record.Tools, Images: map[string]string{}}
	}
	return p.add(runpackage.ImagesFile, of)
}
