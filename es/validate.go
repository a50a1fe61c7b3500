package es

import (
	"errors"
	"fmt"
	"strings"
)

// FieldError is what is wrong with one field of a body.
type FieldError struct{ Name, Message string }

// FieldErrors are what a body's Validate found, field by field: an [ErrInvalid] whose code
// is [CodeValidation]. Return it only if it is not empty.
type FieldErrors []FieldError

// Error is "name: message; name: message".
func (e FieldErrors) Error() string {
	texts := make([]string, len(e))
	for i, f := range e {
		texts[i] = f.Name + ": " + f.Message
	}
	return strings.Join(texts, "; ")
}

// ErrorCode is [CodeValidation].
func (FieldErrors) ErrorCode() string { return CodeValidation }

// Unwrap makes it an [ErrInvalid].
func (FieldErrors) Unwrap() error { return ErrInvalid }

// FieldsOf are the fields that an error names, if it does.
func FieldsOf(err error) []FieldError {
	var fields FieldErrors
	errors.As(err, &fields)
	return fields
}

// ValidateBody calls a body's method Validate() error, where it has one. What that returns
// is an [ErrInvalid].
func ValidateBody(body any) error {
	v, ok := body.(interface{ Validate() error })
	if !ok {
		return nil
	}
	err := v.Validate()
	if err == nil || errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
