package main

import (
	"os"
	"strings"
	"text/template"
)

// formula is what Homebrew installs the archives with.
const formula = `class Slipway < Formula
  desc "{{.Description}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "{{.License}}"
{{range .Systems}}
  {{.On}} do
{{- range .Archives}}
    {{.On}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "slipway"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/slipway.bash" => "slipway"
    zsh_completion.install "completions/_slipway"
    fish_completion.install "completions/slipway.fish"
  end

  test do
    assert_match "slipway v#{version}", shell_output("#{bin}/slipway version")
  end
end
`

type formulaSystem struct {
	On       string
	Archives []formulaArchive
}

type formulaArchive struct{ On, URL, SHA256 string }

// writeFormula writes the formula for archives, sums by system, to the file name; none where
// they are not for systems that Homebrew runs on.
func (o *options) writeFormula(name string, sums map[string]string) error {
	var systems []formulaSystem
	for _, system := range [][2]string{{"darwin", "on_macos"}, {"linux", "on_linux"}} {
		s := formulaSystem{On: system[1]}
		for _, arch := range [][2]string{{"arm64", "on_arm"}, {"amd64", "on_intel"}} {
			target := system[0] + "/" + arch[0]
			if sum, ok := sums[target]; ok {
				s.Archives = append(s.Archives, formulaArchive{On: arch[1], URL: o.baseURL() + "/" + o.archiveName(target), SHA256: sum})
			}
		}
		if len(s.Archives) > 0 {
			systems = append(systems, s)
		}
	}
	if len(systems) == 0 {
		return nil
	}
	made, err := template.New("formula").Parse(formula)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = made.Execute(&text, map[string]any{
		"Description": description, "Homepage": homepage, "License": license, "Version": o.number(), "Systems": systems,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text.String()), 0o644)
}
