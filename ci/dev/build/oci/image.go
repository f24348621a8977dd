package oci

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Config is how an image's program is started.
type Config struct {
	Arch       string            `json:"-"` // "amd64", "arm64"
	Entrypoint []string          `json:"entrypoint"`
	Cmd        []string          `json:"cmd"`
	Env        map[string]string `json:"env"`
	WorkingDir string            `json:"workingDir"`
	User       string            `json:"user"`  // "999:999"; empty is root
	Ports      []string          `json:"ports"` // "6443/tcp"
	StopSignal string            `json:"stopSignal"`
}

// NewImage makes an image of layers, lowest first.
func NewImage(config Config, layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", config.Arch
	file.Created = v1.Time{Time: time.Unix(Epoch, 0).UTC()}
	file.History = nil
	for range layers {
		file.History = append(file.History, v1.History{Created: file.Created, CreatedBy: "slipway"})
	}
	file.Config = v1.Config{
		Entrypoint: config.Entrypoint, Cmd: config.Cmd, WorkingDir: config.WorkingDir, User: config.User,
		StopSignal: config.StopSignal,
	}
	for _, port := range config.Ports {
		if file.Config.ExposedPorts == nil {
			file.Config.ExposedPorts = map[string]struct{}{}
		}
		file.Config.ExposedPorts[port] = struct{}{}
	}
	for _, name := range slices.Sorted(maps.Keys(config.Env)) {
		file.Config.Env = append(file.Config.Env, name+"="+config.Env[name])
	}
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	return image, nil
}
