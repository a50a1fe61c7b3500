// Package estest is for tests: Given, When, Then for the rules of an aggregate, and a
// conformance suite for each interface of es, which the test of every driver calls.
package estest
