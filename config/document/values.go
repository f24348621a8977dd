package document

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
	helm "sigs.k8s.io/yaml"
)

// Values reads a file with values of a chart as Helm does, with anchors and merge keys. A key
// twice in a mapping, of which Helm takes the last one, and a number that loses digits are problems.
func Values(text []byte) (map[string]any, []Problem) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, []Problem{Syntax(text, err)}
	}
	if err := checkAliases(&n, 0); err != nil {
		return nil, []Problem{{Got: err.Error(), Want: "aliases that stand for less"}}
	}
	problems := unkept("", &n)
	for _, root := range n.Content {
		if root.Kind != yaml.MappingNode && !isNull(root) {
			problems = append(problems, Problem{Line: root.Line, Got: kindOf(root), Want: "a mapping of values"})
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	var values map[string]any
	if err := helm.Unmarshal(text, &values); err != nil {
		return nil, []Problem{Syntax(text, err)}
	}
	return values, nil
}

// unkept returns what of a value at path a reader of YAML would drop without a word.
func unkept(path string, n *yaml.Node) []Problem {
	var out []Problem
	switch n.Kind {
	case yaml.MappingNode:
		lines := map[string]int{}
		for key, value := range pairs(n) {
			field := join(path, key.Value)
			if first, ok := lines[key.Value]; ok && key.ShortTag() != "!!merge" {
				out = append(out, Problem{Field: field, Line: key.Line, Got: again(first), Want: "it once"})
			}
			lines[key.Value] = key.Line
			out = append(out, unkept(field, value)...)
		}
	case yaml.ScalarNode:
		if tooLong(n) {
			out = append(out, Problem{Field: path, Line: n.Line, Got: longNumber, Want: wantNumber})
		}
	default:
		for i, item := range n.Content {
			at := path
			if n.Kind == yaml.SequenceNode {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			out = append(out, unkept(at, item)...)
		}
	}
	return out
}

// again describes a field that is in a mapping twice.
func again(first int) string { return fmt.Sprintf("the field again (first on line %d)", first) }
