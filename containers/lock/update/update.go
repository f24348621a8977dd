// Package update finds the public origins that a lock does not have yet: it asks
// vendors and registries, and enters what two independent sources agree on. It
// needs a network, which package lock does not.
package update

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-sh/slipway/containers/lock"
)

// maxBody is the most that is read of one source, in bytes.
const maxBody = 16 << 20

// Release says where a tool's release is and who tells its sha256. In every
// string {version}, {os} and {arch} stand for those of the tool and platform.
type Release struct {
	URL       string
	Witnesses []Witness
}

// Witness is a public page that tells the sha256 of a release.
type Witness struct {
	Name string // who says so; two witnesses of one name count once
	URL  string
	// Line is a regular expression; the sha256 is its first group. Empty takes
	// the first word of the page.
	Line string
	// After begins the search behind the first line with this text, for pages
	// with many tools. May be empty.
	After []string
}

// Sources are the places that are asked.
type Sources struct {
	Client *http.Client // nil is http.DefaultClient
	Tools  map[string]Release
	// Images are references in independent registries that hold the same image.
	Images map[string][]string
	// Insecure allows registries without TLS, for tests.
	Insecure bool
}

// Public are the public places for the tools of the toolchain.
func Public() Sources {
	const kubespray = "https://raw.githubusercontent.com/kubernetes-sigs/kubespray/master/roles/kubespray_defaults/vars/main/checksums.yml"
	inKubespray := func(tool string) Witness {
		return Witness{
			Name: "kubernetes-sigs/kubespray", URL: kubespray, After: []string{tool + "_checksums:", "  {arch}:"},
			Line: `^\s+{version}: sha256:([0-9a-f]{64})$`,
		}
	}
	return Sources{
		Tools: map[string]Release{
			"terraform": {
				URL: "https://releases.hashicorp.com/terraform/{version}/terraform_{version}_{os}_{arch}.zip",
				Witnesses: []Witness{
					{
						Name: "HashiCorp", URL: "https://releases.hashicorp.com/terraform/{version}/terraform_{version}_SHA256SUMS",
						Line: `^([0-9a-f]{64})  terraform_{version}_{os}_{arch}\.zip$`,
					},
					{
						Name: "hashicorp/homebrew-tap on GitHub", URL: "https://raw.githubusercontent.com/hashicorp/homebrew-tap/master/Formula/terraform.rb",
						After: []string{"terraform_{version}_{os}_{arch}.zip"}, Line: `sha256 "([0-9a-f]{64})"`,
					},
				},
			},
			"helm": {
				URL: "https://get.helm.sh/helm-v{version}-{os}-{arch}.tar.gz",
				Witnesses: []Witness{
					{Name: "get.helm.sh", URL: "https://get.helm.sh/helm-v{version}-{os}-{arch}.tar.gz.sha256sum"},
					inKubespray("helm_archive"),
				},
			},
			"kubectl": {
				URL: "https://dl.k8s.io/release/v{version}/bin/{os}/{arch}/kubectl",
				Witnesses: []Witness{
					{Name: "dl.k8s.io", URL: "https://dl.k8s.io/release/v{version}/bin/{os}/{arch}/kubectl.sha256"},
					inKubespray("kubectl"),
				},
			},
		},
		Images: map[string][]string{
			"coredns": {"registry.k8s.io/coredns/coredns:v{version}", "docker.io/coredns/coredns:{version}"},
		},
	}
}

// Finding is what the sources say about one missing origin.
type Finding struct {
	Name     string // of the tool or image
	Image    bool   // it is an image
	Platform string
	Place    string // URL or reference with tag
	Digest   string // hex sha256 of a tool, "sha256:…" of an image; empty if they disagree
	Sources  []string
	Problem  string // why it cannot be entered; empty if it can
}

