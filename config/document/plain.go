package document

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

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
