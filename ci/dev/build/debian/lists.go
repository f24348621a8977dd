package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

// Lists are a release's package lists for its architecture, whatever this machine's is, in a
// folder of their own. apt has compared them with Debian's signature.
type Lists struct {
	dir    string
	config string // of apt
}

// Close removes the lists.
func (l Lists) Close() { _ = os.RemoveAll(l.dir) }

// FetchLists has apt fetch the lists of a release, for the caller to close. It needs no root.
func FetchLists(ctx context.Context, release Release) (l Lists, err error) {
	dir, err := os.MkdirTemp("", "slipway-lists-*")
	if err != nil {
		return l, err
	}
	l = Lists{dir, filepath.Join(dir, "apt.conf")}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	err = errors.Join(
		os.MkdirAll(filepath.Join(dir, "state/lists/partial"), 0o755),
		os.MkdirAll(filepath.Join(dir, "cache/archives/partial"), 0o755),
		os.WriteFile(filepath.Join(dir, "status"), nil, 0o644), // nothing is installed
		os.WriteFile(filepath.Join(dir, "sources.list"), []byte(release.Sources), 0o644),
		os.WriteFile(l.config, []byte(listsConfig(dir, release.arch())), 0o644),
	)
	if err != nil {
		return l, fmt.Errorf("prepare apt for %s: %w", release.arch(), err)
	}
	_, err = l.run(ctx, "apt-get", "-q", "--error-on=any", "update")
	return l, err
}

// listsConfig keeps apt to the files below dir and to one architecture.
func listsConfig(dir, arch string) string {
	return fmt.Sprintf(`Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "%[2]s";
APT::Architectures { "%[2]s"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "5";
`, dir, arch)
}

// Show is what apt-cache shows of packages, each as name=version.
func (l Lists) Show(ctx context.Context, packages []string) ([]byte, error) {
	return l.run(ctx, "apt-cache", append([]string{"show"}, packages...)...)
}

// RequireUpdated fails if Debian has security updates for packages, and names them. versions is
// by name; fix says how the updates are installed.
func (l Lists) RequireUpdated(ctx context.Context, versions map[string]string, fix string) error {
	out, err := l.run(ctx, "apt-cache", append([]string{"policy"}, slices.Sorted(maps.Keys(versions))...)...)
	if err != nil {
		return err
	}
	there, problems := policies(out), []error(nil)
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		p, version := there[name], versions[name]
		if p.candidate == "" || p.candidate == "(none)" {
			problems = append(problems, fmt.Errorf("apt does not know the package %s", name))
			continue
		}
		for _, update := range p.security {
			newer := exec.CommandContext(ctx, "dpkg", "--compare-versions", update, "gt", version)
			if err := newer.Run(); err == nil {
				problems = append(problems, fmt.Errorf("%s %s: Debian has the security update %s", name, version, update))
			} else if newer.ProcessState == nil || newer.ProcessState.ExitCode() != 1 { // 1 says that it is not newer
				return fmt.Errorf("compare versions of %s: %w", name, err)
			}
		}
	}
	if len(problems) > 0 {
		problems = append(problems, errors.New("remedy: "+fix))
	}
	return errors.Join(problems...)
}

type policy struct {
	candidate string   // the version that would be installed
	security  []string // the versions that are security updates
}

// policies reads what apt-cache policy prints, by package.
func policies(text []byte) map[string]policy {
	all := map[string]policy{}
	name, version := "", ""
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		p := all[name]
		switch {
		case !strings.HasPrefix(line, " "): // libc6:
			name, p = strings.TrimSuffix(fields[0], ":"), policy{}
		case fields[0] == "Candidate:":
			p.candidate = fields[1]
		case strings.HasPrefix(line, "     ") && !strings.HasPrefix(line, "      "): // "     2.36-9 500", a version
			version = fields[0]
		case len(fields) > 2 && strings.Contains(fields[2], "-security"): // "        500 URL SUITE/COMPONENT ARCH Packages"
			p.security = append(p.security, version)
		}
		all[name] = p
	}
	delete(all, "")
	return all
}

func (l Lists) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "APT_CONFIG="+l.config)
	var output, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &problems
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("%s %s: %w\n%s", program, args[0], err, build.LastLines(problems.String(), 10))
	}
	return output.Bytes(), nil
}
