package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
)

// dataCommands are the pods and the commands of a release's data as functions of a shell, for
// upgrade.sh: the very ones that Slipway runs. The release has one data.
func dataCommands(files fs.FS, images map[string]string) (string, error) {
	r, err := platform.Load(files)
	if err != nil {
		return "", err
	}
	if len(r.Data) != 1 {
		return "", fmt.Errorf("release %s has %d data, not one", r.Version, len(r.Data))
	}
	d := r.Data[0]
	live, scratch := d.Pods()
	var b strings.Builder
	fmt.Fprintf(&b, "# The data %s of %s %s.\n", d.Name, r.Name, r.Version)
	for _, p := range []struct {
		variable string
		pod      json.RawMessage
	}{{"live", live}, {"scratch", scratch}} {
		at, text, err := filled(p.pod, images)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s=%s\n%s_pod=%s\n", p.variable, quoted(at), p.variable, quoted(text))
	}
	// data_NAME POD: runs a command in a pod.
	function := func(name string, command []string) {
		fmt.Fprintf(&b, "data_%s() { in_pod \"$1\"", name)
		for _, word := range command {
			b.WriteString(" " + quoted(word))
		}
		b.WriteString("; }\n")
	}
	function("dump", d.Dump)
	function("restore", d.Restore)
	function("check", d.Check)
	for _, when := range []platform.When{platform.Before, platform.After} {
		var names []string
		for _, m := range r.Migrations {
			if m.When == when {
				name := strings.ReplaceAll(m.Name, "-", "_")
				function(name, m.Command)
				names = append(names, "data_"+name)
			}
		}
		fmt.Fprintf(&b, "migrations_%s=%s\n", when, quoted(strings.Join(names, " ")))
	}
	return b.String(), nil
}

// filled is a Pod with its images, and "namespace/name".
func filled(pod json.RawMessage, images map[string]string) (at, text string, err error) {
	var o struct {
		Metadata struct{ Namespace, Name string }
		Spec     struct{ Containers []struct{ Image string } }
	}
	if err := json.Unmarshal(pod, &o); err != nil {
		return "", "", fmt.Errorf("read a Pod of the release: %w", err)
	}
	if platform.HolesIn(pod) != nil {
		return "", "", errors.New("a Pod of the release has names in braces")
	}
	for _, c := range o.Spec.Containers {
		ref := images[c.Image]
		if ref == "" {
			return "", "", fmt.Errorf("the bundle lacks the image %s", c.Image)
		}
		pod = bytes.ReplaceAll(pod, []byte(`"image":"`+c.Image+`"`), []byte(`"image":"`+ref+`"`))
	}
	return o.Metadata.Namespace + "/" + o.Metadata.Name, string(pod), nil
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
