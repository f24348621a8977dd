// Package libsecret stands in for the D-Bus keyring client that Dagger's CLI
// imports and the Go module proxy does not serve. A secret named
// libsecret://... is refused; every other kind of secret is unaffected.
package libsecret

import "errors"

var errUnsupported = errors.New("libsecret: this build of the dagger CLI has no keyring support; pass the secret as env:// or file://")

// Service is a connection to the keyring. There is none to be had.
type Service struct{}

// NewService reports that the keyring is not supported.
func NewService() (*Service, error) { return nil, errUnsupported }

// Open reports that the keyring is not supported.
func (*Service) Open() (*Session, error) { return nil, errUnsupported }

// Collections reports that the keyring is not supported.
func (*Service) Collections() ([]Collection, error) { return nil, errUnsupported }

// Unlock reports that the keyring is not supported.
func (*Service) Unlock(*Collection) error { return errUnsupported }

// Session is an open conversation with the keyring.
type Session struct{}

// Collection is a set of secrets.
type Collection struct{}

// Path names the collection.
func (Collection) Path() string { return "" }

// Items reports that the keyring is not supported.
func (Collection) Items() ([]Item, error) { return nil, errUnsupported }

// Item is one secret of a collection.
type Item struct{}

// Path names the item.
func (Item) Path() string { return "" }

// Locked reports that the keyring is not supported.
func (Item) Locked() (bool, error) { return false, errUnsupported }

// Label reports that the keyring is not supported.
func (Item) Label() (string, error) { return "", errUnsupported }

// Attributes reports that the keyring is not supported.
func (Item) Attributes() (map[string]string, error) { return nil, errUnsupported }

// GetSecret reports that the keyring is not supported.
func (Item) GetSecret(*Session) (*Secret, error) { return nil, errUnsupported }

// Secret is a secret's plaintext.
type Secret struct{ Value []byte }
