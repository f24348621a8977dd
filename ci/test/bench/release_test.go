package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config/platform"
)

// What a second half of install.sh gets from its first one, so that it says what it would
// do. It ends before the part that is called END.
const firstHalf = `set -eu
domain=slipway.test DEPLOYMENT=bench class=local-path
. "$seen/pins.env"
say() { [ "$*" != "$END" ] || exit 0; }
die() { echo "error: $*" >&2; exit 1; }
document() { { echo ---; cat; } >>"$seen/objects.yaml"; }
did() { echo "$*" >>"$seen/did"; }
namespaces() { for name in "$@"; do echo "{kind: Namespace, metadata: {name: $name}}" | document; done; }
keep() { { echo "{kind: Secret, metadata: {namespace: $1, name: $2, labels: {${3:-}}},"; echo "stringData: {$(cat)}}"; } | document; }
certificate() { echo "$*" >>"$seen/certificates"; }
indented() { echo "    the CA"; }
secret() { echo "$1/$2/$3"; }
password() { printf "%${1:-32}s" | tr ' ' p; }
token() { printf "%${1:-32}s" | tr ' ' f; }
apply() { for last; do :; done; if [ "$last" = - ]; then document; else did "apply $(basename "$last")"; fi; }
until_ok() { shift 2; did "$*"; }
rolled_out() { did "rollout $2"; }
address() { echo 192.0.2.1; }
helmfile() { did "helmfile $*"; }
kubectl() {
	case "$*" in
	kustomize*) cat "$2/kustomization.yaml" ;;
	*clusterIP*) echo "address of $5" ;;
	*) did "$*" ;;
	esac
}
. "$bench/$PLATFORM.sh"
`

// said is what a second half has said that it would do.
type said struct {
	dir     string   // its folder for temporary files
	objects []object // that it makes itself
	hosts   []string // "namespace secret host…" of each certificate
	did     string   // its commands
}

type object struct {
	Kind     string
	Metadata struct {
		Namespace, Name string
		Labels          map[string]string
	}
	Data       map[string]any
	StringData map[string]any `yaml:"stringData"`
}

// dry runs a script's second half up to the part that is called end.
func dry(t *testing.T, r release, end string, env ...string) said {
	t.Helper()
	seen := t.TempDir()
	s := said{dir: t.TempDir()}
	p := pins{images: map[string]string{}}
	for _, c := range load(t, r).Components {
		for _, name := range c.ImageNames() {
			p.images[name] = referenceOf(name)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(seen, "pins.env"), []byte(p.env()), 0o600))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", firstHalf)
	cmd.Env = append(os.Environ(), "seen="+seen, "tmp="+s.dir, "bench=.", "PLATFORM="+r.name, "platform="+directory(r), "END="+end)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(seen, file))
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		return string(text)
	}
	objects := yaml.NewDecoder(strings.NewReader(read("objects.yaml")))
	for {
		var o object
		err := objects.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if o.Kind != "" {
			s.objects = append(s.objects, o)
		}
	}
	s.hosts, s.did = strings.Split(strings.TrimSpace(read("certificates")), "\n"), read("did")
	return s
}

func referenceOf(image string) string { return "slipway.local/" + image + "@sha256:" + image }

func directory(r release) string { return filepath.Join("..", "..", "..", r.dir) }

func load(t *testing.T, r release) *platform.Release {
	t.Helper()
	loaded, err := platform.Load(os.DirFS(directory(r)))
	require.NoError(t, err)
	return loaded
}

