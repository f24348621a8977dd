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

// packagedCerts is where Debian's ca-certificates package has its files.
const packagedCerts = "usr/share/ca-certificates"

// hostCerts is what the administrator of this machine (at root) added to the
// authorities that Debian trusts, be it as files of their own or in the bundle
// only. What the engine's own root trusts is left out, and so is what an older
// package of this machine brought.
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
	if err := eachCert(filepath.Join(root, packagedCerts), func(data []byte) {
		for _, block := range pemCerts(data) {
			known[digest(block)] = true
		}
	}); err != nil {
		return nil, err
	}
	if err := eachCert(filepath.Join(root, certsDir), func(data []byte) { take("local", data) }); err != nil {
		return nil, err
	}
	bundle, err := os.ReadFile(filepath.Join(root, bundleFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read this machine's certificates: %w", err)
	}
	take("bundle", bundle)
	slices.SortFunc(all, func(a, b cert) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// eachCert reads the .crt files below dir, which may be absent.
func eachCert(dir string, take func(data []byte)) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".crt") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		take(data)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read this machine's certificates: %w", err)
	}
	return nil
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
