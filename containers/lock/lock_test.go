package lock

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

func TestTheLockIsValid(t *testing.T) {
	l, err := Load()
	require.NoError(t, err)
	for name, version := range map[string]string{"terraform": "1.15.9", "kubectl": "1.37.2"} {
		require.Equal(t, version, l.Versions()[name])
	}
	for _, name := range []string{
		"toolchain", "node", "pause", "coredns", "local-path-provisioner", "busybox",
	} {
		i, ok := l.Image(name)
		require.True(t, ok, name)
		require.False(t, i.OnDemand, "%s is in every bundle", name)
	}
	for _, name := range []string{"argocd", "redis", "gitea", "postgresql", "guestbook", "dex", "console", "external-secrets", "portal"} {
		i, ok := l.Image(name)
		require.True(t, ok, name)
		require.True(t, i.OnDemand, name)
	}
	argocd, _ := l.Image("argocd")
	for _, m := range l.Manifests {
		require.True(t, m.OnDemand, m.Name)
		if m.Name == "argocd" {
			require.Equal(t, argocd.Version, m.Version)
		}
	}
}

// TestTheLockIsComplete: what only the lock of this program has to have.
func TestTheLockIsComplete(t *testing.T) {
	l, err := Load()
	require.NoError(t, err)
	version, sha, sum := regexp.MustCompile(`^[0-9]+(\.[0-9]+)*(-[a-z0-9.]+)?$`), regexp.MustCompile(`^[0-9a-f]{64}$`), regexp.MustCompile(`^h1:[A-Za-z0-9+/]{43}=$`)
	modules := func(at string, all []Module) {
		for _, m := range all {
			require.NotEmpty(t, m.Path, at)
			require.True(t, strings.HasPrefix(m.Version, "v"), at)
			require.Regexp(t, sum, m.Sum, at)
		}
	}
	require.NotEmpty(t, l.Suite)
	for _, tool := range l.Tools {
		require.Regexp(t, version, tool.Version, tool.Name)
		require.NotEmpty(t, tool.Modules, tool.Name)
		modules(tool.Name, tool.Modules)
	}
	for _, i := range l.Images {
		require.Regexp(t, version, i.Version, i.Name)
		require.True(t, len(i.Modules)+len(i.Debian) > 0 || i.Source != "", "%s has no origin", i.Name)
		require.True(t, i.Workload || !i.OnDemand, "%s: only workloads can be on demand", i.Name)
		require.True(t, slices.IsSorted(i.Debian), i.Name)
		modules(i.Name, i.Modules)
	}
	for _, m := range l.Manifests {
		require.Regexp(t, version, m.Version, m.Name)
		require.NotEmpty(t, m.Modules, m.Name)
		require.NotEmpty(t, m.Files, m.Name)
		modules(m.Name, m.Modules)
		places := map[string]string{}
		for file, is := range m.Files {
			require.Regexp(t, sha, is, file)
			require.Empty(t, places[m.Place(file)], "%s has the place in a bundle of another file", file)
			places[m.Place(file)] = file
		}
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	_, err := Parse([]byte(`
version: 1
tools:
  - {name: Terraform, version: "1"}
images:
  - {name: a, version: "1"}
  - {name: a, version: "1"}
manifests:
  - {name: M, version: "1"}
packages: {linux/riscv64: []}
`))
	require.NotErrorIs(t, err, &fault.Fault{Code: fault.CodeBug}, "it is not the program's own")
	for _, want := range []string{
		`"Terraform" is no name`, `"linux/riscv64" is neither linux/amd64`, "image a: is listed twice", `manifest M: "M" is no name`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "%!")

	_, err = Parse([]byte("version: 2\n"))
	require.ErrorContains(t, err, "version is 2")
	_, err = Parse([]byte("version: 1\ncolour: red\n"))
	require.ErrorContains(t, err, "colour")
}

// Names in a lock are those of whoever wrote it.
func TestALockOfAnybody(t *testing.T) {
	_, err := Parse([]byte(`{version: 1, suite: trixie, tools: [{name: "%999999[1]v%d", version: '1'}]}`))
	require.ErrorContains(t, err, `tool %999999[1]v%d: "%999999[1]v%d" is no name`)
	require.NotContains(t, err.Error(), "%!")
	_, err = Parse([]byte(`{version: 1, suite: trixie, images: [{name: "x\n\nerror LCK-000: forged\e[2J", version: '1'}]}`))
	require.ErrorContains(t, err, `image x\n\nerror LCK-000: forged\x1b[2J: "x\n\nerror`)
	for _, text := range []string{
		`{version: 1, images: [` + strings.Repeat("{},", 10_000) + `{}]}`,
		`{version: 1, packages: {linux/amd64: [` + strings.Repeat("{},", 10_000) + `{}]}}`,
	} {
		_, err = Parse([]byte(text))
		require.ErrorContains(t, err, "and more than these 100 problems")
		require.Less(t, strings.Count(err.Error(), "\n"), 101)
	}
	_, err = Parse([]byte(`{version: 1, images: [{name: ` + strings.Repeat("X", 1<<20) + `}], ` + strings.Repeat("x", 1<<20) + `: 1}`))
	require.Less(t, len(err.Error()), 20_000)
	_, err = Parse(make([]byte, maxText+1))
	require.ErrorContains(t, err, "larger than what is read of such a file, 4 MiB")
}

// made is a bundle that holds what the lock says.
func made(l *Lock) *bundle.Bundle {
	sum := strings.Repeat("a", 64)
	b := &bundle.Bundle{Index: bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}}
	for _, t := range l.Tools {
		b.Files = append(b.Files, bundle.File{
			Path: "bin/" + t.Name, Name: t.Name, Kind: bundle.Tool, Version: t.Version, Origin: t.Modules[0].Origin(), SHA256: sum,
		})
	}
	for _, i := range l.Images {
		b.Index.Images = append(b.Index.Images, bundle.Image{
			Name: i.Name, Ref: bundle.Host + "/" + i.Name + ":" + i.Version, Digest: "sha256:" + sum, StandsFor: i.StandsFor,
		})
	}
	for _, m := range l.Manifests {
		for file, sum := range m.Files {
			b.Files = append(b.Files, bundle.File{
				Path: m.Place(file), Name: m.Name, Kind: bundle.Manifest, Version: m.Version,
				Origin: m.Modules[0].Origin() + "#" + file, SHA256: sum,
			})
		}
	}
	return b
}