// TestTheScriptsMakeWhatTheReleasesDeclare: namespaces, Secrets, ConfigMaps and
// certificates.
func TestTheScriptsMakeWhatTheReleasesDeclare(t *testing.T) {
	fill := map[string]any{"domain": "slipway.test", "adminEmail": "admin@slipway.test",
		"proxy.http": "", "proxy.https": "", "proxy.none": "", "git.knownHosts": ""}
	texts := map[string]string{"domain": "slipway.test", "adminEmail": "admin@slipway.test"}
	for r, end := range map[release]string{reference(): "gitea", minor(): "gitea", major(): "gitea", static(): "postgres"} {
		t.Run(r.dir, func(t *testing.T) {
			want, s := load(t, r), dry(t, r, end)
			var namespaces []string
			secrets, configMaps, labels := map[string]map[string]any{}, map[string]map[string]any{}, map[string]map[string]string{}
			for _, o := range s.objects {
				name := o.Metadata.Namespace + "/" + o.Metadata.Name
				switch o.Kind {
				case "Namespace":
					namespaces = append(namespaces, o.Metadata.Name)
				case "Secret":
					secrets[name], labels[name] = o.StringData, o.Metadata.Labels
				case "ConfigMap":
					configMaps[name] = o.Data
				}
			}
			var declared []string
			for _, n := range want.Namespaces {
				declared = append(declared, n.Name)
				require.Equal(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, n.Labels, "install.sh gives them all the same")
			}
			require.Equal(t, declared, namespaces)
			literals := map[string]any{} // the script writes them down again where others copy them
			for _, sec := range want.Secrets {
				values := map[string]any{}
				for _, k := range sec.Keys {
					switch k.Generate {
					case platform.Literal:
						values[k.Key] = platform.Fill(k.Value, texts)
						literals[sec.Namespace+"/"+sec.Name+"/"+k.Key] = values[k.Key]
					case platform.CopyOf:
						values[k.Key] = k.From
						if literal, ok := literals[k.From]; ok {
							values[k.Key] = literal
						}
					case platform.Password:
						values[k.Key] = strings.Repeat("p", k.Length)
					case platform.Token:
						values[k.Key] = strings.Repeat("f", k.Length)
					}
				}
				require.Equal(t, values, secrets[sec.Namespace+"/"+sec.Name], sec.Name)
				for key, value := range sec.Labels {
					require.Equal(t, value, labels[sec.Namespace+"/"+sec.Name][key], "%s of %s", key, sec.Name)
				}
			}
			require.Len(t, secrets, len(want.Secrets))
			for _, m := range want.ConfigMaps {
				data, err := json.Marshal(m.Data)
				require.NoError(t, err)
				filled, err := platform.FillValues(data, fill)
				require.NoError(t, err)
				require.Equal(t, filled, configMaps[m.Namespace+"/"+m.Name], m.Name)
			}
			var hosts []string
			for _, c := range want.Certificates {
				text := strings.Replace(c.Secret, "/", " ", 1) + " " + strings.Join(c.Hosts, " ")
				hosts = append(hosts, platform.Fill(text, texts))
			}
			require.Equal(t, hosts, s.hosts)
		})
	}
}

// kustomization is what the script writes for a component.
type kustomization struct {
	Namespace string
	Resources []string
	Images    []struct {
		Name, Digest string
		NewName      string `yaml:"newName"`
	}
	Patches []struct{ Patch string }
}

// TestTheScriptAppliesTheStaticRelease: every file, as it is, in the order of the release,
// after the gates of what comes before.
func TestTheScriptAppliesTheStaticRelease(t *testing.T) {
	want := load(t, static())
	s := dry(t, static(), "access")
	at := func(text string) int {
		i := strings.Index(s.did, text+"\n")
		require.GreaterOrEqual(t, i, 0, "%q is not in:\n%s", text, s.did)
		return i
	}
	require.Equal(t, 1, strings.Count(s.did, "apply console\n"))
	for _, c := range want.Components {
		if c.Kind == platform.Gate {
			continue
		}
		for _, name := range c.After {
			before, _ := want.Component(name)
			for _, gate := range gates(before) {
				require.Less(t, at(gate), at("apply "+c.Name), "%s before %s", gate, c.Name)
			}
		}
		for _, gate := range gates(c) {
			require.Less(t, at("apply "+c.Name), at(gate), "%s after it is applied", gate)
		}
	}
	requireFiles(t, want, s.dir, func(service string) string { return "address of " + service })
}

// gates are the commands that wait until a component of the static platform is ready.
func gates(c platform.Component) []string {
	if c.Kind == platform.Job {
		return []string{"wait job -n identity " + c.Name + " --for=condition=Complete --timeout=300s"}
	}
	var out []string
	for _, g := range c.Ready {
		switch {
		case g.Endpoint != "":
			_, service, _ := strings.Cut(g.Endpoint[:strings.IndexByte(g.Endpoint, ':')], "/")
			out = append(out, "has_endpoint "+service)
		case g.HTTP != nil:
			out = append(out, "kubectl get --raw "+proxied(g.HTTP))
		}
	}
	return out
}

