// Package init has the backends that need no module of their own. The nine for stores of clouds
// and clusters are a third of all packages of Terraform, and a step serves it the state by the
// backend http.
package init

import (
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-svchost/disco"

	"github.com/hashicorp/terraform/internal/backend"
	"github.com/hashicorp/terraform/internal/backend/local"
	"github.com/hashicorp/terraform/internal/backend/remote"
	"github.com/hashicorp/terraform/internal/backend/remote-state/http"
	"github.com/hashicorp/terraform/internal/backend/remote-state/inmem"
	"github.com/hashicorp/terraform/internal/cloud"
)

// RemovedBackends says, by name, why a backend is not there. Init sets it.
var RemovedBackends map[string]string

var (
	mu       sync.Mutex
	backends map[string]backend.InitFn // by name; guarded by mu
)

// Init sets the backends that there are.
func Init(services *disco.Disco) {
	mu.Lock()
	defer mu.Unlock()
	backends = map[string]backend.InitFn{
		"local":  func() backend.Backend { return local.New() },
		"http":   func() backend.Backend { return http.New() },
		"inmem":  func() backend.Backend { return inmem.New() },
		"remote": func() backend.Backend { return remote.New(services) },
		"cloud":  func() backend.Backend { return cloud.New(services) }, // of the block cloud
	}
	RemovedBackends = map[string]string{}
	for _, name := range []string{"azurerm", "consul", "cos", "gcs", "kubernetes", "oci", "oss", "pg", "s3"} {
		RemovedBackends[name] = fmt.Sprintf("The Terraform of Slipway's bundle does not have the backend %q. Declare backend \"local\" {} instead: Slipway stores the state.", name)
	}
}

// Backend makes the backend of that name; nil if there is none.
func Backend(name string) backend.InitFn {
	mu.Lock()
	defer mu.Unlock()
	return backends[name]
}

// BackendExists reports whether there is a backend of that name.
func BackendExists(name string) bool { return Backend(name) != nil }

// Set puts f in the place of the backend of that name; nil removes it.
func Set(name string, f backend.InitFn) {
	mu.Lock()
	defer mu.Unlock()
	if f == nil {
		delete(backends, name)
		return
	}
	backends[name] = f
}
