package swap

// API is a function and its number in probe messages.
type API struct {
	ID   uint32
	Name string
	// Args are the letters of the arguments, for functions of the allocator.
	Args string
}

// Numbers of functions. Those of the probe library are assigned when it is
// built and differ between releases; the host gets them with GET_PROBE_MAP.
const (
	APIMalloc  = 424
	APIFree    = 425
	APIRealloc = 426
	APICalloc  = 427
	// FirstOwnAPI is the first number of the functions that the probe library
	// lacks.
	FirstOwnAPI = 0x10000
	// FirstNamedAPI is the first number that API_NAME assigns.
	FirstNamedAPI = 0x20000
)

// MemoryAPIs lists the functions of PROBE_MEMORY, with the numbers of the probe
// library of August 2016 and, from FirstOwnAPI on, our own.
var MemoryAPIs = []API{
	{413, "memset", "pdx"},
	{414, "memcmp", "ppx"},
	{415, "memcpy", "ppx"},
	{416, "operator new(unsigned long)", "x"},
	{417, "operator new[](unsigned long)", "x"},
	{418, "operator delete(void*)", "p"},
	{419, "operator delete[](void*)", "p"},
	{420, "operator new(unsigned long, std::nothrow_t const&)", "xp"},
	{421, "operator new[](unsigned long, std::nothrow_t const&)", "xp"},
	{422, "operator delete(void*, std::nothrow_t const&)", "pp"},
	{423, "operator delete[](void*, std::nothrow_t const&)", "pp"},
	{APIMalloc, "malloc", "x"},
	{APIFree, "free", "p"},
	{APIRealloc, "realloc", "px"},
	{APICalloc, "calloc", "xx"},
	{0x10000, "posix_memalign", "pxx"},
	{0x10001, "aligned_alloc", "xx"},
	{0x10002, "memalign", "xx"},
	{0x10003, "valloc", "x"},
	{0x10004, "pvalloc", "x"},
	{0x10005, "reallocarray", "pxx"},
	{0x10006, "operator new(unsigned long, std::align_val_t)", "xx"},
	{0x10007, "operator new[](unsigned long, std::align_val_t)", "xx"},
	{0x10008, "operator new(unsigned long, std::align_val_t, std::nothrow_t const&)", "xxp"},
	{0x10009, "operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)", "xxp"},
	{0x1000A, "operator delete(void*, unsigned long)", "px"},
	{0x1000B, "operator delete[](void*, unsigned long)", "px"},
	{0x1000C, "operator delete(void*, std::align_val_t)", "px"},
	{0x1000D, "operator delete[](void*, std::align_val_t)", "px"},
	{0x1000E, "operator delete(void*, unsigned long, std::align_val_t)", "pxx"},
	{0x1000F, "operator delete[](void*, unsigned long, std::align_val_t)", "pxx"},
	{0x10010, "operator delete(void*, std::align_val_t, std::nothrow_t const&)", "pxp"},
	{0x10011, "operator delete[](void*, std::align_val_t, std::nothrow_t const&)", "pxp"},
}

// OtherAPIs lists known functions of other probes, with the numbers of the
// probe library of August 2016 and, from FirstOwnAPI on, our own.
var OtherAPIs = []API{
	{15, "fork", ""},
	{16, "captureScreen", ""},
	{58, "fclose", ""},
	{66, "fopen", ""},
	{70, "fread", ""},
	{76, "fwrite", ""},
	{94, "close", ""},
	{95, "creat", ""},
	{96, "dup", ""},
	{97, "dup2", ""},
	{100, "fcntl", ""},
	{106, "lseek", ""},
	{107, "open", ""},
	{108, "openat", ""},
	{109, "pread", ""},
	{110, "pwrite", ""},
	{111, "read", ""},
	{112, "readv", ""},
	{113, "write", ""},
	{428, "accept", ""},
	{430, "bind", ""},
	{431, "connect", ""},
	{436, "epoll_wait", ""},
	{441, "listen", ""},
	{442, "poll", ""},
	{445, "recv", ""},
	{446, "recvfrom", ""},
	{448, "select", ""},
	{449, "send", ""},
	{451, "sendto", ""},
	{453, "shutdown", ""},
	{455, "socket", ""},
	{460, "pthread_mutex_lock", ""},
	{463, "pthread_mutex_unlock", ""},
	{476, "pthread_cond_wait", ""},
	{478, "pthread_cond_signal", ""},
	{482, "pthread_create", ""},
	{483, "pthread_join", ""},
	{484, "pthread_exit", ""},
	{485, "pthread_cancel", ""},
	{486, "pthread_detach", ""},
	{509, "evas_object_show", ""},
	{0x10100, "pthread_rwlock_rdlock", ""},
	{0x10101, "pthread_rwlock_unlock", ""},
	{0x10102, "sem_wait", ""},
	{0x10103, "sem_post", ""},
}

// LookupAPI returns the function of a probe message by its number, or nil. It
// searches MemoryAPIs for PROBE_MEMORY and OtherAPIs for all others.
func LookupAPI(message, id uint32) *API {
	list := OtherAPIs
	if message == ProbeMemory {
		list = MemoryAPIs
		if i := int(id) - int(list[0].ID); i >= 0 && i < 15 {
			return &list[i]
		}
	}
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}
