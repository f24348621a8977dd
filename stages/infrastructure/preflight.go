package infrastructure

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// preflight checks the machine and reports everything that is missing at once.
func preflight(ctx context.Context, env *step.Env, in contract.PreflightInput) (contract.Preflight, error) {
	if env.Place.Remote() { // that the store answers was seen before the step began
		s, err := env.Store(ctx)
		if err == nil {
			err = env.Place.CheckSecrets(ctx, s)
		}
		if err != nil {
			return contract.Preflight{}, err
		}
	}
	out, err := observe("/", env.StateDir, in.Requirements.Raises)
	if err != nil {
		return contract.Preflight{}, fmt.Errorf("look at the machine: %w", err)
	}
	if _, err := os.Stat(env.Kubeconfig); err == nil {
		in.Requirements.DiskBytes = min(in.Requirements.DiskBytes, contract.DiskReserve)
	}
	if problems := slices.Concat(compareMachine(out, in.Requirements), checkTLS(env, in.TLS, time.Now())); len(problems) > 0 {
		return contract.Preflight{}, unmet(CodePreflight, "check the machine", problems)
	}
	if len(out.Raises) > 0 {
		env.Progress("the cluster raises sysctls of the Dagger engine's machine, and nothing lowers them again: %s", strings.Join(out.Raises, ", "))
	}
	env.Progress("%s memory, %s free disk, %d CPUs", size(out.MemoryBytes), size(out.DiskBytes), out.CPUs)
	return out, nil
}

// checkTLS finds what is wrong with the certificate that a user brings: the step that
// uses it comes when the cluster is up.
func checkTLS(env *step.Env, given *contract.UserTLS, now time.Time) []problem {
	if given == nil {
		return nil
	}
	key, err := bounded.File(env.TLSKeyFile, bounded.Written)
	if err != nil {
		return []problem{{fmt.Sprintf("read the certificate's private key: %v", err), certificate.FixInvalid}}
	}
	env.Redact(string(key))
	var out []problem
	for _, err := range certificate.Given([]byte(given.Certificate), key, []byte(given.CA), given.Hosts, now) {
		out = append(out, problem{err.Error(), certificate.FixInvalid})
	}
	return out
}

type problem struct {
	what   string
	remedy string
}

// unmet is the one fault for all problems.
func unmet(code fault.Code, op string, problems []problem) error {
	var b strings.Builder
	if len(problems) == 1 {
		b.WriteString("1 requirement is not met:")
	} else {
		fmt.Fprintf(&b, "%d requirements are not met:", len(problems))
	}
	for _, p := range problems {
		b.WriteString("\n  " + p.what + "; " + p.remedy)
	}
	return &fault.Fault{
		Code: code, Class: fault.Preflight, Op: op,
		Fix: "correct each of them, then run the same command again", Err: fmt.Errorf("%s", b.String()),
	}
}

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
