package es

import (
	"errors"
	"slices"
)

// Codes that say of what kind a failure is, in Wow's words (Wow v8.10.10).
const (
	// CodeOK is the code of what succeeded.
	CodeOK                 = "Ok"
	CodeNotFound           = "NotFound"
	CodeBadRequest         = "BadRequest"
	CodeIllegalArgument    = "IllegalArgument"
	CodeIllegalState       = "IllegalState"
	CodeValidation         = "CommandValidation"
	CodeDuplicateRequest   = "DuplicateRequestId"
	CodeDuplicateAggregate = "DuplicateAggregateId"
	CodeVersionConflict    = "EventVersionConflict"
	CodeExpectedVersion    = "CommandExpectVersionConflict"
	CodeWrongOwner         = "IllegalAccessOwnerAggregate"
	CodeWrongSpace         = "IllegalAccessSpaceAggregate"
	CodeDeleted            = "IllegalAccessDeletedAggregate"
	CodeInternal           = "InternalServerError"
)

// codes are the kinds of errors that have a code, the more special first.
var codes = []struct {
	err  error
	code string
}{
	{ErrExpectedVersion, CodeExpectedVersion},
	{ErrDuplicateAggregate, CodeDuplicateAggregate},
	{ErrRequestReused, CodeDuplicateRequest},
	{ErrDuplicateRequest, CodeDuplicateRequest},
	{ErrVersionConflict, CodeVersionConflict},
	{ErrNotFound, CodeNotFound},
	{ErrWrongOwner, CodeWrongOwner},
	{ErrWrongSpace, CodeWrongSpace},
	{ErrDeleted, CodeDeleted},
	{ErrNotDeleted, CodeIllegalState},
	{ErrInvalid, CodeIllegalArgument},
	{ErrUnknownType, CodeIllegalArgument},
	{ErrPanic, CodeInternal},
}

// CodeOf is the code of an error. An error that has a method ErrorCode() string has a code
// of its own, which a domain chooses; of others those of this package have one. The rest is
// a [CodeBadRequest], as in Wow, where it is an [ErrRefused], and a [CodeInternal] where it
// is a fault. nil is [CodeOK].
func CodeOf(err error) string {
	if err == nil {
		return CodeOK
	}
	var own interface{ ErrorCode() string }
	if errors.As(err, &own) && own.ErrorCode() != "" {
		return own.ErrorCode()
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	if errors.Is(err, ErrRefused) {
		return CodeBadRequest
	}
	return CodeInternal
}

// CodeError is an error that was known by its code in another process. [errors.Is] finds
// what the code stands for, and [ErrRefused] for each but those of faults: a domain's own
// codes are its aggregate's answers. [CodeDuplicateAggregate] is an
// [ErrDuplicateAggregate] and an [ErrVersionConflict], since Wow has one code for both.
type CodeError struct {
	Code, Message string
	Fields        []FieldError
}

// Error is the message, or the code where there is none.
func (e *CodeError) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// ErrorCode is e's code.
func (e *CodeError) ErrorCode() string { return e.Code }

// faults are the codes that are no answer of an aggregate.
var faults = []string{CodeVersionConflict, CodeInternal, "SourcingVersionConflict", "RequestTimeout", "TooManyRequests"}

// kinds are what the codes stand for. CodeIllegalState may mean anything.
var kinds = map[string][]error{
	CodeNotFound:           {ErrNotFound},
	CodeIllegalArgument:    {ErrInvalid},
	CodeValidation:         {ErrInvalid},
	CodeDuplicateRequest:   {ErrDuplicateRequest},
	CodeDuplicateAggregate: {ErrDuplicateAggregate, ErrVersionConflict},
	CodeVersionConflict:    {ErrVersionConflict},
	CodeExpectedVersion:    {ErrExpectedVersion},
	CodeWrongOwner:         {ErrWrongOwner},
	CodeWrongSpace:         {ErrWrongSpace},
	CodeDeleted:            {ErrDeleted},
}

// Unwrap gives [errors.Is] what the code stands for.
func (e *CodeError) Unwrap() []error {
	found := slices.Clone(kinds[e.Code])
	if !slices.Contains(faults, e.Code) {
		found = append(found, ErrRefused)
	}
	if len(e.Fields) > 0 {
		found = append(found, FieldErrors(e.Fields))
	}
	return found
}
