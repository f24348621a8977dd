package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/fault"
)

// CodeTaken: a setting cannot go where a newer release has it, since there is something
// already. The error names both.
const CodeTaken fault.Code = "CFG-041"

// UpgradeFile writes a file as a newer release of the platform has it: steps are what that
// release changed, release is what platform.release is to say, empty if that stays. Comments
// and order are preserved. A file of an older version of the schema is migrated first. There
// are no changes if the file is like that already.
func UpgradeFile(data []byte, file string, steps []migrate.Step, release string) ([]byte, []migrate.Change, error) {
	text, changes, err := Migrate(data, file)
	if err != nil {
		return nil, nil, err
	}
	doc, problems := document.Parse(text)
	if len(problems) > 0 {
		return nil, nil, invalid(file, problems)
	}
	if doc.Root() == nil { // it has nothing but defaults
		return data, nil, nil
	}
	var more []migrate.Change
	after := doc.Edit(func(root *yaml.Node) {
		if more, problems = migrate.Release(root, steps); release != "" {
			more = migrate.Set(root, "platform.release", release, more)
		}
	})
	switch {
	case len(problems) > 0:
		return nil, nil, &fault.Fault{
			Code: CodeTaken, Class: fault.Usage, Op: "migrate " + file, Err: &Invalid{Problems: problems},
			Fix: "keep one of the two in " + file + ", under the newer name, then run the same command again",
		}
	case len(after) > 0:
		return nil, nil, invalid(file, after)
	case len(more) == 0:
		return text, changes, nil
	}
	out, err := doc.Encode()
	return out, append(changes, more...), err
}
