// Package e2e tests Slipway as its users do: `dagger call …` on a real engine, a
// real Kubernetes and the bundle. `make e2e` runs it; SLIPWAY_E2E=1 tells the
// tests that engine and bundle are there.
package e2e
