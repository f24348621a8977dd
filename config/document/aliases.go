package document

import (
	"bytes"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// maxAliases is how much the aliases of a document may stand for in all, in bytes, and valueSize
// what a value takes beside its text.
const (
	maxAliases = 16 << 20
	valueSize  = 100
)

// CheckAliases refuses YAML whose aliases have no end, or stand for very much: a decoder writes each
// out. What is no YAML has none.
func CheckAliases(text []byte) error {
	if !bytes.ContainsRune(text, '*') || !bytes.ContainsRune(text, '&') {
		return nil
	}
	above, from := 0, 0 // some readers take each document by itself, whatever is wrong with another one
	for _, at := range append(separator.FindAllIndex(text, -1), []int{len(text)}) {
		var doc yaml.Node
		if yaml.Unmarshal(text[from:at[0]], &doc) == nil {
			if err := checkAliases(&doc, above); err != nil {
				return err
			}
		}
		above, from = above+bytes.Count(text[from:at[0]], []byte("\n")), at[0]
	}
	return nil
}

// separator begins a document.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t\r]|$)`)

// checkAliases is CheckAliases for a document with lines above it.
func checkAliases(doc *yaml.Node, above int) error {
	c := aliases{sizes: map[*yaml.Node]int{}, above: above}
	_, err := c.size(doc)
	return err
}

type aliases struct {
	sizes map[*yaml.Node]int // of what an anchor names; 0 while it is counted
	total int
	above int // lines
}

// size returns the size of a node with all its aliases expanded.
func (a *aliases) size(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		size := a.sizes[n.Alias]
		if a.total += size; size == 0 {
			return 0, fmt.Errorf("line %d: the alias *%s stands for a value that it is part of", a.above+n.Line, n.Value)
		}
		if a.total > maxAliases {
			return 0, fmt.Errorf("line %d: the aliases down to *%s stand for more than %d MiB", a.above+n.Line, n.Value, maxAliases>>20)
		}
		return size, nil
	}
	size := valueSize + len(n.Value)
	if n.Anchor != "" {
		a.sizes[n] = 0
	}
	for _, c := range n.Content {
		in, err := a.size(c)
		if err != nil {
			return 0, err
		}
		size += in
	}
	if n.Anchor != "" {
		a.sizes[n] = size
	}
	return size, nil
}

// maxPlain bounds what CheckPlain lets pass, in bytes: a reader takes many times as much memory.
const maxPlain = 4 << 20

// CheckPlain returns an error unless text is YAML as Slipway itself writes it, without anchors and
// aliases: expanded, a few of them can fill all memory. Call it before decoding a document that
// others may have written.
func CheckPlain(text []byte) error {
	if len(text) > maxPlain {
		return fmt.Errorf("it has %d bytes; at most %d are read", len(text), maxPlain)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return err
	}
	return plain(&n)
}

func plain(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fmt.Errorf("line %d: an anchor or alias", n.Line)
	}
	for _, c := range n.Content {
		if err := plain(c); err != nil {
			return err
		}
	}
	return nil
}
