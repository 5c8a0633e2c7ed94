package nettrace

// Names of providers.
const (
	ProviderRuntime  = "Microsoft-Windows-DotNETRuntime"
	ProviderRundown  = "Microsoft-Windows-DotNETRuntimeRundown"
	ProviderSampler  = "Microsoft-DotNETCore-SampleProfiler"
	ProviderPipe     = "Microsoft-DotNETCore-EventPipe"
	ProviderSystem   = "Universal.System" // processes, mappings and symbols
	ProviderUniverse = "Universal.Events" // events with a Value and a stack
	ProviderOwn      = "rtrace-bpf"       // ours
)

// Events of the runtime and its rundown.
const (
	RuntimeGCStart           = 1
	RuntimeGCEnd             = 2
	RuntimeAllocationTick    = 10
	RuntimeAllocationSampled = 303

	RuntimeMethodLoad        = 141
	RuntimeMethodLoadVerbose = 143
	RuntimeDomainModuleLoad  = 151
	RuntimeModuleLoad        = 152
	RuntimeILToNativeMap     = 190

	RundownMethodStart        = 141 // method without names, at the beginning
	RundownMethodEnd          = 142
	RundownMethodStartVerbose = 143
	RundownMethodEndVerbose   = 144
	RundownILToNativeMapStart = 149
	RundownILToNativeMapEnd   = 150
	RundownDomainModuleStart  = 151
	RundownDomainModuleEnd    = 152
	RundownModuleStart        = 153
	RundownModuleEnd          = 154
)

// SamplerSample is the event of the sample profiler.
const SamplerSample = 0

// Events of Universal.System. Integers have type TypeVarUInt. Strings are UTF-8
// after a 16-bit length: an Array of UTF8CodeUnit.
const (
	SystemExistingProcess = 0 // NamespaceId, Name, NamespaceName
	SystemProcessCreate   = 1 // the same
	SystemProcessExit     = 2 // nothing
	SystemMapping         = 3 // Id, StartAddress, EndAddress, FileOffset, FileName, MetadataId
	SystemSymbol          = 4 // Id, MappingId, StartAddress, EndAddress, Name
	SystemMappingMetadata = 5 // Id, SymbolMetadata, VersionMetadata
)

// Names of events of Universal.Events that readers support.
const (
	EventCPU    = "cpu"
	EventSwitch = "cswitch"
	EventMalloc = "malloc"
)