// proxied is the path of an HTTP gate at the API server.
func proxied(g *platform.HTTPGate) string {
	_, service, _ := strings.Cut(g.Service, "/")
	return "/api/v1/namespaces/identity/services/https:" + service + "/proxy" + g.Path
}

// requireFiles finds every manifest of the release in an overlay, byte by byte. address is
// that of a Service, which hosts are given.
func requireFiles(t *testing.T, want *platform.Release, dir string, address func(service string) string) {
	t.Helper()
	found := map[string]bool{platform.File: true}
	for _, c := range want.Components {
		if c.Kind == platform.Gate {
			continue
		}
		require.Contains(t, []platform.Kind{platform.Manifests, platform.Job}, c.Kind)
		var k kustomization
		text, err := os.ReadFile(filepath.Join(dir, c.Name, "kustomization.yaml"))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &k))
		require.Equal(t, c.Namespace, k.Namespace)
		require.NoError(t, fs.WalkDir(want.Files(), c.Path, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			found[name] = true
			released, err := fs.ReadFile(want.Files(), name)
			require.NoError(t, err)
			applied, err := os.ReadFile(filepath.Join(dir, c.Name, filepath.Base(name)))
			require.NoError(t, err)
			require.Equal(t, string(released), string(applied))
			require.Contains(t, k.Resources, filepath.Base(name))
			require.NotContains(t, string(released), "{{", "a chart would take it for a template")
			return nil
		}))
		images := map[string]string{}
		for _, i := range k.Images {
			images[i.Name] = i.NewName + "@" + i.Digest
		}
		for _, name := range c.ImageNames() {
			require.Equal(t, referenceOf(name), images["slipway.local/"+name])
		}
		require.Len(t, k.Patches, len(c.Hosts), c.Name)
		for host, service := range c.Hosts {
			host = platform.Fill(host, map[string]string{"domain": "slipway.test"})
			require.Contains(t, k.Patches[0].Patch, "ip: '"+address(filepath.Base(service))+`', hostnames: ["`+host+`"]`)
		}
	}
	require.NoError(t, fs.WalkDir(want.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			require.True(t, found[name], "%s is applied", name)
		}
		return err
	}))
}

// TestHelmfileAppliesTheStaticRelease: a release for each component, of the same files, with
// the same order and gates.
func TestHelmfileAppliesTheStaticRelease(t *testing.T) {
	want := load(t, static())
	s := dry(t, static(), "access", "HELMFILE=1")
	require.Equal(t, "helmfile -f "+s.dir+"/helmfile.yaml sync\n", s.did, "nobody else applies anything")
	var file struct {
		HelmDefaults struct {
			Wait        bool
			WaitForJobs bool `yaml:"waitForJobs"`
		} `yaml:"helmDefaults"`
		Releases []struct {
			Name, Namespace, Chart string
			Needs                  []string
			Hooks                  []struct{ Events, Args []string }
		}
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "helmfile.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.True(t, file.HelmDefaults.Wait && file.HelmDefaults.WaitForJobs)
	for _, c := range want.Components {
		if c.Kind == platform.Gate {
			continue
		}
		require.NotEmpty(t, file.Releases, c.Name)
		r := file.Releases[0]
		file.Releases = file.Releases[1:]
		require.Equal(t, c.Name, r.Name)
		require.Equal(t, c.Namespace, r.Namespace)
		require.FileExists(t, filepath.Join(s.dir, r.Chart, "templates/objects.yaml"))
		require.FileExists(t, filepath.Join(s.dir, r.Chart, "Chart.yaml"))
		require.Equal(t, c.Name, filepath.Base(r.Chart))
		require.Equal(t, strings.Join(c.After, " "), strings.ReplaceAll(strings.Join(r.Needs, " "), c.Namespace+"/", ""))
		for _, g := range c.Ready {
			if g.HTTP != nil {
				require.Equal(t, []string{"postsync"}, r.Hooks[0].Events)
				require.Regexp(t, regexp.QuoteMeta(proxied(g.HTTP))+";", strings.Join(r.Hooks[0].Args, " "))
			}
		}
	}
	require.Empty(t, file.Releases)
	requireFiles(t, want, s.dir, func(service string) string {
		return `{{ (lookup "v1" "Service" "identity" "` + service + `").spec.clusterIP }}`
	})
}
