//go:build !linux

package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/slipway-sh/slipway/ci/build/remedy"
)

func inside() int { return 1 }

func (c *control) launch(context.Context, engineParts) error {
	return &remedy.Error{Code: "ENG-005", Op: "start an engine", Err: errors.New("an engine of our own runs on Linux only; this is " + runtime.GOOS),
		Fix: "start Docker, then run make engine again"}
}

func (c *control) end(context.Context, record) error { return errNone }
