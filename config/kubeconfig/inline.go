package kubeconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
)

// inliner puts what files hold in the place of their names.
type inliner struct {
	readFile func(path string) ([]byte, error)
}

// inline replaces the file of a field, of an entry in list, by its content.
func (i inliner) inline(e entry, list, field string) error {
	file := e.text(field)
	if file == "" {
		return nil
	}
	delete(e, field)
	if e.text(field+"-data") != "" { // which comes first
		return nil
	}
	text, err := i.read(list, field, file)
	if err == nil {
		e[field+"-data"] = base64.StdEncoding.EncodeToString(text)
	}
	return err
}

// token replaces the file of a user's token, which comes before a token, by its content.
func (i inliner) token(user entry) error {
	file := user.text("tokenFile")
	if file == "" {
		return nil
	}
	delete(user, "tokenFile")
	text, err := i.read("users", "tokenFile", file)
	if err == nil {
		user["token"] = strings.TrimSpace(string(text))
	}
	return err
}

func (i inliner) read(list, field, file string) ([]byte, error) {
	err := errors.New("files are found only where the kubeconfig is one itself, on the machine that runs slipway")
	if i.readFile != nil {
		var text []byte
		if text, err = i.readFile(file); err == nil {
			return text, nil
		}
	}
	return nil, &fault.Fault{
		Code: CodeInvalid, Class: fault.Usage, Op: "read the kubeconfig",
		Fix: "write what the file holds into the kubeconfig: kubectl config view --raw --minify --flatten --context=NAME does so for certificates and keys; put what a tokenFile holds into token",
		Err: bounded.LineError(fmt.Errorf("%s: %s names the file %s: %w", list, field, file, err)),
	}
}

// Secrets calls hide with each credential in what Extract returned, as it is written there
// and decoded.
func Secrets(text []byte, hide func(credential string)) {
	var doc document
	if yaml.Unmarshal(text, &doc) != nil {
		hide(string(text))
		return
	}
	for _, u := range doc.Users {
		for _, field := range []string{"token", "password", "client-key-data"} {
			value := u.User.text(field)
			if value == "" {
				continue
			}
			hide(value)
			if key, err := base64.StdEncoding.DecodeString(value); err == nil && field == "client-key-data" {
				hide(string(key))
			}
		}
	}
}
