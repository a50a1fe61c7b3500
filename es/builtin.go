package es

// The commands and events that every aggregate knows. The names, and the body types
// that codecs write for them, are Wow's.

// DeleteAggregate marks an aggregate deleted: every further command but
// [RecoverAggregate] is refused. Nothing is removed.
type DeleteAggregate struct{}

// CommandName implements [CommandBody].
func (DeleteAggregate) CommandName() string { return "default_delete_aggregate" }

// RecoverAggregate takes a deletion back.
type RecoverAggregate struct{}

// CommandName implements [CommandBody].
func (RecoverAggregate) CommandName() string { return "default_recover_aggregate" }

// ApplyResourceTags replaces the aggregate's tags.
type ApplyResourceTags struct {
	Tags Tags `json:"tags"`
}

// CommandName implements [CommandBody].
func (ApplyResourceTags) CommandName() string { return "default_apply_resource_tags" }

// AggregateDeleted says that the aggregate was marked deleted.
type AggregateDeleted struct{}

// EventName implements [EventBody].
func (AggregateDeleted) EventName() string { return "default_aggregate_deleted" }

// AggregateRecovered says that a deletion was taken back.
type AggregateRecovered struct{}

// EventName implements [EventBody].
func (AggregateRecovered) EventName() string { return "default_aggregate_recovered" }

// ResourceTagsApplied says that the aggregate's tags were replaced.
type ResourceTagsApplied struct {
	Tags Tags `json:"tags"`
}

// EventName implements [EventBody].
func (ResourceTagsApplied) EventName() string { return "default_resource_tags_applied" }

// OwnerTransferred is implemented by event bodies that change the aggregate's owner.
type OwnerTransferred interface{ ToOwnerID() string }

// SpaceTransferred is implemented by event bodies that change the aggregate's space.
type SpaceTransferred interface{ ToSpaceID() string }

// BuiltinCommands are the commands above, with Wow's body types, for codecs.
func BuiltinCommands() []Type {
	return []Type{
		{Body: DeleteAggregate{}, BodyType: "me.ahoo.wow.api.command.DefaultDeleteAggregate"},
		{Body: RecoverAggregate{}, BodyType: "me.ahoo.wow.api.command.DefaultRecoverAggregate"},
		{Body: ApplyResourceTags{}, BodyType: "me.ahoo.wow.api.abac.DefaultApplyResourceTags"},
	}
}

// BuiltinEvents are the events above, with Wow's body types, for codecs.
func BuiltinEvents() []Type {
	return []Type{
		{Body: AggregateDeleted{}, BodyType: "me.ahoo.wow.api.event.DefaultAggregateDeleted"},
		{Body: AggregateRecovered{}, BodyType: "me.ahoo.wow.api.event.DefaultAggregateRecovered"},
		{Body: ResourceTagsApplied{}, BodyType: "me.ahoo.wow.api.abac.DefaultResourceTagsApplied"},
	}
}
