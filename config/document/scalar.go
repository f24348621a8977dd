package document

import (
	"encoding/json"
	"math"
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
	longNumber = "a whole number of more than 19 digits"
	wantNumber = "it in quotes: without them, digits are lost"
)

// tooLong reports whether a scalar is a whole number of which readers of YAML lose digits.
func tooLong(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" && decimal.MatchString(n.Value)
}

// exact is the number up to which a float64 holds every whole number.
const exact = 1 << 53

// Number returns a number as Helm has it, a float64; where that would lose digits of a whole
// number, an int64, a uint64 or the number itself.
func Number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		if -exact <= i && i <= exact {
			return float64(i)
		}
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	if f, err := n.Float64(); err == nil && !decimal.MatchString(n.String()) && !math.IsInf(f, 0) {
		return f
	}
	return n
}

// Numbers returns a copy of a value as encoding/json decodes it with UseNumber, in which each
// number is what Number returns for it.
func Numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return Number(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Numbers(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = Numbers(item)
		}
		return out
	}
	return v
}
