// Package aws is the provider for an EKS cluster in an AWS account. So far it only has its
// section of the configuration: Provider has no Terraform method, so Registry.Get refuses
// an install with CodeUnknown.
package aws

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/providers"
)

// Name is the provider's name in the config.
const Name = "aws"

// Provider is the provider. The zero value is ready to use.
type Provider struct{}

// Settings is this provider's section of the config.
type Settings struct {
	Region   string   `json:"region" jsonschema:"required,pattern=^[a-z]{2}(-[a-z]+)+-[0-9]$,example=eu-central-1,example=eu-west-1,example=us-east-1,example=us-east-2,example=us-west-2,example=ap-northeast-1,example=ap-southeast-1" want:"a region such as eu-central-1" jsonschema_description:"Region for all resources."`
	Account  string   `json:"account,omitempty" jsonschema:"pattern=^[0-9]{12}$,example=123456789012" want:"12 digits (in quotes in the file)" jsonschema_description:"Account that the credentials must belong to, 12 digits; not checked when left out."`
	CIDR     string   `json:"cidr,omitempty" jsonschema:"example=10.20.0.0/16" jsonschema_description:"IPv4 network of a new VPC, /16 to /20."`
	VPCID    string   `json:"vpcId,omitempty" jsonschema:"pattern=^vpc-[0-9a-f]{8}([0-9a-f]{9})?$,example=vpc-0123456789abcdef0" want:"the id of a VPC such as vpc-0123456789abcdef0" jsonschema_description:"Existing VPC to use instead of a new one."`
	Tag      string   `json:"tag,omitempty" jsonschema:"example=team-blue" jsonschema_description:"Value of the tag Customer on all resources, up to 256 characters."`
	Roles    []string `json:"roles,omitempty" example:"[\"platform-admin\"]" jsonschema_description:"IAM roles that become administrators of the cluster, by name."`
	JumpHost JumpHost `json:"jumpHost" jsonschema_description:"The host through which people reach the cluster's API."`
}

// JumpHost is the host through which the cluster's API is reached.
type JumpHost struct {
	Allow []string `json:"allow,omitempty" example:"[\"192.0.2.0/24\"]" jsonschema_description:"IPv4 networks that may reach the jump host; none when left out."`
}

var roleRE = regexp.MustCompile(`^[\w+=,.@-]{1,64}$`)

// Name returns Name.
func (Provider) Name() string { return Name }

// Settings returns the defaults.
func (Provider) Settings() any { return defaults() }

func defaults() Settings { return Settings{CIDR: "10.250.0.0/16"} }

// Location names the region of the cluster that is made.
func (Provider) Location(d providers.Deployment) providers.Location {
	s := defaults()
	_ = config.Decode(d.Section, &s) // it has been checked
	return providers.Location{Cluster: "the EKS cluster " + d.Name, Region: s.Region}
}

// Validate checks the section: see Settings.
func (Provider) Validate(section json.RawMessage) []config.Problem {
	s := defaults()
	l := document.List(config.Decode(section, &s))
	if !providers.IsNetwork(s.CIDR, 16, 20) {
		l.Add("cidr", document.Quote(s.CIDR), "an IPv4 network, /16 to /20, such as 10.250.0.0/16")
	}
	if utf8.RuneCountInString(s.Tag) > 256 {
		l.Add("tag", document.Quote(s.Tag), "at most 256 characters")
	}
	for i, role := range s.Roles {
		l.Match(fmt.Sprintf("roles[%d]", i), role, roleRE, "the name of an IAM role, 1 to 64 letters, digits and _+=,.@-")
	}
	for i, network := range s.JumpHost.Allow {
		if !providers.IsNetwork(network, 0, 32) {
			l.Add(fmt.Sprintf("jumpHost.allow[%d]", i), document.Shown(network), "an IPv4 network such as 192.0.2.0/24")
		}
	}
	return l
}
