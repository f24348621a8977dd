package origin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const writeLock = "write one with slipway bundle push DIR HOST/PATH, and give it before the function: dagger call --lock slipway.lock.json install"

// LockFile is the lock file of a release, in the folder of the module's sources.
const LockFile = "slipway.lock.json"

// NoLock refuses a lock file that cannot be read, for err.
func NoLock(err error) *Refusal {
	return &Refusal{Code: codeLockFile, Class: Usage, Op: "read the lock file", Err: err, Fix: writeLock}
}

// RegistryAlone refuses a registry, or its account, without a lock.
func RegistryAlone() *Refusal {
	return &Refusal{Code: codeNowhere, Class: Usage, Op: "choose where images come from", Fix: writeLock,
		Err: errors.New("--registry and --registry-auth go with --lock FILE, which slipway bundle push writes")}
}

// Image is the reference by digest of the toolchain's image for platform
// ("linux/amd64"), as a lock says: below registry, or where the lock says if that
// is empty.
func Image(lock []byte, registry, platform string) (string, error) {
	var l struct {
		Location string `json:"location"`
		Bundles  map[string]struct {
			Toolchain string `json:"toolchain"`
		} `json:"bundles"`
	}
	if err := json.Unmarshal(lock, &l); err != nil {
		return "", NoLock(err)
	}
	if registry == "" {
		registry = l.Location
	}
	if registry == "" {
		return "", &Refusal{Code: codeNowhere, Class: Usage, Op: "choose the registry of the images",
			Err: errors.New("the lock names none"), Fix: "give one before the function: dagger call --registry host/path --lock FILE install"}
	}
	if digest := l.Bundles[platform].Toolchain; digest != "" {
		return strings.TrimSuffix(registry, "/") + "/toolchain@" + digest, nil
	}
	return "", &Refusal{Code: codeNoImage, Class: Usage, Op: "find the images in " + registry,
		Err: fmt.Errorf("the lock file has no images for %s", platform),
		Fix: "push a bundle for that platform and use the lock that this writes: slipway bundle push DIR " + registry}
}

// NotPulled refuses the toolchain's image by its reference, which the engine could not take, for
// err. Problems with the other images are reported by the program, which is in this one.
func NotPulled(ref string, err error) *Refusal {
	registry, _, _ := strings.Cut(ref, "/toolchain@")
	host, _, _ := strings.Cut(ref, "/")
	return &Refusal{Code: codePull, Class: Preflight, Op: "take the image toolchain from " + registry, Err: err,
		Fix: "log in with an account that may pull from it (docker login " + host + "), let the engine trust its certificate, or see whether it answers where the engine runs: curl -v https://" + host + "/v2/"}
}
