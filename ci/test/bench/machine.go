package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
)

type pins struct {
	images map[string]string // name → reference by digest
	tools  map[string]string // name → version
}

func readPins(dir string) (*pins, error) {
	b, err := bundle.Read(dir)
	if err != nil {
		return nil, fmt.Errorf("%w; make bundle builds one", err)
	}
	p := &pins{images: b.Images(), tools: map[string]string{}}
	for _, f := range b.Files {
		if f.Kind == bundle.Tool {
			p.tools[f.Name] = f.Version
		}
	}
	if p.images["pause"] == "" || p.tools["kubectl"] == "" {
		return nil, fmt.Errorf("%s lacks images or tools: build it again with make bundle", dir)
	}
	return p, nil
}

func (p *pins) env() string {
	var b strings.Builder
	write := func(kind string, values map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(&b, "%s_%s='%s'\n", kind, strings.ReplaceAll(name, "-", "_"), values[name])
		}
	}
	write("image", p.images)
	write("version", p.tools)
	return b.String()
}

// about is what a shell says of this machine, now.
const about = `echo "$(date -u '+%Y-%m-%d %H:%M UTC'); $(nproc) CPUs, $(awk '/^MemTotal/ { printf "%.1f", $2 / 1048576 }' /proc/meminfo) GiB of memory, $(uname -sr), load average $(cut -d' ' -f1 /proc/loadavg)"
awk -v cpus="$(nproc)" '$1 > 0.3 * cpus { print "WARNING: this machine is not idle; the times below say little" }' /proc/loadavg
dagger version`

// machine describes what the times are taken on: this machine, and the tools by version.
func machine(ctx context.Context, tools map[string]string) (string, error) {
	out, err := exec.CommandContext(ctx, "sh", "-ec", about).Output()
	if err != nil {
		return "", fmt.Errorf("ask machine and dagger, which make engine puts on the PATH, for their versions: %w", err)
	}
	var versions []string
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		if tool != "slipway" {
			versions = append(versions, tool+" "+tools[tool])
		}
	}
	return string(out) + strings.Join(versions, ", ") + "\n", nil
}
