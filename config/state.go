package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// State is where the deployment's state is stored: in a volume of its own on the engine,
// which is the zero value, or in a bucket.
type State struct {
	URL         string               `json:"url,omitempty" interpolate:"true" jsonschema:"example=s3://bucket?region=eu-central-1" jsonschema_description:"Bucket for journal, lock, run records and Terraform state, below the deployment's name: s3://bucket?region=…, azblob://container?storage_account=… or gs://bucket; the engine's volume when left out."`
	Key         SecretRef            `json:"key,omitempty" jsonschema:"example=file:~/slipway.age" jsonschema_description:"Reference to the age identity that encrypts the deployment's secrets in the bucket; when left out, a local deployment gets one that stays on the engine."`
	Credentials map[string]SecretRef `json:"credentials,omitempty" example:"{\"AWS_SECRET_ACCESS_KEY\": \"env:AWS_SECRET_ACCESS_KEY\"}" jsonschema_description:"Credentials for the bucket: its provider's variables, such as AWS_ACCESS_KEY_ID, each with a reference."`
}

// problems validates s against the stores that can be opened; see Options.
func (s *State) problems(l *document.List, opts Options) {
	kinds := slices.Sorted(maps.Keys(opts.Stores))
	scheme, _, _ := strings.Cut(s.URL, ":")
	known := slices.Contains(kinds, scheme)
	if s.URL != "" && opts.Store != nil {
		if err := opts.Store(s.URL); err != nil {
			why := err.Error()
			if f, ok := errors.AsType[*fault.Fault](err); ok && f.Err != nil {
				why = f.Err.Error()
			}
			// The URL is not shown, as it may contain credentials.
			l.Add("state.url", "something else", fmt.Sprintf("a bucket's URL, %s://bucket (%s); or none, for the engine's volume",
				strings.Join(kinds, "://, "), why))
		}
	}
	if s.Key != "" && s.URL == "" {
		l.Follow("state.url", "state.key", "a value", "none without state.url")
	} else if s.Key != "" && !s.Key.Valid() {
		l.Add("state.key", "something else", refWant("key"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Credentials)) {
		at := "state.credentials." + name
		switch {
		case s.URL == "":
			l.Follow("state.url", at, "a value", "none without state.url")
		case known && !slices.Contains(opts.Stores[scheme], name):
			l.Add(at, document.QuoteKey(name), document.OneOf(opts.Stores[scheme]...)+" for "+scheme)
		case !envRE.MatchString(name):
			l.Add(at, document.QuoteKey(name), "the name of a variable")
		}
		if ref := s.Credentials[name]; ref == "" {
			l.Add(at, "nothing", refWant("credential"))
		} else {
			ref.problem(l, at, "credential")
		}
	}
}
