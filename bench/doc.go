// Package bench measures the engine of the buses side by side with bare go-redis and
// with other libraries. It is a module of its own, so that nobody else depends on them.
package bench
