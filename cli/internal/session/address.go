package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/daggercli"
)

// engineAddress is where the engine is, as far as the environment tells. No engine is asked.
func engineAddress() string {
	at := os.Getenv(daggercli.EnvRunner)
	scheme, _, _ := strings.Cut(at, "://")
	// With these, the dagger CLI has Docker find the engine.
	if slices.Contains([]string{"", "image", "container", "docker-image", "docker-container", "image+docker", "container+docker"}, scheme) {
		at += " in " + docker()
	}
	return at
}

// docker is where the Docker daemon is of which the docker command makes use; empty: where it is
// by default. What cannot be read here, that command makes no use of either.
func docker() string {
	if at := os.Getenv("DOCKER_HOST"); at != "" {
		return at
	}
	dir := os.Getenv("DOCKER_CONFIG")
	if home, err := os.UserHomeDir(); dir == "" && err == nil {
		dir = filepath.Join(home, ".docker")
	}
	name := os.Getenv("DOCKER_CONTEXT")
	if name == "" {
		var config struct{ CurrentContext string }
		decode(filepath.Join(dir, "config.json"), &config)
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return ""
	}
	var context struct {
		Endpoints struct{ Docker struct{ Host string } }
	}
	sum := sha256.Sum256([]byte(name))
	decode(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"), &context)
	return cmp.Or(context.Endpoints.Docker.Host, name)
}

// decode leaves v as it is where there is no such file.
func decode(file string, v any) {
	if text, err := bounded.File(file, bounded.Written); err == nil {
		_ = json.Unmarshal(text, v)
	}
}
