package cli

import "github.com/slipway-sh/slipway/fault"

// The codes of what goes wrong before a run, besides those of the packages that
// are called; and of what has no code.
const (
	// codeUnreadable: the configuration file cannot be read.
	codeUnreadable fault.Code = "CFG-003"
	// codeNoDirectory: a directory that was named does not exist, or `dagger call`
	// cannot see it: the path of a platform release in the configuration.
	codeNoDirectory fault.Code = "CFG-004"
	// codeNoKey: the private key of a given certificate is not where the
	// configuration says.
	codeNoKey fault.Code = "CFG-005"
	// codeNoPassword: a password that the configuration refers to is not where it
	// says.
	codeNoPassword fault.Code = "CFG-007"
	// codeNoImages: neither a bundle nor a lock was given.
	codeNoImages fault.Code = "BUN-006"
	// codeNoLock: there is no `lock.yaml` at that path.
	codeNoLock fault.Code = "LCK-002"
	// codeNoRegistry: neither the configuration nor the lock names the
	// registry.
	codeNoRegistry fault.Code = "REG-010"
	// codeNoMirror: the registry is on the engine's own machine, which the
	// cluster's node reaches at another address only.
	codeNoMirror fault.Code = "REG-011"
	// codeNoLockFile: a registry was given, and no lock that says what is in it.
	codeNoLockFile fault.Code = "REG-012"
	// codeNoStateSecret: a credential for the bucket with the deployment's state,
	// or the key of its secrets, is not where the configuration or a flag says.
	codeNoStateSecret fault.Code = "STO-007"
	// codeOutput: the directory for the report holds something that is no report.
	codeOutput fault.Code = "RUN-008"
	// codeUncoded: something went wrong that has no code of its own.
	codeUncoded fault.Code = "RUN-003"
)

// codeNoEngine is what ci/dev/engine, a module of its own, says when there is none.
const codeNoEngine fault.Code = "ENG-008"
