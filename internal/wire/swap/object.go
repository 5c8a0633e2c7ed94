package swap

// Object is a type of resource other than memory whose calls have messages.
type Object struct {
	Resource string // type of the resource in package trace
	Desc     string
	RefCount bool
	Message  uint32 // ProbeFile, where sockets have ProbeNetwork; ProbeThread or ProbeSync
	Sync     uint32 // sync_type of ProbeSync
	// Made and Ended are the functions for calls without a name.
	Made, Ended string
}

// Resources that codecs treat specially.
const (
	Descriptor = "fd"
	Stream     = "fp"
	Condition  = "condition"
)

// Objects lists these types.
var Objects = []Object{
	{Resource: Descriptor, Desc: "file descriptor", Message: ProbeFile, Made: "open", Ended: "close"},
	{Resource: Stream, Desc: "file pointer", Message: ProbeFile, Made: "fopen", Ended: "fclose"},
	{Resource: "thread", Desc: "joinable thread", Message: ProbeThread, Made: "pthread_create", Ended: "pthread_join"},
	{Resource: "mutex", Desc: "mutex held, size: ns waited", RefCount: true, Message: ProbeSync, Sync: 3, Made: "pthread_mutex_lock", Ended: "pthread_mutex_unlock"},
	{Resource: "rwlock", Desc: "read-write lock held, size: ns waited", RefCount: true, Message: ProbeSync, Sync: 5, Made: "pthread_rwlock_rdlock", Ended: "pthread_rwlock_unlock"},
	{Resource: Condition, Desc: "wait for a condition, size: ns waited", RefCount: true, Message: ProbeSync, Sync: 4, Made: "pthread_cond_wait", Ended: "pthread_cond_wait"},
	{Resource: "semaphore", Desc: "unit of a semaphore, size: ns waited", RefCount: true, Message: ProbeSync, Sync: 2, Made: "sem_wait", Ended: "sem_post"},
}

// LookupObject returns the Object of a resource type, or nil.
func LookupObject(resource string) *Object {
	for i := range Objects {
		if Objects[i].Resource == resource {
			return &Objects[i]
		}
	}
	return nil
}

// LookupSync returns the Object of a sync_type in PROBE_SYNC, or nil.
func LookupSync(kind uint32) *Object {
	for i := range Objects {
		if t := &Objects[i]; t.Message == ProbeSync && t.Sync == kind {
			return t
		}
	}
	return nil
}

// Values of api_type, by message.
const (
	FileOpen  = 0
	FileClose = 1
	FileOther = 8

	NetworkOpen        = 0
	NetworkClose       = 1
	NetworkBind        = 6
	NetworkConnect     = 8
	NetworkAcceptStart = 9
	NetworkAcceptEnd   = 10
	NetworkOther       = 13

	ThreadStart     = 1
	ThreadWaitStart = 4
	ThreadWaitEnd   = 5
	ThreadOther     = 8

	SyncWaitStart      = 1
	SyncWaitEnd        = 2
	SyncRelease        = 3
	SyncTry            = 4
	SyncConditionStart = 5
	SyncConditionEnd   = 6
	SyncOther          = 9
)

var (
	// joins holds the functions that wait for the end of a thread.
	joins = map[string]bool{
		"pthread_join": true, "pthread_tryjoin_np": true, "pthread_timedjoin_np": true, "pthread_clockjoin_np": true, "thrd_join": true,
	}
	// tries holds the functions that take a lock without waiting.
	tries = map[string]bool{
		"pthread_mutex_trylock": true, "mtx_trylock": true, "pthread_rwlock_tryrdlock": true, "pthread_rwlock_trywrlock": true, "sem_trywait": true,
	}
)

// Way defines the messages that represent a call.
type Way struct {
	Message uint32
	Type    uint32 // api_type
	// Waits reports that a message with Start as api_type is sent first, when
	// the call begins.
	Waits bool
	Start uint32
}

// Way returns the messages for a function that makes or ends a resource. A
// close has the same Way for all descriptors; for a socket it is NetworkClose.
func (t *Object) Way(function string, ends bool) Way {
	switch t.Message {
	case ProbeThread:
		switch {
		case !ends:
			return Way{Message: ProbeThread, Type: ThreadStart}
		case joins[function]:
			return Way{Message: ProbeThread, Type: ThreadWaitEnd, Waits: true, Start: ThreadWaitStart}
		}
		return Way{Message: ProbeThread, Type: ThreadOther}
	case ProbeSync:
		switch {
		case ends && t.Resource == Condition:
			return Way{Message: ProbeSync, Type: SyncOther}
		case ends:
			return Way{Message: ProbeSync, Type: SyncRelease}
		case t.Resource == Condition:
			return Way{Message: ProbeSync, Type: SyncConditionEnd, Waits: true, Start: SyncConditionStart}
		case tries[function]:
			return Way{Message: ProbeSync, Type: SyncTry}
		}
		return Way{Message: ProbeSync, Type: SyncWaitEnd, Waits: true, Start: SyncWaitStart}
	}
	return t.fileWay(function, ends)
}

