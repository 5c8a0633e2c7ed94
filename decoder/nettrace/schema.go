package nettrace

import (
	wire "rtrace-bpf/internal/wire/nettrace"
)

// schema describes an event of the runtime that the stream does not describe.
type schema struct {
	name string
	// fields are those of the highest known version. An event of a lower version has
	// only the first of them; see since.
	fields []wire.Field
	since  []int // number of fields in version 0, 1, …; empty if all versions have all
}

// pointer is the type of a field with the size of an address. Only the tables here use
// it.
const pointer wire.Type = 0xff

// Short forms for lists of fields.
func u16(name string) wire.Field  { return wire.Field{Name: name, Type: wire.TypeUInt16} }
func u32(name string) wire.Field  { return wire.Field{Name: name, Type: wire.TypeUInt32} }
func u64(name string) wire.Field  { return wire.Field{Name: name, Type: wire.TypeUInt64} }
func ptr(name string) wire.Field  { return wire.Field{Name: name, Type: pointer} }
func text(name string) wire.Field { return wire.Field{Name: name, Type: wire.TypeString} }

// eventKey identifies an event of a provider.
type eventKey struct {
	provider string
	id       uint32
}

// instance is the number of the runtime in the process, which is the same in all
// events.
var instance = u16("ClrInstanceID")

var (
	methodFields = []wire.Field{
		u64("MethodID"), u64("ModuleID"), u64("StartAddress"), u32("Size"), u32("Token"), u32("Flags"),
		text("Namespace"), text("Name"), text("Signature"), instance, u64("ReJITID"),
	}
	shortMethodFields = []wire.Field{
		u64("MethodID"), u64("ModuleID"), u64("StartAddress"), u32("Size"), u32("Token"), u32("Flags"), instance, u64("ReJITID"),
	}
	moduleFields = []wire.Field{
		u64("ModuleID"), u64("AssemblyID"), u32("Flags"), u32("Reserved"), text("ILPath"), text("NativePath"), instance,
	}
	domainModuleFields = []wire.Field{
		u64("ModuleID"), u64("AssemblyID"), u64("AppDomainID"), u32("Flags"), u32("Reserved"), text("ILPath"), text("NativePath"), instance,
	}
)

// schemas holds the known native events, as the runtime's manifest describes them.
var schemas = map[eventKey]schema{
	{wire.ProviderRuntime, wire.RuntimeGCStart}: {
		"GC/Start", []wire.Field{u32("Count"), u32("Depth"), u32("Reason"), u32("Type"), instance, u64("ClientSequenceNumber")}, []int{0, 5, 6},
	},
	{wire.ProviderRuntime, wire.RuntimeGCEnd}: {
		"GC/Stop", []wire.Field{u32("Count"), u32("Depth"), instance}, []int{0, 3},
	},
	{wire.ProviderRuntime, wire.RuntimeAllocationTick}: {
		"GC/AllocationTick", []wire.Field{
			u32("AllocationAmount"), u32("AllocationKind"), instance, u64("AllocationAmount64"), ptr("TypeID"), text("TypeName"),
			u32("HeapIndex"), ptr("Address"), u64("ObjectSize"),
		}, []int{2, 3, 7, 8, 9},
	},
	{wire.ProviderRuntime, wire.RuntimeAllocationSampled}: {
		"GC/AllocationSampled", []wire.Field{
			u32("AllocationKind"), instance, ptr("TypeID"), text("TypeName"), ptr("Address"), u64("ObjectSize"), u64("SampledByteOffset"),
		}, nil,
	},
	{wire.ProviderRuntime, 5}:  {"GC/CreateSegment", []wire.Field{u64("Address"), u64("Size"), u32("Type"), instance}, []int{3, 4}},
	{wire.ProviderRuntime, 13}: {"GC/FinalizersStop", []wire.Field{u32("Count"), instance}, []int{1, 2}},
	{wire.ProviderRuntime, 14}: {"GC/FinalizersStart", []wire.Field{instance}, []int{0, 1}},

	{wire.ProviderRuntime, wire.RuntimeMethodLoad}:        {"Method/Load", shortMethodFields, []int{6, 7, 8}},
	{wire.ProviderRuntime, wire.RuntimeMethodLoadVerbose}: {"Method/LoadVerbose", methodFields, []int{9, 10, 11}},
	{wire.ProviderRuntime, wire.RuntimeDomainModuleLoad}:  {"Loader/DomainModuleLoad", domainModuleFields, []int{7, 8}},
	{wire.ProviderRuntime, wire.RuntimeModuleLoad}:        {"Loader/ModuleLoad", moduleFields, []int{6, 7}},

	{wire.ProviderRundown, wire.RundownMethodStart}:        {"Method/DCStart", shortMethodFields, []int{6, 7, 8}},
	{wire.ProviderRundown, wire.RundownMethodEnd}:          {"Method/DCStop", shortMethodFields, []int{6, 7, 8}},
	{wire.ProviderRundown, wire.RundownMethodStartVerbose}: {"Method/DCStartVerbose", methodFields, []int{9, 10, 11}},
	{wire.ProviderRundown, wire.RundownMethodEndVerbose}:   {"Method/DCStopVerbose", methodFields, []int{9, 10, 11}},
	{wire.ProviderRundown, wire.RundownDomainModuleStart}:  {"Loader/DomainModuleDCStart", domainModuleFields, []int{7, 8}},
	{wire.ProviderRundown, wire.RundownDomainModuleEnd}:    {"Loader/DomainModuleDCStop", domainModuleFields, []int{7, 8}},
	{wire.ProviderRundown, wire.RundownModuleStart}:        {"Loader/ModuleDCStart", moduleFields, []int{6, 7}},
	{wire.ProviderRundown, wire.RundownModuleEnd}:          {"Loader/ModuleDCStop", moduleFields, []int{6, 7}},

	{wire.ProviderSampler, wire.SamplerSample}: {"Thread/Sample", []wire.Field{u32("Type")}, nil},
}

// fieldsOf returns the name and the fields of an event that the stream does not
// describe, with the size of addresses. It returns none if the event is unknown.
func fieldsOf(m *wire.Metadata, pointerSize int) (name string, fields []wire.Field) {
	s, ok := schemas[eventKey{m.Provider, m.EventID}]
	if !ok {
		return "", nil
	}
	n := len(s.fields)
	if len(s.since) > 0 {
		n = s.since[min(int(min(m.Version, 255)), len(s.since)-1)]
	}
	fields = append(fields, s.fields[:n]...)
	for i := range fields {
		if fields[i].Type == pointer {
			fields[i].Type = wire.TypeUInt64
			if pointerSize == 4 {
				fields[i].Type = wire.TypeUInt32
			}
		}
	}
	return s.name, fields
}
