package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// cert is a certificate file for the engine's folder of extra authorities,
// which it trusts and makes its containers trust.
type cert struct {
	Name string // ends with .crt
	PEM  []byte
}

// bundleFile is where Debian keeps all trusted authorities in one file.
const bundleFile = "etc/ssl/certs/ca-certificates.crt"

// hostCerts is what this machine (at root) trusts and the engine's own root does not: authorities
// that an administrator added, whether or not update-ca-certificates has run since.
func hostCerts(root, engineRoot string) (all []cert, err error) {
	own, err := os.ReadFile(filepath.Join(engineRoot, bundleFile))
	if err != nil {
		return nil, fmt.Errorf("read the engine's certificates: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(root, certsDir, "*.crt"))
	if err != nil {
		return nil, err
	}
	known, trusted := pemCerts(own), map[string][]byte{}
	for _, file := range append(files, filepath.Join(root, bundleFile)) {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read this machine's certificates: %w", err)
		}
		maps.Copy(trusted, pemCerts(text))
	}
	for _, sum := range slices.Sorted(maps.Keys(trusted)) {
		if known[sum] == nil {
			all = append(all, cert{Name: "machine-" + sum[:12] + ".crt", PEM: trusted[sum]})
		}
	}
	return all, nil
}

// pemCerts is the certificates of a PEM file, each as PEM, by their digests.
func pemCerts(data []byte) map[string][]byte {
	all := map[string][]byte{}
	for {
		var block *pem.Block
		block, data = pem.Decode(data)
		if block == nil {
			return all
		}
		if block.Type == "CERTIFICATE" {
			sum := sha256.Sum256(block.Bytes)
			all[hex.EncodeToString(sum[:])] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})
		}
	}
}
