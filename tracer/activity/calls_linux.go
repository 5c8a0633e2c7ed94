package activity

import (
	"runtime"
)

// Call is a system call for one kind of program.
type Call struct {
	Name  string
	Class Classes // a single class
	// Address is that of the kernel's function, or the call's number if the kernel hides its
	// symbols or has none of that name.
	Address uint64

	letters string
}

const (
	abis        = int(activityActivityAbiABI_COUNT)
	callNumbers = 512 // CALL_NUMBERS in bpf/activity.h
)

// callTable holds the calls that are recorded, by kind of program and number.
type callTable [abis][]*Call

func (t *callTable) find(abi, number int) *Call {
	if abi >= abis || number >= len(t[abi]) {
		return nil
	}
	return t[abi][number]
}

// columns returns the index in systemCall.numbers of each kind of program, or -1 if there is no
// such kind here.
func columns() [abis]int {
	if runtime.GOARCH == "arm64" {
		return [abis]int{1, -1}
	}
	return [abis]int{0, 2}
}

// newCallTable returns the calls of the given classes.
func newCallTable(wanted Classes, names symbols) (t callTable) {
	for abi, column := range columns() {
		if column < 0 {
			continue
		}
		t[abi] = make([]*Call, callNumbers)
		for i := range systemCalls {
			s := &systemCalls[i]
			number := int(s.numbers[column])
			if number < 0 || s.classes&wanted == 0 {
				continue
			}
			letters := s.letters
			if abi == int(activityActivityAbiABI_32) && s.narrow != "" {
				letters = s.narrow
			}
			t[abi][number] = &Call{
				Name: s.name, Class: (s.classes & wanted).first(), letters: letters,
				Address: names.address(abi, s.name, uint64(number)),
			}
		}
	}
	return t
}

// rules calls put for each call that the programs must report.
func (t *callTable) rules(put func(index uint32, rule *activityCallRule) error) error {
	for abi := range t {
		for number, call := range t[abi] {
			if call == nil {
				continue
			}
			rule := activityCallRule{Wanted: 1}
			texts := 0
			for i := range len(call.letters) {
				if call.letters[i] == 's' && texts < len(rule.Text) {
					rule.Text[texts] = uint8(i + 1)
					texts++
				}
			}
			if err := put(uint32(abi*callNumbers+number), &rule); err != nil {
				return err
			}
		}
	}
	return nil
}
