package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// override is an image that is used in place of others: one of the archive, or one of the
// mirror.
type override struct {
	Image     string   `json:"image"`     // its name in the archive
	Path      string   `json:"path"`      // of its repository, below that of the mirror
	Digest    string   `json:"digest"`    // of its manifest
	Index     string   `json:"index"`     // of an index that it is also known by; empty for none
	StandsFor []string `json:"standsFor"` // the complete references of the others
}

// readOverrides reads the file that --overrides names; there are none without one.
func readOverrides(file string) ([]override, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read which images stand for others: %w", err)
	}
	var all []override
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read which images stand for others: %s: %w", file, err)
	}
	return all, nil
}

// withOverrides adds to the images of an archive the other names that they have. It fails
// when an image that stands for others is not among them.
func withOverrides(images []archiveImage, all []override) ([]archiveImage, error) {
	out := slices.Clone(images)
	for _, s := range all {
		if s.Image == "" {
			continue
		}
		at := slices.IndexFunc(images, func(i archiveImage) bool { return i.name == s.Image })
		if at < 0 {
			return nil, fmt.Errorf("the archive has no image %s, which stands for %s", s.Image, strings.Join(s.StandsFor, ", "))
		}
		for _, name := range s.StandsFor {
			if name != s.Image {
				other := images[at]
				other.name = name
				out = append(out, other)
			}
		}
	}
	slices.SortFunc(out, func(x, y archiveImage) int { return strings.Compare(x.name, y.name) })
	return out, nil
}
