package preorchestrator

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/config/platform"
)

// rotatedAnnotation holds, as a JSON object, the versions of the releases that have brought
// the values of a Secret's keys, by key. A key that is not there has its first value.
const rotatedAnnotation = "slipway.sh/rotated"

// source is the key that is generated: k, or what k is a copy of.
func (s *secrets) source(k platform.SecretKey) platform.SecretKey {
	if k.Generate != platform.CopyOf {
		return k
	}
	for _, w := range s.declared {
		for _, from := range w.Keys {
			if k.From == w.Namespace+"/"+w.Name+"/"+from.Key {
				return from
			}
		}
	}
	return k
}

// due reports whether a newer release rotates the value that a key has.
func (s *secrets) due(o *corev1.Secret, k platform.SecretKey) bool {
	from := s.source(k)
	if _, given := s.givenFor(from); given || from.Rotated == "" {
		return false
	}
	at := rotations(o)[k.Key]
	return at == "" || platform.Older(at, from.Rotated)
}

// rotations are the versions that brought the values of a Secret's keys. Notes that
// somebody has made unreadable are none.
func rotations(o *corev1.Secret) map[string]string {
	out := map[string]string{}
	_ = json.Unmarshal([]byte(o.Annotations[rotatedAnnotation]), &out)
	return out
}

// noteRotations notes that the Secret has the newest value of these keys.
func (s *secrets) noteRotations(o *corev1.Secret, keys []platform.SecretKey) error {
	have := rotations(o)
	before := maps.Clone(have)
	for _, k := range keys {
		if from := s.source(k); from.Rotated != "" {
			have[k.Key] = from.Rotated
		}
	}
	if maps.Equal(before, have) {
		return nil
	}
	text, err := json.Marshal(have)
	if err != nil {
		return err
	}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[rotatedAnnotation] = string(text)
	return nil
}
