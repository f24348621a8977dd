// Package e2e tests Slipway as its users do: `dagger call …` on a real engine, a
// real Kubernetes and the bundle. `make e2e` runs it; SLIPWAY_E2E=1 tells the
// tests that engine and bundle are there, SLIPWAY_E2E=all that those for which CI has no time
// are wanted as well (`make test-all`).
package e2e
