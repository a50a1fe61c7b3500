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
