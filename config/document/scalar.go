package document

import (
	"strconv"

	"go.yaml.in/yaml/v3"
	k8syaml "sigs.k8s.io/yaml"
)

// tag returns the short tag of a value as Helm and kubectl read it, by YAML 1.1: a plain no is
// false, and a key y is true.
func tag(n *yaml.Node) string {
	if _, ok := truth(n); ok {
		return "!!bool"
	}
	return n.ShortTag()
}

// IsText reports whether a value is text to all that read YAML.
func IsText(n *yaml.Node) bool { return kindOf(n) == "text" }

// longestTruth is the length of "false".
const longestTruth = 5

// truth returns what a scalar says that is true or false, in any of the words that YAML 1.1 has
// for these.
func truth(n *yaml.Node) (is, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode, len(n.Value) > longestTruth:
		return false, false
	case n.ShortTag() != "!!bool" && (n.ShortTag() != "!!str" || n.Style != 0):
		return false, false
	}
	var v any
	if k8syaml.Unmarshal([]byte(n.Value), &v) != nil {
		return false, false
	}
	is, ok = v.(bool)
	return is, ok
}

// What is wrong with a number of more digits than readers of YAML keep.
const (
	longNumber = "a whole number beyond 2^53"
	wantNumber = "it in quotes: without them, digits are lost"
)

// exact is the number up to which a float64, as Helm has it, holds every whole number.
const exact = 1 << 53

// tooLong reports whether a scalar is a whole number of which readers of YAML lose digits.
func tooLong(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" || !decimal.MatchString(n.Value) {
		return false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return err != nil || i < -exact || exact < i
}
