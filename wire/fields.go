package wire

// field is a member of an envelope. All documents share one set, since a name means
// the same in each.
type field int

const (
	fieldID field = iota
	fieldContext
	fieldAggregate
	fieldName
	fieldHeader
	fieldTenant
	fieldAggregateID
	fieldOwner
	fieldSpace
	fieldRequest
	fieldExpected
	fieldCreate
	fieldVoid
	fieldAllowCreate
	fieldRevision
	fieldBodyType
	fieldBody
	fieldCreateTime
	fieldCommand
	fieldVersion
	fieldFirstOperator
	fieldFirstEventTime
	fieldState
	fieldTags
	fieldDeleted
	fieldEvent
	fieldOperator
	fieldEventTime
	fieldSnapshotTime
	fieldSchema
	fieldCount
)

var fieldNames = [fieldCount]string{
	fieldID: "id", fieldContext: "contextName", fieldAggregate: "aggregateName", fieldName: "name", fieldHeader: "header",
	fieldTenant: "tenantId", fieldAggregateID: "aggregateId", fieldOwner: "ownerId", fieldSpace: "spaceId",
	fieldRequest: "requestId", fieldExpected: "aggregateVersion", fieldCreate: "isCreate", fieldVoid: "isVoid",
	fieldAllowCreate: "allowCreate", fieldRevision: "revision", fieldBodyType: "bodyType", fieldBody: "body",
	fieldCreateTime: "createTime", fieldCommand: "commandId", fieldVersion: "version", fieldFirstOperator: "firstOperator",
	fieldFirstEventTime: "firstEventTime", fieldState: "state", fieldTags: "tags", fieldDeleted: "deleted",
	fieldEvent: "eventId", fieldOperator: "operator", fieldEventTime: "eventTime", fieldSnapshotTime: "snapshotTime",
	fieldSchema: "schema",
}

// fieldsByLength finds a name faster than a map does: few names are of one length.
var fieldsByLength = func() (byLength [maxFieldName + 1][]field) {
	for f, name := range fieldNames {
		byLength[len(name)] = append(byLength[len(name)], field(f))
	}
	return byLength
}()

const maxFieldName = len("aggregateVersion")

// order is the members of an object as they are written. Who reads it tries the next
// one first, and knows most members by one comparison, comma and colon included.
type order []member

type member struct {
	field
	lead string // `"name":`
}

func inOrder(fields ...field) (o order) {
	for _, f := range fields {
		o = append(o, member{f, `"` + fieldNames[f] + `":`})
	}
	return o
}

var (
	commandOrder = inOrder(fieldID, fieldContext, fieldAggregate, fieldName, fieldHeader, fieldTenant, fieldAggregateID,
		fieldOwner, fieldSpace, fieldRequest, fieldExpected, fieldCreate, fieldVoid, fieldAllowCreate, fieldBodyType, fieldBody, fieldCreateTime)
	commitOrder = inOrder(fieldID, fieldContext, fieldAggregate, fieldHeader, fieldAggregateID, fieldTenant, fieldOwner,
		fieldSpace, fieldCommand, fieldRequest, fieldVersion, fieldBody, fieldCreateTime)
	stateOrder = inOrder(fieldID, fieldContext, fieldAggregate, fieldHeader, fieldAggregateID, fieldTenant, fieldOwner,
		fieldSpace, fieldCommand, fieldRequest, fieldVersion, fieldFirstOperator, fieldFirstEventTime, fieldState, fieldTags,
		fieldDeleted, fieldBody, fieldCreateTime)
	eventOrder    = inOrder(fieldID, fieldName, fieldRevision, fieldBodyType, fieldBody)
	snapshotOrder = inOrder(fieldContext, fieldAggregate, fieldAggregateID, fieldTenant, fieldOwner, fieldSpace, fieldVersion,
		fieldEvent, fieldFirstOperator, fieldOperator, fieldFirstEventTime, fieldEventTime, fieldState, fieldSnapshotTime,
		fieldTags, fieldDeleted, fieldSchema)
)

// after is what follows a member.
func (o order) after(f field) order {
	for i := range o {
		if o[i].field == f {
			return o[i+1:]
		}
	}
	return o
}
