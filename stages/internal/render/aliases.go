package render

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxAliases is how many values the aliases of a file may stand for in all.
const maxAliases = 100_000

// checkAliases refuses YAML whose aliases have no end, or stand for very many values:
// kustomize writes out each. What its reader does not read has none.
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

// size counts the values in a node, those that its aliases stand for among them.
func (a *aliases) size(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		size := a.sizes[n.Alias]
		if a.total += size; size == 0 {
			return 0, fmt.Errorf("line %d: the alias *%s stands for a value that it is part of", n.Line, n.Value)
		}
		if a.total > maxAliases {
			return 0, fmt.Errorf("line %d: the aliases down to *%s stand for more than %d values", n.Line, n.Value, maxAliases)
		}
		return size, nil
	}
	size := 1
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
