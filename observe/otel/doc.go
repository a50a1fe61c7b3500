// Package otel brings what becomes of Headwater's messages to OpenTelemetry: spans that
// lead from whoever sends a message to whoever handles it, and metrics.
package otel
