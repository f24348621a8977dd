package render

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxAliases is how much the aliases of a file may stand for in all, in bytes, and valueSize what
// a value takes beside its text.
const (
	maxAliases = 16 << 20
	valueSize  = 100
)

// checkAliases refuses YAML whose aliases have no end, or stand for very much: each is
// written out. What its reader does not read has none.
func checkAliases(text []byte) error {
	if !bytes.ContainsRune(text, '*') {
		return nil
	}
	docs, err := (&kio.ByteReader{Reader: bytes.NewReader(text), OmitReaderAnnotations: true}).Read()
	if err != nil {
		return nil
	}
	for _, doc := range docs {
		c := aliases{sizes: map[*yaml.Node]int{}}
		if _, err := c.size(doc.YNode()); err != nil {
			return err
		}
	}
	return nil
}

type aliases struct {
	sizes map[*yaml.Node]int // of what an anchor names; 0 while it is counted
	total int
}

// size is that of a node, with what its aliases stand for.
func (a *aliases) size(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		size := a.sizes[n.Alias]
		if a.total += size; size == 0 {
			return 0, fmt.Errorf("line %d: the alias *%s stands for a value that it is part of", n.Line, n.Value)
		}
		if a.total > maxAliases {
			return 0, fmt.Errorf("line %d: the aliases down to *%s stand for more than %d MiB", n.Line, n.Value, maxAliases>>20)
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
