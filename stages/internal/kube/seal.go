package kube

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
)

// SealSecret, in SystemNamespace, holds the key of the seals of Slipway's notes. Whoever may
// edit ConfigMaps there, and not read Secrets, cannot write a note that Slipway believes.
const SealSecret = "slipway-seal"

const (
	sealKey        = "key"
	sealAnnotation = "slipway.sh/seal"
)

// seal is the seal of the note of that name with that data.
func seal(key []byte, name string, data map[string]string) (string, error) {
	if data == nil { // as the API server returns an empty one
		data = map[string]string{}
	}
	text, err := json.Marshal(map[string]any{"name": name, "data": data})
	if err != nil {
		return "", fmt.Errorf("encode the note %s: %w", name, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// genuineNote returns a fault unless the note is as Slipway wrote it. A removal deletes what
// notes list.
func (c *Client) genuineNote(ctx context.Context, name string, o *corev1.ConfigMap) error {
	is, err := c.isSealed(ctx, name, o.Data, o.Annotations[sealAnnotation])
	if err != nil || is {
		return err
	}
	return &fault.Fault{
		Code: CodeConflict, Class: fault.Step, Op: "read the ConfigMap " + SystemNamespace + "/" + name,
		Err: errors.New("its content is not what Slipway wrote: somebody has edited it, or has replaced it or the Secret " + SealSecret),
		Fix: "keep a copy, which also says who edited it: kubectl get configmap -n " + SystemNamespace + " " + fault.Quote(name) + " -o yaml --show-managed-fields > edited.yaml; then delete it: kubectl delete configmap -n " + SystemNamespace + " " + fault.Quote(name) +
			"; then write it anew: slipway install",
	}
}

// isSealed reports whether a seal is what Slipway gave data of that name.
func (c *Client) isSealed(ctx context.Context, name string, data map[string]string, sealed string) (bool, error) {
	key, err := c.keyOfSeals(ctx)
	if err != nil {
		return false, err
	}
	want, err := seal(key, name, data)
	return (len(key) > 0 || c.Plan != nil) && hmac.Equal([]byte(want), []byte(sealed)), err
}

// makeKeyOfSeals is the key of the seals, which it makes unless there is one.
func (c *Client) makeKeyOfSeals(ctx context.Context, deployment string) ([]byte, error) {
	key, err := c.keyOfSeals(ctx)
	if err != nil || len(key) > 0 || c.Plan != nil { // seals of a plan are the same each time
		return key, err
	}
	value := make([]byte, sha256.Size)
	if _, err := rand.Read(value); err != nil {
		return nil, fmt.Errorf("make the key of the seals: %w", err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{sealKey: base64.StdEncoding.EncodeToString(value)},
	}}
	o.SetName(SealSecret)
	o.SetNamespace(SystemNamespace)
	o.SetLabels(Labels(deployment))
	// Another step may be first: its key is as good.
	if _, err := c.Create(ctx, []*unstructured.Unstructured{o}, func(*unstructured.Unstructured) bool { return true }); err != nil {
		return nil, err
	}
	return c.keyOfSeals(ctx)
}

// keyOfSeals is the key of the seals; empty if there is none.
func (c *Client) keyOfSeals(ctx context.Context) ([]byte, error) {
	o, err := c.Secret(ctx, SystemNamespace, SealSecret)
	if err != nil || o == nil {
		return nil, err
	}
	return o.Data[sealKey], nil
}
