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
	"github.com/slipway-sh/slipway/stages/contract"
)

// observe looks at the machine whose /proc and /sys are below root, and at the volume that holds
// state. raise are the sysctls that the cluster raises where they are lower.
func observe(root, state string, raise map[string]int64) (contract.Preflight, error) {
	m := contract.Preflight{CPUs: runtime.NumCPU()}
	for _, name := range slices.Sorted(maps.Keys(raise)) {
		b, err := os.ReadFile(filepath.Join(root, "proc/sys", strings.ReplaceAll(name, ".", "/")))
		if err != nil {
			continue // of a kernel without it
		}
		has, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			return m, fmt.Errorf("sysctl %s: %w", name, err)
		}
		if has < raise[name] {
			m.Raises = append(m.Raises, fmt.Sprintf("%s from %d to %d", name, has, raise[name]))
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/osrelease")); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	meminfo, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return m, err
	}
	if m.MemoryBytes, err = memTotal(meminfo); err != nil {
		return m, err
	}
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		// A file that is not there or says "max" limits nothing.
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && limit < m.MemoryBytes {
			m.MemoryBytes = limit
		}
	}
	if m.DiskBytes, err = freeSpace(state); err != nil {
		return m, fmt.Errorf("free space of %s: %w", state, err)
	}
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

func compareMachine(m contract.Preflight, r providers.Requirements) []problem {
	var out []problem
	check := func(met bool, what, remedy string) {
		if !met {
			out = append(out, problem{what, remedy})
		}
	}
	// Firmware and kernel keep a part of the memory that a machine is sold with.
	check(m.MemoryBytes >= r.MemoryBytes*15/16, fmt.Sprintf("memory is %s, %s is needed", size(m.MemoryBytes), size(r.MemoryBytes)),
		"use a machine with more memory for the Dagger engine")
	check(m.DiskBytes >= r.DiskBytes, fmt.Sprintf("free disk of the Dagger engine is %s, %s is needed", size(m.DiskBytes), size(r.DiskBytes)),
		"make room, in this order: run the same command again, as an engine may have removed layers at the end of this session; remove old builds in ~/.cache/slipway/objects while the engine is stopped, which are built again; remove deployments that nobody needs: slipway destroy --name NAME (docs/local-cluster.md, Disk space)")
	check(m.CPUs >= r.CPUs, fmt.Sprintf("there are %d CPUs, %d are needed", m.CPUs, r.CPUs), "give the Dagger engine more CPUs")
	return out
}

// size is n bytes for people: "3.9 GiB".
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
