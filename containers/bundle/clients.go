package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// CodeClients: the bundle is for another system than this machine's, or lacks a client.
const CodeClients fault.Code = "CLI-003"

// clientsRecord is where a folder has the sha256 of each program that was put into it: what is there
// is ours whenever a call ends.
const clientsRecord = ".slipway-clients"

// maxClient is the most that a client may have, in bytes.
const maxClient = 512 << 20

// clients are their names, in the order in which they are put.
func clients() []string { return []string{"slipway", "kubectl", "helm", "terraform"} }

// Client is a client in the folder.
type Client struct {
	File
	There bool // it was there already
}

// PutClients copies the pinned kubectl, helm, terraform and slipway of a bundle for a system, such as
// "linux/amd64", into the folder dir of this machine, each in one step; those that are there are left
// alone. If another program has one of the names, it fails with atomicfile.CodeUnwritten before it
// writes anything.
func (b *Bundle) PutClients(ctx context.Context, dir, system string) (all []Client, err error) {
	if b.Platform != system {
		return nil, noClients(system, fmt.Errorf("the bundle is for %s", b.Platform))
	}
	folder := func(err error) error {
		return &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: "put clients into " + dir, Err: err,
			Fix: "choose a folder that you may write, with 500 MB of free space, without other programs of these names: slipway clients --out DIR"}
	}
	record := filepath.Join(dir, clientsRecord)
	text, err := bounded.File(record, bounded.Generated)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, folder(err)
	}
	ours := strings.Fields(string(text))
	var others []error
	for _, name := range clients() {
		f, ok := b.Tool(name)
		if !ok {
			return nil, noClients(system, fmt.Errorf("the bundle has no %s", name))
		}
		sum, err := Sum(ctx, filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, folder(err)
		case sum != f.SHA256 && !slices.Contains(ours, sum):
			others = append(others, fmt.Errorf("%s is another program than was put there", filepath.Join(dir, name)))
		}
		all = append(all, Client{f, sum == f.SHA256})
		ours = append(ours, f.SHA256)
	}
	if len(others) > 0 {
		return nil, folder(errors.Join(others...))
	}
	slices.Sort(ours)
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		err = atomicfile.Write(record, []byte(strings.Join(slices.Compact(ours), "\n")+"\n"), 0o644)
	}
	if err != nil {
		return nil, folder(err)
	}
	for _, c := range all {
		if c.There {
			continue
		}
		data, err := bounded.File(b.Path(c.Path), maxClient)
		if err == nil && SumOf(data) != c.SHA256 {
			err = fmt.Errorf("its sha256 is %s, the index says %s", SumOf(data), c.SHA256)
		}
		if err != nil {
			return nil, &fault.Fault{Code: CodeContent, Class: fault.Preflight, Op: "read " + b.Path(c.Path), Fix: FixDamaged, Err: err}
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if err := atomicfile.Write(filepath.Join(dir, c.Name), data, 0o755); err != nil {
			return nil, folder(err)
		}
	}
	return all, nil
}

// noClients is the fault of a bundle that has no clients for a system.
func noClients(system string, err error) error {
	return &fault.Fault{Code: CodeClients, Class: fault.Preflight, Op: "find clients for " + system, Err: err,
		Fix: "install them by other means, in the versions that this lists: slipway version; for Linux a bundle has them: --bundle DIR, or dagger call clients export --path DIR"}
}