func TestVerifyNamesEveryDifference(t *testing.T) {
	l, err := Load()
	require.NoError(t, err)
	require.NoError(t, l.Verify(made(l)))

	b := made(l)
	b.Files[0].Version = "9.9.9"
	b.Files[1].Origin = "go:elsewhere@v1.0.0"
	manifest := slices.IndexFunc(b.Files, func(f bundle.File) bool { return f.Name == "argocd" })
	b.Files[manifest].SHA256 = strings.Repeat("b", 64)
	b.Index.Images[0].Ref = "slipway.local/toolchain:99"
	b.Index.Images = slices.DeleteFunc(b.Index.Images, func(i bundle.Image) bool { return i.Name == "coredns" })
	err = l.Verify(b)
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeLock})
	for _, want := range []string{
		"tool " + l.Tools[0].Name + ": the bundle has version 9.9.9", "from go:elsewhere@v1.0.0",
		"manifest argocd: the sha256 of manifests/core-install.yaml is bbb", "slipway.local/toolchain:99", "image coredns: is not in the bundle",
	} {
		require.ErrorContains(t, err, want)
	}
}

// TestWhatIsOnDemandMayBeMissing: but what is there is the lock's.
func TestWhatIsOnDemandMayBeMissing(t *testing.T) {
	l, err := Load()
	require.NoError(t, err)
	b := made(l)
	at := slices.IndexFunc(b.Index.Images, func(i bundle.Image) bool { return i.Name == "dex" })
	b.Index.Images[at].Ref = "slipway.local/dex:0.1"
	require.ErrorContains(t, l.Verify(b), "image dex: the bundle has slipway.local/dex:0.1")
	b.Index.Images = slices.Delete(b.Index.Images, at, at+1)
	require.NoError(t, l.Verify(b))
	const many = "argo-workflows"
	at = slices.IndexFunc(b.Files, func(f bundle.File) bool { return f.Name == many })
	gone := b.Files[at]
	b.Files = slices.Delete(b.Files, at, at+1)
	_, file, _ := strings.Cut(gone.Origin, "#")
	require.ErrorContains(t, l.Verify(b), "manifest "+many+": "+file+" is not in the bundle", "the others are")
	b.Files = slices.DeleteFunc(b.Files, func(f bundle.File) bool { return f.Name == many })
	require.NoError(t, l.Verify(b))
}

func TestALockOfTheProgramItselfThatCannotBeRead(t *testing.T) {
	_, err := own([]byte("version: 1\ncolour: red\n"))
	require.ErrorIs(t, err, &fault.Fault{Code: fault.CodeBug})
	require.Equal(t, fault.Bug, fault.ClassOf(err))
	require.ErrorContains(t, err, "read lock.yaml: ")
	require.ErrorContains(t, err, "colour")
}
