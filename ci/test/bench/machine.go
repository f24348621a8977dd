package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/containers/bundle"
)

// pins are the bundle's images by reference and its tools by version.
type pins struct {
	images map[string]string // name → reference by digest
	tools  map[string]string // name → version
	target string            // operating system and architecture
}

func readPins(dir string) (*pins, error) {
	b, err := bundle.Read(dir)
	if err != nil {
		return nil, fmt.Errorf("%w; make bundle builds one", err)
	}
	p := &pins{images: b.Images(), tools: map[string]string{}, target: b.Platform}
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

// env is the pins as variables of a shell.
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

// machine is what the times were taken on.
type machine struct {
	when   time.Time
	cpus   int
	memory int64   // bytes
	load   float64 // average of the last minute
	kernel string
	dagger string
	pinned map[string]string
}

func observe(ctx context.Context, p *pins) (machine, error) {
	m := machine{when: time.Now(), cpus: runtime.NumCPU(), pinned: p.tools}
	for file, read := range map[string]func(string) error{
		"/proc/meminfo":              func(s string) (err error) { m.memory, err = memTotal(s); return },
		"/proc/loadavg":              func(s string) (err error) { m.load, err = strconv.ParseFloat(strings.Fields(s + " ?")[0], 64); return },
		"/proc/sys/kernel/osrelease": func(s string) error { m.kernel = strings.TrimSpace(s); return nil },
	} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = read(string(text))
		}
		if err != nil {
			return m, fmt.Errorf("look at the machine: %s: %w", file, err)
		}
	}
	out, err := exec.CommandContext(ctx, "dagger", "version").Output()
	if err != nil {
		return m, fmt.Errorf("ask dagger for its version, which make engine puts on the PATH: %w", err)
	}
	m.dagger = strings.Join(strings.Fields(string(out))[:2], " ")
	return m, nil
}

// memTotal reads MemTotal of /proc/meminfo, in bytes.
func memTotal(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("there is no MemTotal")
}

// busy reports whether so much else runs that the times mean little.
func (m machine) busy() bool { return m.load > 0.3*float64(m.cpus) }

func (m machine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %d CPUs, %.1f GiB of memory, Linux %s, load average %.2f\n",
		m.when.UTC().Format("2006-01-02 15:04 MST"), m.cpus, float64(m.memory)/(1<<30), m.kernel, m.load)
	b.WriteString(m.dagger)
	for _, tool := range slices.Sorted(maps.Keys(m.pinned)) {
		if tool != "slipway" {
			fmt.Fprintf(&b, ", %s %s", tool, m.pinned[tool])
		}
	}
	b.WriteString("\n")
	if m.busy() {
		b.WriteString("WARNING: this machine is not idle; the times below say little\n")
	}
	return b.String()
}
