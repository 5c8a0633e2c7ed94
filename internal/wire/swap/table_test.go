package swap

import "testing"

// The tables agree with each other and with the lists of the protocol document.
func TestTables(t *testing.T) {
	// The IDs in the document's lists, older and newer.
	document := map[string]uint32{
		"PROCESS_INFO": 0x0001, "TERMINATE": 0x0002, "ERROR": 0x0003, "SAMPLE": 0x0004, "SYSTEM": 0x0005, "IMAGE": 0x0006, "RECORD": 0x0007,
		"FUNCTION_ENTRY": 0x0008, "FUNCTION_EXIT": 0x0009, "SYSCALL_ENTRY": 0x000A, "SYSCALL_EXIT": 0x000B,
		"FILE_FUNCTION_ENTRY": 0x000C, "FILE_FUNCTION_EXIT": 0x000D, "PROCESS_STATUS_INFO": 0x000E,
		"CONTEXT_SWITCH_ENTRY": 0x0010, "CONTEXT_SWITCH_EXIT": 0x0011, "PROCESS_MAP": 0x0012, "PROCESS_UNMAP": 0x0013, "PROCESS_COMM": 0x0014,
		"WEB_SAMPLING": 0x0015, "APP_SETUP_STAGE": 0x0019, "WEB_APP_SETUP_STAGE": 0x001A, "FBI": 0x0020, "UI_HIERARCHY": 0x0021, "LSAN": 0x0022,
		"PROBE_MEMORY": 0x0101, "PROBE_UICONTROL": 0x0102, "PROBE_UIEVENT": 0x0103, "PROBE_FILE": 0x0104, "PROBE_LIFECYCLE": 0x0105,
		"PROBE_SCREENSHOT": 0x0106, "PROBE_SCENE": 0x0107, "PROBE_THREAD": 0x0108, "PROBE_CUSTOM": 0x0109, "PROBE_SYNC": 0x0110,
		"PROBE_NETWORK": 0x0111, "PROBE_GLES20": 0x0112,
	}
	for name, id := range document {
		if m := LookupName(name); m == nil || m.ID != id || Lookup(id) != m {
			t.Errorf("%s is not %04x", name, id)
		}
	}
	seen := map[uint32]bool{}
	for i := range Messages {
		m := &Messages[i]
		if seen[m.ID] {
			t.Errorf("%04x is listed twice", m.ID)
		}
		seen[m.ID] = true
		if _, ok := document[m.Name]; !ok && m.ID < FirstPrivate && m.ID != WebFunctionExit {
			t.Errorf("%s is not in the document", m.Name)
		}
		for _, l := range m.Layouts {
			for j := range l.Fields {
				if f := &l.Fields[j]; f.Type == List && f.Elements[0].Type.Size() == 0 && f.Elements[0].Type != List {
					t.Errorf("%s: elements of %s may take no bytes", m.Name, f.Name)
				}
			}
		}
	}
	for _, id := range []uint32{0, 0x000F, 0x0017, 0x001B, 0x0023, 0x010A, 0x0113, 0xFFFF} {
		if Lookup(id) != nil {
			t.Errorf("%04x is not assigned", id)
		}
	}
	for _, list := range [][]API{MemoryAPIs, OtherAPIs} {
		for i := range list {
			if i > 0 && list[i].ID <= list[i-1].ID {
				t.Errorf("%s is out of order", list[i].Name)
			}
		}
	}
	for i := range MemoryAPIs {
		if LookupAPI(ProbeMemory, MemoryAPIs[i].ID) != &MemoryAPIs[i] || LookupAPI(ProbeFile, MemoryAPIs[i].ID) != nil {
			t.Errorf("%s is not found", MemoryAPIs[i].Name)
		}
	}
}
