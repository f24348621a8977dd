package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/containers/bundle"
)

// pins are the bundle's images by reference and its tools by version.
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

// machine describes what the times are taken on: this machine, now, and the tools by version.
func machine(ctx context.Context, tools map[string]string) (string, error) {
	var memory, load float64 // KiB; average of the last minute
	var kernel, dagger string
	for _, file := range []struct {
		name, format string
		into         any
	}{{"/proc/meminfo", "MemTotal: %f kB", &memory}, {"/proc/loadavg", "%f", &load}, {"/proc/sys/kernel/osrelease", "%s", &kernel}} {
		text, err := os.ReadFile(file.name)
		if err == nil {
			_, err = fmt.Sscanf(string(text), file.format, file.into)
		}
		if err != nil {
			return "", fmt.Errorf("look at the machine: %s: %w", file.name, err)
		}
	}
	out, err := exec.CommandContext(ctx, "dagger", "version").Output()
	if err == nil {
		_, err = fmt.Sscanf(string(out), "dagger %s", &dagger)
	}
	if err != nil {
		return "", fmt.Errorf("ask dagger for its version, which make engine puts on the PATH: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %d CPUs, %.1f GiB of memory, Linux %s, load average %.2f\ndagger %s",
		time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(), memory/(1<<20), kernel, load, dagger)
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		if tool != "slipway" {
			fmt.Fprintf(&b, ", %s %s", tool, tools[tool])
		}
	}
	b.WriteString("\n")
	if load > 0.3*float64(runtime.NumCPU()) {
		b.WriteString("WARNING: this machine is not idle; the times below say little\n")
	}
	return b.String(), nil
}
