package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/inventory"
	"github.com/slipway-sh/slipway/containers/provenance"
	"github.com/slipway-sh/slipway/containers/sbom"
)

// documents writes what the bundle in dir, with its index as far as it goes, consists of and
// what it was built from.
func (b *builder) documents(ctx context.Context, dir string) ([]bundle.File, error) {
	made, err := bundle.Read(dir)
	if err != nil {
		return nil, err
	}
	packages, err := inventory.Read(ctx, made)
	if err != nil {
		return nil, err
	}
	builds := map[string]*debug.BuildInfo{}
	for name, path := range b.built {
		if builds[name], err = buildinfo.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read what %s was built from: %w", name, err)
		}
	}
	if own := builds[slipwayNode]; own != nil {
		builds["node"] = own // the image, of which it is the program
	}
	list, err := sbom.Document(sbom.Of{Version: b.sources, Pins: b.lock, Bundle: made, Packages: packages, Builds: builds})
	if err != nil {
		return nil, fmt.Errorf("list what it consists of: %w", err)
	}
	origin, err := provenance.New(provenance.Of{
		Pins: b.lock, Platform: made.Platform, Sources: b.sources, Contents: bundle.DigestOf(list), Builds: builds,
	}).Marshal()
	if err != nil {
		return nil, err
	}
	files := []bundle.File{
		{Path: bundle.SBOMFile, Name: "sbom", Kind: bundle.SBOM, Version: "1.6", Origin: "bundle"},
		{Path: bundle.ProvenanceFile, Name: "provenance", Kind: bundle.Provenance, Version: "1", Origin: "bundle"},
	}
	for n, text := range [][]byte{list, origin} {
		name := filepath.Join(dir, files[n].Path)
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return nil, err
		}
		if files[n].SHA256, err = bundle.Sum(ctx, name); err != nil {
			return nil, err
		}
		files[n].Size = int64(len(text))
	}
	return files, nil
}
