package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/document"
)

// What an API server takes; other text would pass for lines of its own where a plan shows it.
var (
	isKind    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)
	isVersion = regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*/)?[a-z][a-z0-9-]*$`)
)

// Decode reads YAML documents, in their order. Empty documents are skipped,
// lists are taken apart, and an object without apiVersion, kind or name is an
// error that says which document it is.
func Decode(manifest []byte) ([]*unstructured.Unstructured, error) {
	return decode(manifest, func(doc []byte) ([]byte, error) { return yaml.YAMLToJSONStrict(doc) })
}

// DecodeRendered is Decode for what a chart renders to: of a key that is twice in a mapping, the
// last one counts, as for Helm.
func DecodeRendered(manifest []byte) ([]*unstructured.Unstructured, error) {
	return decode(manifest, yaml.YAMLToJSON)
}

func decode(manifest []byte, toJSON func([]byte) ([]byte, error)) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if err := document.CheckAliases(doc); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		b, err := toJSON(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(b, &obj.Object); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		objs := []*unstructured.Unstructured{obj}
		if obj.IsList() {
			objs = nil
			err := obj.EachListItem(func(o runtime.Object) error {
				objs = append(objs, o.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", n, err)
			}
		}
		for _, o := range objs {
			if o.GetGenerateName() != "" && o.GetName() == "" {
				return nil, fmt.Errorf("document %d: metadata.name is missing: Slipway finds objects again by their names, and takes no metadata.generateName (%s)", n, o.GetGenerateName())
			}
			if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
				return nil, fmt.Errorf("document %d: apiVersion, kind or metadata.name is missing", n)
			}
			if !isKind.MatchString(o.GetKind()) || !isVersion.MatchString(o.GetAPIVersion()) {
				return nil, fmt.Errorf("document %d: Kubernetes has no kind %q of apiVersion %q", n, o.GetKind(), o.GetAPIVersion())
			}
			if strings.ContainsFunc(o.GetNamespace()+o.GetName(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				return nil, fmt.Errorf("document %d: the name %q has a character that cannot be printed", n, o.GetNamespace()+"/"+o.GetName())
			}
			out = append(out, o)
		}
	}
}
