// Package clients puts the pinned kubectl, helm, terraform and slipway into a folder of this
// machine: out of a bundle for its system, else as the vendors released them.
package clients

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// CodeFetch: there is no such client for this system, or a vendor's release cannot be fetched
// or is another one than the lock says.
const CodeFetch fault.Code = "CLI-003"

// RecordFile is where a folder says what was put into it.
const RecordFile = ".slipway-clients.json"

// names are those of the clients, in the order in which they are put.
func names() []string { return []string{"slipway", "kubectl", "helm", "terraform"} }

// Options say what is put where.
type Options struct {
	Dir      string         // made if it is not there
	Platform string         // "linux/amd64": of the machine that runs them
	Pins     *lock.Lock     // versions, and the vendors' releases
	Bundle   *bundle.Bundle // nil: none
	Program  string         // path of a slipway for Platform, where the bundle has none; empty: none
	Client   *http.Client   // nil is http.DefaultClient
	Say      func(string)   // told what happens; nil: nobody is
}

// Client is a client in the folder.
type Client struct {
	Name, Version, From string
	There               bool // it was there already
}

type source struct {
	name, version, from string
	origin              string                                // sha256 of what is taken: the program, or its archive
	file                string                                // a program on this machine, or
	fetch               func(context.Context) ([]byte, error) // what gives it
}

// record is the content of RecordFile: what was put into the folder, by name.
type record map[string]written

type written struct {
	Origin string `json:"origin"`           // sha256 of what it came from
	SHA256 string `json:"sha256"`           // its own
	Before string `json:"before,omitempty"` // that of the one that it replaces
}

// Put puts the clients into the folder, each in one step; those that are there are left
// alone. It fails with atomicfile.CodeUnwritten before it has written anything, and with CodeFetch
// after it has put those that it could.
func Put(ctx context.Context, o Options) ([]Client, error) {
	sources, none := o.sources(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, o.folder(err)
	}
	have, err := o.record()
	if err != nil {
		return nil, err
	}
	there := map[string]string{} // sha256 by name
	var others []error
	for _, s := range sources {
		sum, err := bundle.Sum(ctx, o.path(s.name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, o.folder(err)
		case sum != s.origin && sum != have[s.name].SHA256 && sum != have[s.name].Before:
			others = append(others, fmt.Errorf("%s is another program than was put there", o.path(s.name)))
		}
		there[s.name] = sum
	}
	if len(others) > 0 {
		return nil, &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: "put clients into " + o.Dir, Err: errors.Join(others...),
			Fix: "choose another folder, or move what is there away: slipway clients --out DIR"}
	}
	var out []Client
	var failed []error
	for _, s := range sources {
		c := Client{Name: s.name, Version: s.version, From: s.from}
		sum, has := there[s.name], have[s.name]
		if c.There = sum != "" && (sum == s.origin || has.Origin == s.origin && has.SHA256 == sum); !c.There {
			err = o.put(ctx, s, have, sum)
		}
		switch {
		case errors.Is(err, &fault.Fault{Code: CodeFetch}):
			failed, err = append(failed, err), nil
		case err != nil:
			return out, err
		default:
			out = append(out, c)
		}
	}
	return out, errors.Join(append(failed, none)...)
}

// put writes a client, in the place of one with the sha256 before. The record says so first: what is
// there is ours whenever this ends.
func (o Options) put(ctx context.Context, s source, have record, before string) error {
	var data []byte
	var err error
	if s.fetch != nil {
		if o.Say != nil {
			o.Say(fmt.Sprintf("%s %s: %s", s.name, s.version, s.from))
		}
		data, err = s.fetch(ctx)
	} else if data, err = bounded.File(s.file, most); err == nil && bundle.SumOf(data) != s.origin {
		return &fault.Fault{Code: bundle.CodeContent, Class: fault.Preflight, Op: "read " + s.file, Fix: bundle.FixDamaged,
			Err: fmt.Errorf("its sha256 is %s, the index says %s", bundle.SumOf(data), s.origin)}
	}
	if err != nil {
		return err
	}
	have[s.name] = written{Origin: s.origin, SHA256: bundle.SumOf(data), Before: before}
	text, err := json.MarshalIndent(have, "", "  ")
	if err == nil {
		err = atomicfile.Write(filepath.Join(o.Dir, RecordFile), append(text, '\n'), 0o644)
	}
	if err == nil {
		err = atomicfile.Write(o.path(s.name), data, 0o755)
	}
	if err != nil {
		return o.folder(err)
	}
	return nil
}

func (o Options) record() (record, error) {
	r := record{}
	text, err := bounded.File(filepath.Join(o.Dir, RecordFile), bounded.Generated)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, o.folder(fmt.Errorf("%s: %w", RecordFile, err))
	}
	return r, nil
}

func (o Options) path(name string) string { return filepath.Join(o.Dir, o.file(name)) }

// file is what a client's program is called.
func (o Options) file(name string) string {
	if strings.HasPrefix(o.Platform, "windows/") {
		return name + ".exe"
	}
	return name
}

func (o Options) folder(err error) error {
	return &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: "put clients into " + o.Dir, Err: err,
		Fix: "choose a folder that you may write, with 500 MB of free space: slipway clients --out DIR"}
}

// sources finds where each client comes from. Its error names those that come from nowhere.
func (o Options) sources(ctx context.Context) (all []source, none error) {
	var missing []error
	for _, name := range names() {
		s, err := o.source(ctx, name)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		all = append(all, s)
	}
	if len(missing) == 0 {
		return all, nil
	}
	return all, &fault.Fault{Code: CodeFetch, Class: fault.Preflight, Op: "find clients for " + o.Platform, Err: errors.Join(missing...),
		Fix: "install what is named by other means, in that version; for Linux a bundle has all of it: --bundle DIR, or dagger call clients export --path DIR"}
}

func (o Options) source(ctx context.Context, name string) (source, error) {
	version := o.Pins.Versions()[name]
	if o.Bundle != nil && o.Bundle.Platform == o.Platform {
		if f, ok := o.Bundle.Tool(name); ok {
			return source{name: name, version: f.Version, from: "the bundle", origin: f.SHA256, file: o.Bundle.Path(f.Path)}, nil
		}
	}
	if name == "slipway" && o.Program != "" {
		sum, err := bundle.Sum(ctx, o.Program)
		return source{name: name, version: "this program", from: o.Program, origin: sum, file: o.Program}, err
	}
	at := slices.IndexFunc(o.Pins.Tools, func(t lock.Tool) bool { return t.Name == name })
	if at >= 0 {
		if r, ok := o.Pins.Tools[at].Release[o.Platform]; ok {
			return source{name: name, version: version, from: r.URL, origin: r.SHA256, fetch: func(ctx context.Context) ([]byte, error) {
				return o.fetch(ctx, name, r)
			}}, nil
		}
	}
	return source{}, fmt.Errorf("%s: neither a bundle nor the lock has %s for %s", name, cmp.Or(version, "one"), o.Platform)
}
