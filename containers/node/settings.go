package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// What every node has in common. The addresses exist inside its container only,
// so that no two nodes can disturb each other.
const (
	nodeName      = "slipway-node"
	nodeAddress   = "10.99.0.1" // on a dummy interface: the same after each restart
	serviceCIDR   = "10.96.0.0/16"
	apiServiceIP  = "10.96.0.1"
	dnsServiceIP  = "10.96.0.10"
	podCIDR       = "10.244.0.0/16"
	clusterDomain = "cluster.local"
	apiPort       = 6443
	healthPort    = 6444
	runDir        = "/run/slipway-node"
	criSocket     = "/run/containerd/containerd.sock"
	localAPI      = "https://127.0.0.1:6443"
	registryHost  = "slipway.local"
)

var errUsage = errors.New("wrong command line")

// settings are the flags of run and wipe, and what follows from them.
type settings struct {
	Data           string        // directory on a persistent volume
	AccessFile     string        // where the admin kubeconfig is written
	Images         []string      // OCI archives of the images that the node serves
	Overrides      string        // file with the images that stand for others; empty for none
	PauseImage     string        // reference
	ClusterName    string        // in the kubeconfig
	RegistryMirror string        // URL of the registry that has slipway.local's images, with their common path; empty means the archives
	RegistryAuth   string        // file with the account for that registry, as docker's config.json; empty for none
	OwnNames       bool          // the node's registry also has images of other registries: containerd asks it first for all
	LogDir         string        // of the components' logs
	LockWait       time.Duration // how long to wait for another holder of the volume
}

func parseSettings(args []string) (settings, error) {
	s := settings{AccessFile: "/slipway/state/secrets/kubeconfig", LockWait: 30 * time.Second}
	f := pflag.NewFlagSet("slipway-node", pflag.ContinueOnError)
	f.StringVar(&s.Data, "data", "/var/lib/slipway-node", "directory on a persistent volume; must not be on an overlay")
	f.StringArrayVar(&s.Images, "images", []string{"/slipway/images/workloads.tar"}, "OCI archive of images that the node serves to pods, once for each; without a mirror")
	f.StringVar(&s.Overrides, "overrides", "", "JSON file that says which upstream references the images stand for")
	f.StringVar(&s.PauseImage, "pause-image", "", "image of the pod sandbox; run requires it")
	f.StringVar(&s.ClusterName, "cluster-name", "slipway", "name of the cluster in the kubeconfig")
	f.StringVar(&s.RegistryMirror, "registry-mirror", "", "URL of the registry that has the images of slipway.local/…, http or https, with the path before the images' names; in place of the archives")
	f.StringVar(&s.RegistryAuth, "registry-auth", "", "file as docker's config.json with the account of that registry; it is read once, and unmounted if it is a mount")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return s, err
		}
		return s, fmt.Errorf("%w: %w; see slipway-node run --help", errUsage, err)
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("%w: unexpected argument %q; see slipway-node run --help", errUsage, f.Arg(0))
	}
	if !filepath.IsAbs(s.Data) || filepath.Clean(s.Data) == "/" {
		return s, fmt.Errorf("%w: --data must be an absolute path of a directory of its own, not %q", errUsage, s.Data)
	}
	if s.RegistryMirror != "" {
		mirror, err := url.Parse(s.RegistryMirror)
		if err != nil || mirror.Host == "" {
			return s, fmt.Errorf("%w: --registry-mirror is not a URL such as https://registry.example.com/slipway", errUsage)
		}
		s.RegistryMirror = strings.TrimRight(mirror.String(), "/") // the scheme in lower case
	}
	s.Data = filepath.Clean(s.Data)
	s.LogDir = filepath.Join(s.Data, "logs")
	return s, nil
}

// pkiDir has the keys and certificates, in the data directory.
const pkiDir = "pki"

func (s settings) pki(name string) string { return filepath.Join(s.Data, pkiDir, name) }

func (s settings) file(name string) string { return filepath.Join(s.Data, name) }