// fileWay is Way for descriptors and streams. A bind ends a descriptor and
// makes a new one with an address, and a stream takes over the descriptor that
// it is made from. Nothing is closed in these cases.
func (t *Object) fileWay(function string, ends bool) Way {
	switch {
	case t.Resource == Stream:
	case ends && (function == "bind" || function == "connect"):
		return Way{Message: ProbeNetwork, Type: NetworkOther}
	case ends && (function == "fdopen" || function == "fdopendir"):
		return Way{Message: ProbeFile, Type: FileOther}
	case ends:
	case function == "socket" || function == "socketpair":
		return Way{Message: ProbeNetwork, Type: NetworkOpen}
	case function == "bind":
		return Way{Message: ProbeNetwork, Type: NetworkBind}
	case function == "connect":
		return Way{Message: ProbeNetwork, Type: NetworkConnect}
	case function == "accept" || function == "accept4":
		return Way{Message: ProbeNetwork, Type: NetworkAcceptEnd, Waits: true, Start: NetworkAcceptStart}
	}
	if ends {
		return Way{Message: ProbeFile, Type: FileClose}
	}
	return Way{Message: ProbeFile, Type: FileOpen}
}

// Param is a parameter of a function.
type Param struct {
	Letter byte
	// Name is the name of the argument in package trace. If it is empty, the
	// argument has no name there and the item is an n.
	Name string
	Hex  bool // the argument is a hexadecimal number
	ID   bool // the argument is the resource itself
}

// The usual parameters.
var (
	unknown = Param{Letter: 'n'}
	path    = Param{Letter: 's', Name: "path"}
	flags   = Param{Letter: 'd', Name: "flags", Hex: true}
	mode    = Param{Letter: 's', Name: "mode"}
	oldfd   = Param{Letter: 'd', Name: "oldfd"}
	sockfd  = Param{Letter: 'd', Name: "sockfd"}
	itself  = Param{Letter: 'd', ID: true}
	object  = []Param{{Letter: 'p', ID: true}}
	address = []Param{itself, unknown, unknown}
	domain  = []Param{
		{Letter: 'd', Name: "domain", Hex: true}, {Letter: 'd', Name: "type", Hex: true}, {Letter: 'd', Name: "protocol", Hex: true},
	}
	routine = Param{Letter: 'p', Name: "start_routine", Hex: true}
)

// params holds the parameters of functions that make resources.
var params = map[string][]Param{
	"open": {path, flags}, "openat": {unknown, path, flags}, "shm_open": {path, flags},
	"creat":        {path, {Letter: 'd', Name: "mode", Hex: true}},
	"memfd_create": {{Letter: 's', Name: "name"}, flags},
	"mkstemp":      {path}, "mkostemp": {path}, "mkstemps": {path}, "mkostemps": {path},
	"dup": {oldfd}, "dup2": {oldfd, itself}, "dup3": {oldfd, itself}, "fcntl": {oldfd},
	"socket": domain, "socketpair": domain, "bind": address, "connect": address,
	"accept": {sockfd, unknown, unknown}, "accept4": {sockfd, unknown, unknown}, "recvmsg": {sockfd},
	"inotify_init1": {flags}, "epoll_create1": {flags}, "posix_openpt": {flags},
	"eventfd": {unknown, flags}, "signalfd": {unknown, unknown, flags}, "timerfd_create": {unknown, flags}, "pipe2": {unknown, flags},
	"fopen": {path, mode}, "freopen": {path, mode}, "popen": {path, mode}, "opendir": {path},
	"fdopen": {{Letter: 'd', Name: "fd"}, mode}, "fdopendir": {{Letter: 'd', Name: "fd"}},
	"pthread_create": {unknown, unknown, routine, unknown}, "thrd_create": {unknown, routine, unknown},
}

// Params returns the known parameters of a function that makes or ends such a
// resource. A function that ends one has the resource as its parameter.
func (t *Object) Params(function string, ends bool) []Param {
	switch {
	case t.Message == ProbeSync || ends && t.Resource == Stream:
		return object
	case t.Message == ProbeThread && ends:
		return []Param{{Letter: 'x', ID: true}}
	case ends:
		return []Param{itself}
	}
	if n := len(function) - 2; n > 0 && function[n:] == "64" {
		function = function[:n] // the variant for large files
	}
	return params[function]
}

// Result returns the letter of the result of a function that makes such a
// resource, and whether the result is the resource itself. The result is 0
// otherwise. The letter n means that it is unknown.
func (t *Object) Result(function string) (letter byte, itself bool) {
	switch {
	case t.Resource == Stream:
		return 'p', true
	case t.Resource != Descriptor:
		return 'd', false
	case function == "recvmsg":
		return 'n', false
	case function == "bind", function == "connect", function == "socketpair", function == "pipe", function == "pipe2":
		return 'd', false
	}
	return 'd', true
}
