// What builds the offline engine and the bundle: a store of build results and
// the builders that fill it. Shared by ci/engine and ci/bundle.
module github.com/slipway-sh/slipway/ci/build

go 1.26.0

require golang.org/x/sys v0.36.0