// Resolve asks for every origin that l does not have for platform, such as
// "linux/amd64". What a source does not answer is a Problem of its finding, not
// an error.
func (s Sources) Resolve(ctx context.Context, l *lock.Lock, platform string) ([]Finding, error) {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, fmt.Errorf("%q is no platform", platform)
	}
	var found []Finding
	for _, t := range l.Tools {
		release, known := s.Tools[t.Name]
		if _, has := t.Release[platform]; has || !known {
			continue
		}
		fill := strings.NewReplacer("{version}", t.Version, "{os}", system, "{arch}", arch)
		f := Finding{Name: t.Name, Platform: platform, Place: fill.Replace(release.URL)}
		var answers []answer
		for _, w := range release.Witnesses {
			digest, err := s.ask(ctx, w, fill, t.Version)
			answers = append(answers, answer{w.Name, digest, err})
		}
		found = append(found, f.check(answers))
	}
	for _, i := range l.Images {
		refs := s.Images[i.Name]
		if _, has := i.Registry[platform]; has || len(refs) == 0 {
			continue
		}
		fill := strings.NewReplacer("{version}", i.Version)
		f := Finding{Name: i.Name, Image: true, Platform: platform, Place: fill.Replace(refs[0])}
		var answers []answer
		for _, ref := range refs {
			digest, err := s.digest(ctx, fill.Replace(ref), v1.Platform{OS: system, Architecture: arch})
			answers = append(answers, answer{fill.Replace(ref), digest, err})
		}
		found = append(found, f.check(answers))
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("ask for public origins: %w", context.Cause(ctx))
	}
	return found, nil
}

type answer struct {
	source, digest string
	err            error
}

// check accepts a digest that at least two sources tell and none denies.
func (f Finding) check(answers []answer) Finding {
	var silent []string
	said := map[string]bool{}
	for _, a := range answers {
		switch {
		case a.err != nil:
			silent = append(silent, a.err.Error())
		case !slices.Contains(f.Sources, a.source):
			f.Sources, f.Digest, said[a.digest] = append(f.Sources, a.source), a.digest, true
		}
	}
	switch {
	case len(said) > 1:
		f.Problem, f.Digest = "the sources disagree", ""
		for _, a := range answers {
			if a.err == nil {
				f.Problem += fmt.Sprintf("; %s says %s", a.source, a.digest)
			}
		}
	case len(f.Sources) < 2:
		f.Problem = fmt.Sprintf("%d of the two sources that are needed answered: %s", len(f.Sources), strings.Join(silent, "; "))
	}
	return f
}

// askLimit is how long a witness may take to answer.
const askLimit = time.Minute

// ask reads one witness.
func (s Sources) ask(ctx context.Context, w Witness, fill *strings.Replacer, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	address := fill.Replace(w.URL)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", w.Name, err)
	}
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("ask %s: no answer within %s: %w", w.Name, askLimit, err)
	}
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", w.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ask %s: %s answers %s", w.Name, address, response.Status)
	}
	line := `^([0-9a-f]{64})\b`
	if w.Line != "" {
		// The version is text in the expression: its dots are not wildcards.
		line = fill.Replace(strings.ReplaceAll(w.Line, "{version}", regexp.QuoteMeta(version)))
	}
	expression, err := regexp.Compile(line)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", w.Name, err)
	}
	after := slices.Clone(w.After)
	lines := bufio.NewScanner(io.LimitReader(response.Body, maxBody))
	for lines.Scan() {
		if len(after) > 0 {
			if strings.Contains(lines.Text(), fill.Replace(after[0])) {
				after = after[1:]
			}
			continue
		}
		if match := expression.FindStringSubmatch(lines.Text()); match != nil {
			return match[1], nil
		}
	}
	return "", errors.Join(fmt.Errorf("ask %s: %s does not tell the sha256", w.Name, address), lines.Err())
}

// digest asks a registry for the manifest of an image for one platform.
func (s Sources) digest(ctx context.Context, reference string, platform v1.Platform) (string, error) {
	var options []name.Option
	if s.Insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(reference, options...)
	if err != nil {
		return "", fmt.Errorf("ask for %s: %w", reference, err)
	}
	settings := []remote.Option{remote.WithContext(ctx), remote.WithPlatform(platform)}
	if s.Client != nil && s.Client.Transport != nil {
		settings = append(settings, remote.WithTransport(s.Client.Transport))
	}
	image, err := remote.Image(ref, settings...)
	if err != nil {
		return "", fmt.Errorf("ask for %s: %w", reference, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("ask for %s: %w", reference, err)
	}
	return digest.String(), nil
}
