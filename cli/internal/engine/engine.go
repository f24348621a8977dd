// Package engine says which Dagger engine is at hand, as far as the environment tells. No engine
// is asked: one that has lost its volumes is still the one that it was.
package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/daggercli"
)

// Location is where an engine is.
type Location struct {
	Address string `json:"engine"` // as the environment names it
	// Machine identifies the machine that Address is of, and Host is what that is called. Both
	// are empty where Address says it, or nothing does.
	Machine string `json:"machine,omitempty"`
	Host    string `json:"host,omitempty"`
}

// Is reports whether nothing tells the engine from another one. A machine that was installed
// anew is the same one if it is called as before, and so is one that is called otherwise.
func (l Location) Is(other Location) bool {
	return l.Address == other.Address &&
		(l.Machine == other.Machine || l.Host == other.Host || l.Machine == "" || other.Machine == "")
}

// String names the engine for people.
func (l Location) String() string {
	if l.Host == "" {
		return l.Address
	}
	return l.Address + " of machine " + l.Host
}

// AtHand is the engine that the environment names.
func AtHand() Location { return atHand("/etc/machine-id") }

// atHand is AtHand where a file identifies the machine.
func atHand(machineFile string) Location {
	l := Location{Address: os.Getenv(daggercli.EnvRunner)}
	at := l.Address
	if byDocker(at) {
		l.Address, at = cmp.Or(inVolume(at), at, "the engine that the dagger CLI starts in Docker"), docker()
		if at != "" {
			l.Address += " (" + at + ")"
		}
	}
	if inNetwork(at) {
		return l
	}
	if text, err := bounded.File(machineFile, bounded.Written); err == nil && len(text) > 0 {
		sum := sha256.Sum256(append([]byte("slipway "), text...)) // the file is not for others to see
		l.Machine = hex.EncodeToString(sum[:8])
		l.Host, _ = os.Hostname() // for people only
	}
	return l
}

// byDocker reports whether the dagger CLI has Docker find the engine with an address.
func byDocker(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return slices.Contains([]string{"", "image", "container", "docker-image", "docker-container", "image+docker", "container+docker"}, scheme)
}

// inVolume names an engine by the volume that its address gives it: it is the same one with
// another image (make engine). Empty: there is none.
func inVolume(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Query().Get("volume") == "" {
		return ""
	}
	return "the engine of the volume " + u.Query().Get("volume") + " in Docker"
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

// inNetwork reports whether an address is the same from every machine.
func inNetwork(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"tcp", "ssh", "http", "https", "kube-pod", "dagger-cloud"}, u.Scheme) {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
}
