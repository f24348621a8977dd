package answers

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
)

// text returns a text node.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.Contains(s, "\n") {
		n.Style = yaml.LiteralStyle
	}
	if !readsBack(n) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// readsBack reports whether a text survives being written and read again, which the YAML
// library does not ensure for some, such as <<.
func readsBack(n *yaml.Node) bool {
	b, err := yaml.Marshal(n)
	var back yaml.Node
	if err != nil || yaml.Unmarshal(b, &back) != nil || len(back.Content) != 1 {
		return false
	}
	return document.IsText(back.Content[0]) && back.Content[0].Value == n.Value
}

// node converts an answer to the field's value in the file.
func (f Field) node(answer string) (*yaml.Node, *config.Problem) {
	switch f.Type {
	case Text:
		return text(answer), nil
	case Number:
		return f.scalar(answer, "!!int", isNumber(answer))
	case Decimal:
		_, err := strconv.ParseFloat(answer, 64)
		tag := "!!float"
		if isNumber(answer) {
			tag = "!!int"
		}
		return f.scalar(answer, tag, err == nil && !strings.ContainsAny(answer, "xXnNiI_"))
	case Bool:
		return f.scalar(answer, "!!bool", answer == "true" || answer == "false")
	case List:
		out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for item := range strings.SplitSeq(answer, ",") {
			item = strings.TrimSpace(item)
			switch {
			case item == "":
				return nil, f.wrong("a list with an empty item", "items separated by commas")
			case f.numbers && !isNumber(item):
				return nil, f.wrong(document.Quote(item), "whole numbers separated by commas")
			case f.numbers:
				out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: item})
			default:
				out.Content = append(out.Content, text(item))
			}
		}
		return out, nil
	case Mapping:
		out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for item := range strings.SplitSeq(answer, ",") {
			key, v, ok := strings.Cut(strings.TrimSpace(item), "=")
			if !ok || key == "" {
				return nil, f.wrong(document.QuoteKey(item), "NAME=value, separated by commas")
			}
			out.Content = append(out.Content, text(key), text(v))
		}
		return out, nil
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(answer), &n); err != nil || len(n.Content) != 1 {
		return nil, f.wrong("something that is not YAML", `a value in YAML, such as {replicas: 2}`)
	}
	return n.Content[0], nil
}

func scalarBool(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(b)}
}

func (f Field) scalar(answer, tag string, ok bool) (*yaml.Node, *config.Problem) {
	if !ok {
		want := string(f.Type)
		if len(f.Options) > 0 {
			want = document.OneOf(f.Options...)
		}
		return nil, f.wrong(document.Quote(answer), want)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: answer}, nil
}

func (f Field) wrong(got, want string) *config.Problem {
	return &config.Problem{Field: f.Path, Got: got, Want: want}
}

func isNumber(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && strconv.Itoa(n) == text
}
