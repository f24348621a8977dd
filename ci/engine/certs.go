package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cert is a certificate file for the engine's folder of extra authorities,
// which it trusts and makes its containers trust.
type cert struct {
	Name string // ends with .crt
	PEM  []byte
}

// bundleFile is where Debian keeps all trusted authorities in one file.
const bundleFile = "etc/ssl/certs/ca-certificates.crt"

// hostCerts is what this machine (at root) trusts beyond what the engine's own
// root trusts: the authorities that its administrator added, be it as files of
// their own or in the bundle only.
func hostCerts(root, engineRoot string) ([]cert, error) {
	known := map[string]bool{}
	own, err := os.ReadFile(filepath.Join(engineRoot, bundleFile))
	if err != nil {
		return nil, fmt.Errorf("read the engine's certificates: %w", err)
	}
	for _, block := range pemCerts(own) {
		known[digest(block)] = true
	}
	var all []cert
	take := func(prefix string, data []byte) {
		for _, block := range pemCerts(data) {
			sum := digest(block)
			if known[sum] {
				continue
			}
			known[sum] = true
			all = append(all, cert{
				Name: prefix + "-" + sum[:12] + ".crt",
				PEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block}),
			})
		}
	}
	err = filepath.WalkDir(filepath.Join(root, certsDir), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, ".crt") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		take("local", data)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read this machine's certificates: %w", err)
	}
	bundle, err := os.ReadFile(filepath.Join(root, bundleFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read this machine's certificates: %w", err)
	}
	take("bundle", bundle)
	slices.SortFunc(all, func(a, b cert) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// pemCerts is the certificates of a PEM file, as DER.
func pemCerts(data []byte) [][]byte {
	var all [][]byte
	for {
		var block *pem.Block
		block, data = pem.Decode(data)
		if block == nil {
			return all
		}
		if block.Type == "CERTIFICATE" {
			all = append(all, bytes.Clone(block.Bytes))
		}
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
