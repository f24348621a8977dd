package main

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
	"github.com/slipway-sh/slipway/ci/dev/build/store"
	"github.com/slipway-sh/slipway/ci/dev/bundle/rootfs"
)

//go:embed postgresql.sh
var postgresqlEntrypoint []byte

// Users of the images.
const (
	argocdID     = 999
	postgresqlID = 999
	redisID      = 999
	gitID        = 1000
)

// Packages that more than one image has: one layer serves them all.
var shared = []string{"ca-certificates", "curl", "git", "openssh-client"} //nolint:gochecknoglobals // a constant list

// perl leaves out Perl's library beyond its base: Debian's set-up scripts, git
// and PostgreSQL bring it for commands that no image runs.
var perl = []string{"usr/share/perl", "usr/share/perl5", "usr/lib/*-linux-gnu/perl", "usr/lib/*-linux-gnu/libperl.so*"} //nolint:gochecknoglobals // a constant list

// certificateTool is left out of every container that Dagger runs: where it is
// there, the engine runs it before and after each command, which takes longer
// than most commands; without it the engine appends to the bundle of
// certificates itself.
const certificateTool = "usr/sbin/update-ca-certificates"

// gitTrim leaves out what only developers' machines run.
var gitTrim = append([]string{ //nolint:gochecknoglobals // a constant list
	certificateTool,
	"usr/bin/scalar", "usr/lib/git-core/scalar", "usr/lib/git-core/git-imap-send", "usr/lib/git-core/git-http-push",
	"usr/lib/git-core/git-daemon", "usr/share/gitweb",
}, perl...)

// nodeTrim leaves out the network plugins that the node's network has no use for.
var nodeTrim = append([]string{ //nolint:gochecknoglobals // a constant list
	certificateTool,
	"usr/lib/cni/dhcp", "usr/lib/cni/macvlan", "usr/lib/cni/ipvlan", "usr/lib/cni/vlan", "usr/lib/cni/vrf",
	"usr/lib/cni/sbr", "usr/lib/cni/static", "usr/lib/cni/host-device",
}, perl...)

// additions are the Debian layers on the base, by name. A layer named after an
// image holds the packages that the lock gives it, without those of "git" where
// it stands on that layer.
func (b *builder) additions() []addition {
	all := func(name string) []string {
		image, _ := b.lock.Image(name)
		return image.Debian
	}
	own := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(all(name)), func(p string) bool { return slices.Contains(shared, p) })
	}
	user := func(name string, id int, home string) string {
		return fmt.Sprintf("groupadd --gid %d %s\nuseradd --uid %d --gid %d --home-dir %s --shell /usr/sbin/nologin %s\n",
			id, name, id, id, home, name)
	}
	layers := []addition{
		{on: "base", Addition: rootfs.Addition{Name: "git", Packages: shared, Trim: gitTrim}},
		{on: "base", Addition: rootfs.Addition{Name: "node", Packages: all("node"), Trim: nodeTrim}},
		{on: "git", Addition: rootfs.Addition{
			Name: "argocd", Packages: own("argocd"), Before: user("argocd", argocdID, "/home/argocd"),
		}},
		{on: "base", Addition: rootfs.Addition{
			Name: "postgresql", Packages: all("postgresql"),
			Before: user("postgres", postgresqlID, "/var/lib/postgresql") +
				"mkdir -p /etc/postgresql-common\necho create_main_cluster=false > /etc/postgresql-common/createcluster.conf\n",
			// A key made at installation is nobody's secret and never the same.
			After: "rm -f /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem\nfind /etc/ssl/certs -xtype l -delete\n",
			// Just-in-time compilation would bring all of LLVM.
			Trim: append([]string{
				"usr/lib/*-linux-gnu/libLLVM*", "usr/lib/llvm-*", "usr/lib/postgresql/*/lib/bitcode", "usr/lib/postgresql/*/lib/llvmjit*",
				"usr/lib/*-linux-gnu/libz3.so*", "usr/share/i18n",
			}, perl...),
		}},
		{on: "base", Addition: rootfs.Addition{
			Name: "redis", Packages: all("redis"), Before: user("redis", redisID, "/var/lib/redis"),
		}},
		{on: "base", Addition: rootfs.Addition{Name: "busybox", Packages: all("busybox")}},
		{on: "base", Addition: rootfs.Addition{Name: seccompLayer, Packages: []string{gotool.RuncLibrary}}},
	}
	return slices.DeleteFunc(layers, func(a addition) bool { // those of images that are left out
		_, there := b.lock.Image(a.Name)
		return !there && !slices.Contains([]string{"git", seccompLayer}, a.Name)
	})
}

