package infrastructure

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/providers"
)

// machine is what preflight saw.
type machine struct {
	memory      int64 // bytes, limited by the container's cgroup
	disk        int64 // bytes free on the state volume
	cpus        int
	kernel      string // its release; empty if it does not say
	filesystems []string
	netfilter   bool
	sysctls     map[string]int64 // those that may be raised
}

// observe looks at the machine whose /proc and /sys are below root, also at those of the
// sysctls that it has, and at the volume that holds state.
func observe(root, state string, sysctls ...string) (machine, error) {
	m := machine{cpus: runtime.NumCPU(), sysctls: map[string]int64{}}
	for _, name := range sysctls {
		b, err := os.ReadFile(filepath.Join(root, "proc/sys", strings.ReplaceAll(name, ".", "/")))
		if err != nil {
			continue // of a kernel without it
		}
		if m.sysctls[name], err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err != nil {
			return m, fmt.Errorf("sysctl %s: %w", name, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/osrelease")); err == nil {
		m.kernel = strings.TrimSpace(string(b))
	}
	meminfo, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return m, err
	}
	if m.memory, err = memTotal(meminfo); err != nil {
		return m, err
	}
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		// A file that is not there or says "max" limits nothing.
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && limit < m.memory {
			m.memory = limit
		}
	}
	if m.disk, err = freeSpace(state); err != nil {
		return m, fmt.Errorf("free space of %s: %w", state, err)
	}
	b, err := os.ReadFile(filepath.Join(root, "proc/filesystems"))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 {
			m.filesystems = append(m.filesystems, f[len(f)-1])
		}
	}
	m.netfilter = netfilter(root)
	return m, nil
}

func memTotal(meminfo []byte) (int64, error) {
	for line := range strings.Lines(string(meminfo)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no MemTotal")
}

// compareMachine compares what was seen with what is required.
func compareMachine(m machine, r providers.Requirements) []problem {
	var out []problem
	check := func(met bool, what, remedy string) {
		if !met {
			out = append(out, problem{what, remedy})
		}
	}
	// Firmware and kernel keep a part of the memory that a machine is sold with.
	check(m.memory >= r.MemoryBytes*15/16, fmt.Sprintf("memory is %s, %s is needed", size(m.memory), size(r.MemoryBytes)),
		"use a machine with more memory for the Dagger engine")
	check(m.disk >= r.DiskBytes, fmt.Sprintf("free disk of the Dagger engine is %s, %s is needed", size(m.disk), size(r.DiskBytes)),
		"make room, in this order: run the same command again, as an engine may have removed layers at the end of this session; remove old builds in ~/.cache/slipway/objects while the engine is stopped, which are built again; remove deployments that nobody needs: slipway destroy --name NAME (docs/local-cluster.md, Disk space)")
	check(m.cpus >= r.CPUs, fmt.Sprintf("there are %d CPUs, %d are needed", m.cpus, r.CPUs), "give the Dagger engine more CPUs")
	for _, fs := range r.Filesystems {
		check(slices.Contains(m.filesystems, fs), "the kernel has no filesystem "+fs, "load it on the Dagger engine's machine: modprobe "+fs)
	}
	check(m.netfilter || !r.Netfilter, "the kernel has neither iptables nor nf_tables", "load one on the Dagger engine's machine: modprobe nf_tables")
	return out
}

// raises says which sysctls of the machine are lower than what the cluster raises them to.
func raises(m machine, r providers.Requirements) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.Raises)) {
		if has, ok := m.sysctls[name]; ok && has < r.Raises[name] {
			out = append(out, fmt.Sprintf("%s from %d to %d", name, has, r.Raises[name]))
		}
	}
	return out
}

// size is n bytes for people: "3.9 GiB".
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
