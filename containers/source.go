package containers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
)

// runner is the name of Slipway's own program among a bundle's tools.
const runner = "slipway"

// FromBundle takes everything from a bundle's directory. Before anything of it runs,
// anchor has to vouch for its index, which must have what this program's lock pins; then
// every file is compared with the index: the runner by the engine, the rest by the runner. A
// result for the same content is kept by the engine, so that only the first run pays for it.
func FromBundle(ctx context.Context, client *dagger.Client, dir *dagger.Directory, anchor trust.Anchor) (*Images, error) {
	index, err := readIndex(ctx, dir)
	if err != nil {
		return nil, err
	}
	vouched, err := anchor.Check(ctx, index, func(file string) ([]byte, error) {
		text, err := dir.File(file).Contents(ctx)
		return []byte(text), err
	})
	if err != nil {
		return nil, err
	}
	pins, err := lock.Load()
	if err != nil {
		return nil, err
	}
	platform, err := client.DefaultPlatform(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the engine for its platform: %w", err)
	}
	if err := index.Check(string(platform)); err != nil {
		return nil, err
	}
	if err := pins.Verify(index); err != nil {
		return nil, err
	}
	if err := verify(ctx, client, dir, index); err != nil {
		return nil, err
	}
	line, err := lock.LineOf(pins, index.Index)
	if err != nil {
		return nil, err
	}
	// Mounted: copied, they would make a new layer of some 260 MB in each session.
	tools := map[string]string{}
	toolchain := client.Container().Import(dir.File(bundle.ToolchainArchive))
	for _, f := range index.Files {
		if f.Kind == bundle.Tool {
			toolchain = toolchain.WithMountedFile(binDir+"/"+f.Name, dir.File(f.Path))
			tools[f.Name] = "sha256:" + f.SHA256
		}
	}
	images := &Images{
		Toolchain: toolchain,
		Node:      client.Container().Import(dir.File(bundle.NodeArchive)),
		Workloads: dir.File(bundle.WorkloadArchive),
		Manifests: client.Directory().WithNewDirectory("/"), // an empty one cannot be exported
		Refs:      index.Images(),
		Tools:     tools,
		Digest:    vouched.Digest,
		Line:      line,
		Warning:   vouched.Warning(),
	}
	if index.Manifests() {
		images.Manifests = dir.Directory("manifests")
	}
	images.fromBundle(index)
	for _, image := range index.Index.Images {
		if image.Added() {
			if images.Added == nil {
				images.Added = map[string]*dagger.File{}
			}
			images.Added[path.Base(image.Archive)] = dir.File(image.Archive)
		}
	}
	return images, nil
}

func readIndex(ctx context.Context, dir *dagger.Directory) (*bundle.Bundle, error) {
	text, err := dir.File(bundle.IndexFile).Contents(ctx)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case hasEnded(err):
			return nil, fmt.Errorf("read the bundle: %w", err)
		}
		return nil, &fault.Fault{Code: bundle.CodeAbsent, Class: fault.Preflight, Op: "read the bundle", Fix: bundle.FixAbsent,
			Err: fmt.Errorf("read %s: %w", bundle.IndexFile, err)}
	}
	return bundle.Parse([]byte(text))
}

// verify compares every file with the index. The runner comes first and is
// compared by the engine: it checks the others.
func verify(ctx context.Context, client *dagger.Client, dir *dagger.Directory, index *bundle.Bundle) error {
	tool, ok := index.Tool(runner)
	if !ok {
		return damaged(fmt.Sprintf("%s lists no tool %q", bundle.IndexFile, runner))
	}
	got, err := dir.File(tool.Path).Digest(ctx, dagger.FileDigestOpts{ExcludeMetadata: true})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case hasEnded(err):
		return fmt.Errorf("verify the bundle: %w", err)
	case err != nil:
		return damaged(tool.Path + ": " + err.Error())
	case got != contentDigest(tool.SHA256):
		return damaged(tool.Path + ": its content is not the one that " + bundle.IndexFile + " names")
	}
	// From here on the result depends on content alone, so the engine may reuse it. An engine
	// of Dagger v0.20.8 crashes when what runs in a container whose root is nothing, or an
	// empty directory, is cancelled (core/dagop.go, extractContainerBkOutputs).
	done := client.Container().
		WithRootfs(client.Directory().WithNewDirectory("bundle")).
		WithMountedFile("/"+runner, dir.File(tool.Path)).
		WithMountedDirectory("/bundle", dir).
		WithExec([]string{"/" + runner, "bundle", "verify", "/bundle"}, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	code, err := done.ExitCode(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(err.Error(), "permission denied"):
		return damaged(tool.Path + " is not executable: chmod +x " + tool.Path)
	default:
		return fmt.Errorf("verify the bundle: %w", err)
	}
	if code == 0 {
		return nil
	}
	text, err := done.Stderr(ctx)
	if err != nil {
		return fmt.Errorf("verify the bundle: %w", err)
	}
	return notVerified(text)
}

// notVerified is the fault of a bundle, of which the runner said this.
func notVerified(stderr string) error {
	return damaged(strings.TrimPrefix(Complaint(stderr), "verify the bundle /bundle: "))
}

func damaged(what string) error {
	return &fault.Fault{Code: bundle.CodeContent, Class: fault.Preflight, Op: "verify the bundle", Fix: bundle.FixDamaged,
		Err: fmt.Errorf("%s", what)}
}

// contentDigest is the digest that Dagger v0.20.8 gives a file without its
// metadata: the sha256 of the content's sha256 (core/file.go, File.Digest). It
// is "" for what is not hex.
func contentDigest(sha string) string {
	raw, err := hex.DecodeString(sha)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}
