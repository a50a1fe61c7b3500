// Package service runs the parts of a process together: it prepares them all, starts
// them in order, stops them in reverse within a grace, and says how they are.
package service