type addition struct {
	rootfs.Addition
	on string
}

type definition struct {
	debian string // the layer it stands on; empty for an image of files alone
	config oci.Config
	files  []oci.File
	trees  []oci.Tree
	// treesVersion stands for the trees' content, which is not read to find out
	// whether it changed.
	treesVersion string
}

// program is a file layer's entry for a built command.
func (b *builder) program(name, path string) oci.File {
	return oci.File{Path: path, Mode: 0o755, Source: b.built[name]}
}

// definitions says how each image is made. All commands and Debian layers are
// there already.
func (b *builder) definitions(ctx context.Context) (map[string]definition, error) {
	certificates := oci.File{
		Path: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644,
		Source: b.layers["git"].File("etc/ssl/certs/ca-certificates.crt"),
	}
	nobody := oci.File{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")}
	tmp := oci.File{Path: "tmp", Mode: 0o777 | os.ModeSticky, Dir: true}
	path := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

	busybox, err := b.busybox(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]definition{
		"toolchain": {debian: "git", config: oci.Config{Env: path, Cmd: []string{"/bin/bash"}}},
		"node": {
			debian: "node",
			config: oci.Config{
				Env: path, Entrypoint: []string{"/usr/local/bin/slipway-node", "run"},
				Ports: []string{"6443/tcp"}, StopSignal: "SIGTERM",
			},
			files: []oci.File{
				b.program(slipwayNode, "usr/local/bin/slipway-node"),
				b.program(etcd, "usr/local/bin/etcd"),
				b.program(containerd, "usr/local/bin/containerd"),
				b.program(shim, "usr/local/bin/containerd-shim-runc-v2"),
				b.program(gotool.Runc, "usr/local/bin/runc"),
				{Path: "opt/cni", Mode: 0o755, Dir: true},
				{Path: "opt/cni/bin", Link: "/usr/lib/cni"},
			},
		},
		"busybox": {config: oci.Config{Env: path, Cmd: []string{"sh"}}, files: busybox},
		"coredns": {
			config: oci.Config{Entrypoint: []string{"/coredns"}, Ports: []string{"53/udp", "53/tcp"}},
			files:  []oci.File{b.program(coredns, "coredns"), certificates, nobody, tmp},
		},
		"dex": {
			debian: "base", // it is linked with C
			config: oci.Config{
				Env: path, Entrypoint: []string{"/usr/local/bin/dex"}, User: "65534:65534", Ports: []string{"5556/tcp", "5557/tcp", "5558/tcp"},
			},
			files: []oci.File{b.program(dex, "usr/local/bin/dex"), certificates},
		},
		"local-path-provisioner": {
			config: oci.Config{Env: path, Entrypoint: []string{"/usr/bin/local-path-provisioner"}},
			files:  []oci.File{b.program(localPath, "usr/bin/local-path-provisioner"), certificates, nobody, tmp},
		},
		"pause": {
			config: oci.Config{Entrypoint: []string{"/pause"}, User: "65534:65534"},
			files:  []oci.File{b.program(pause, "pause")},
		},
		"postgresql": {
			debian: "postgresql",
			config: oci.Config{
				Env: map[string]string{
					"PATH":   "/usr/lib/postgresql/15/bin:" + path["PATH"],
					"PGDATA": "/var/lib/postgresql/data/pgdata",
					"LANG":   "C.UTF-8",
				},
				Entrypoint: []string{"/usr/local/bin/postgresql-entrypoint"}, Cmd: []string{"postgres"},
				User: fmt.Sprintf("%d:%d", postgresqlID, postgresqlID), Ports: []string{"5432/tcp"},
				StopSignal: "SIGINT", // fast shutdown
			},
			files: []oci.File{
				{Path: "usr/local/bin/postgresql-entrypoint", Mode: 0o755, Data: postgresqlEntrypoint},
				{Path: "run/postgresql", Mode: 0o777 | os.ModeSticky, Dir: true, Owner: oci.Owner{UID: postgresqlID, GID: postgresqlID}},
				{Path: "var/lib/postgresql/data", Mode: 0o700, Dir: true, Owner: oci.Owner{UID: postgresqlID, GID: postgresqlID}},
			},
		},
		"redis": {
			debian: "redis",
			config: oci.Config{
				Env: path, Entrypoint: []string{"redis-server"}, WorkingDir: "/data",
				User: fmt.Sprintf("%d:%d", redisID, redisID), Ports: []string{"6379/tcp"},
			},
			files: []oci.File{{Path: "data", Mode: 0o755, Dir: true, Owner: oci.Owner{UID: redisID, GID: redisID}}},
		},
	}
	for _, app := range []string{console, guestbook, portal} {
		all[app] = definition{
			config: oci.Config{Entrypoint: []string{"/" + app}, User: "65534:65534"},
			files:  []oci.File{b.program(app, app), certificates, nobody, tmp},
		}
	}
	maps.Copy(all, b.addons(certificates, nobody, tmp))
	for name, define := range map[string]func(context.Context) (definition, error){"argocd": b.argocd, "gitea": b.gitea} { // which read their modules
		if _, ok := b.lock.Image(name); !ok {
			continue
		}
		if all[name], err = define(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// argocd is laid out as Argo CD's manifests expect it.
func (b *builder) argocd(ctx context.Context) (definition, error) {
	dir, err := gotool.ModuleDir(ctx, filepath.Join(b.source, "ci/dev/bundle/tools/argocd"), "github.com/argoproj/argo-cd/v3")
	if err != nil {
		return definition{}, err
	}
	owner := oci.Owner{UID: argocdID, GID: argocdID}
	d := definition{
		debian: "argocd",
		config: oci.Config{
			Env: map[string]string{
				"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "USER": "argocd", "HOME": "/home/argocd",
				"GRPC_ENABLE_TXT_SERVICE_CONFIG": "false",
			},
			Entrypoint: []string{"/usr/bin/tini", "--"}, User: fmt.Sprintf("%d:%d", argocdID, argocdID), WorkingDir: "/home/argocd",
		},
		files: []oci.File{
			b.program(argocd, "usr/local/bin/argocd"),
			b.program(helm, "usr/local/bin/helm"),
			{Path: "usr/local/bin/gpg-wrapper.sh", Mode: 0o755, Source: filepath.Join(dir, "hack/gpg-wrapper.sh")},
			{Path: "usr/local/bin/git-verify-wrapper.sh", Mode: 0o755, Source: filepath.Join(dir, "hack/git-verify-wrapper.sh")},
			{Path: "usr/local/bin/entrypoint.sh", Mode: 0o755, Source: filepath.Join(dir, "entrypoint.sh")},
			{Path: "home/argocd", Mode: 0o775, Dir: true, Owner: oci.Owner{UID: argocdID}},
			{Path: "app/config/ssh", Mode: 0o755, Dir: true},
			{Path: "app/config/ssh/ssh_known_hosts", Mode: 0o644, Data: []byte{}},
			{Path: "app/config/tls", Mode: 0o755, Dir: true},
			{Path: "app/config/gpg/source", Mode: 0o755, Dir: true},
			{Path: "app/config/gpg/keys", Mode: 0o700, Dir: true, Owner: owner},
			{Path: "etc/ssh/ssh_known_hosts", Link: "/app/config/ssh/ssh_known_hosts"},
		},
	}
	for _, part := range []string{
		"server", "repo-server", "cmp-server", "application-controller", "dex", "notifications",
		"applicationset-controller", "k8s-auth", "commit-server",
	} {
		d.files = append(d.files, oci.File{Path: "usr/local/bin/argocd-" + part, Link: "/usr/local/bin/argocd"})
	}
	return d, nil
}

// gitea has the program, and what it reads at run time out of its module.
func (b *builder) gitea(ctx context.Context) (definition, error) {
	dir, err := gotool.ModuleDir(ctx, filepath.Join(b.source, "ci/dev/bundle/tools/gitea"), giteaModule)
	if err != nil {
		return definition{}, err
	}
	image, _ := b.lock.Image("gitea")
	owner := oci.Owner{UID: gitID, GID: gitID}
	d := definition{
		debian: "git",
		config: oci.Config{
			Env: map[string]string{
				"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "USER": "git", "HOME": "/var/lib/gitea/git",
				"GITEA_WORK_DIR": "/var/lib/gitea", "GITEA_CUSTOM": "/var/lib/gitea/custom",
			},
			Entrypoint: []string{"/usr/local/bin/gitea"}, Cmd: []string{"web"},
			User: fmt.Sprintf("%d:%d", gitID, gitID), WorkingDir: "/var/lib/gitea", Ports: []string{"3000/tcp", "2222/tcp"},
		},
		files: []oci.File{
			b.program(gitea, "usr/local/bin/gitea"),
			{Path: "var/lib/gitea", Mode: 0o755, Dir: true, Owner: owner},
			{Path: "etc/passwd", Mode: 0o644},
			{Path: "etc/group", Mode: 0o644},
		},
		treesVersion: image.Modules[0].Origin(),
	}
	for i, line := range map[int]string{
		2: fmt.Sprintf("git:x:%d:%d:Gitea:/var/lib/gitea/git:/bin/bash\n", gitID, gitID),
		3: fmt.Sprintf("git:x:%d:\n", gitID),
	} {
		below, err := os.ReadFile(b.layers["git"].Lookup(d.files[i].Path))
		if err != nil {
			return definition{}, fmt.Errorf("add a user to the image gitea: %w", err)
		}
		d.files[i].Data = append(below, line...)
	}
	for _, name := range []string{"templates", "options", "public"} {
		d.trees = append(d.trees, oci.Tree{Root: filepath.Join(dir, name), Into: giteaRoot + "/" + name, Owner: &oci.Owner{}})
	}
	return d, nil
}

// busybox is the program and a link for each of its commands.
func (b *builder) busybox(ctx context.Context) ([]oci.File, error) {
	program := b.layers["busybox"].File("bin/busybox")
	if _, err := os.Stat(program); err != nil {
		program = b.layers["busybox"].File("usr/bin/busybox")
	}
	list, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the commands of busybox: %w", err)
	}
	files := []oci.File{
		{Path: "bin/busybox", Mode: 0o755, Source: program},
		{Path: "tmp", Mode: 0o777 | os.ModeSticky, Dir: true},
		{Path: "root", Mode: 0o700, Dir: true},
		{Path: "usr/bin", Link: "../bin"},
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
	}
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" {
			files = append(files, oci.File{Path: "bin/" + name, Link: "busybox"})
		}
	}
	return files, nil
}

// image makes the image of that name out of its Debian layers and its files.
func (b *builder) image(ctx context.Context, name string, d definition) (v1.Image, error) {
	var layers []v1.Layer
	if d.debian != "" {
		for _, l := range b.layers[d.debian].Stack() {
			layers = append(layers, l.Layer)
		}
	}
	if len(d.files)+len(d.trees) > 0 {
		layer, err := b.fileLayer(ctx, name, d)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	config := d.config
	config.Arch = b.arch
	image, err := oci.NewImage(config, layers...)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return image, nil
}

// fileLayer is an image's layer of own files. Files of the store and of modules
// never change under their names, so they are not read to find out whether the
// layer is there.
func (b *builder) fileLayer(ctx context.Context, name string, d definition) (v1.Layer, error) {
	in := store.NewInputs("bundle-files-"+name).
		String("layer", fmt.Sprint(oci.Epoch, oci.Level)).
		String("trees", d.treesVersion)
	for _, t := range d.trees {
		in.String("tree", t.Into)
	}
	for _, f := range d.files {
		source := f.Source
		if inStore, ok := strings.CutPrefix(source, b.store.Path()+"/"); ok {
			source = inStore
		} else if source != "" {
			content, err := os.ReadFile(source)
			if err != nil {
				return nil, fmt.Errorf("image %s: %w", name, err)
			}
			source = string(content)
		}
		in.Strings("file", []string{f.Path, f.Mode.String(), fmt.Sprint(f.Owner, f.Dir), source, string(f.Data), f.Link})
	}
	dir, _, err := b.store.Do(ctx, in.Key(), func(ctx context.Context, dir string) error {
		_, err := oci.WriteLayer(ctx, dir, d.trees, d.files)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return oci.OpenLayer(dir)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
