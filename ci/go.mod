module github.com/slipway-sh/slipway/ci

go 1.26.0
