package touch

import (
	"runtime"
	"strconv"
	"strings"

	"gopgas/internal/mem"
)

// callers finds the calls on a stack, of which words are the beginning, and text what the kernel says of the thread: its last two
// numbers are the stack pointer and the program counter. There is no frame pointer, so the first frame is searched for.
func callers(text string, words []uint64) []uintptr {
	text, _, _ = strings.Cut(text, "\n")
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return nil
	}
	sp, err := strconv.ParseUint(strings.TrimPrefix(fields[len(fields)-2], "0x"), 16, 64)
	if err != nil {
		return nil
	}
	pc, err := strconv.ParseUint(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64)
	if err != nil {
		return nil
	}
	// A return address lies behind the call; of the innermost one the instruction itself is the place.
	pcs := []uintptr{uintptr(pc) + 1}
	at := firstFrame(uintptr(pc), sp, words)
	if len(words) > 0 && at != 0 && callOf(words[0], uintptr(pc)) == direct { // of a function without a frame
		pcs = append(pcs, uintptr(words[0]))
		at = firstFrame(uintptr(words[0])-1, sp, words)
	}
	// A frame ends in the caller's frame pointer and the return address; the pointer leads to the next such pair.
	for at >= 0 && at+1 < len(words) && callOf(words[at+1], 0) != none {
		pcs = append(pcs, uintptr(words[at+1]))
		if words[at] <= sp+8*uint64(at) || words[at]-sp >= 8*uint64(len(words)) {
			break
		}
		at = int(words[at]-sp) / 8
	}
	return pcs
}

// firstFrame finds the end of the frame of the function that pc lies in: best where the call before the return address is known to be
// one of that function, else where it may be. It is -1 if there is none.
func firstFrame(pc uintptr, sp uint64, words []uint64) int {
	maybe := -1
	for i := 0; i+1 < len(words); i++ {
		if here := sp + 8*uint64(i); words[i] <= here || words[i]-here > 1<<20 || words[i]%8 != 0 {
			continue
		}
		switch callOf(words[i+1], pc) {
		case direct:
			return i
		case indirect:
			if maybe < 0 {
				maybe = i
			}
		}
	}
	return maybe
}

// call is what a word can be, as a return address.
type call int

const (
	none     call = iota // it is none
	other                // of a call of some function that is named
	indirect             // of a call of who knows what
	direct               // of a call of the function that is asked for
)

// callOf looks at the instruction before address v: whether it calls the function that pc lies in.
func callOf(v uint64, pc uintptr) call {
	f := runtime.FuncForPC(uintptr(v) - 1)
	if f == nil || uintptr(v)-f.Entry() < 8 {
		return none
	}
	code := mem.At(uintptr(v)-7, 7).Data()
	switch {
	case code[2] == 0xe8:
		to := uintptr(int64(v) + int64(int32(uint32(code[3])|uint32(code[4])<<8|uint32(code[5])<<16|uint32(code[6])<<24)))
		if in := runtime.FuncForPC(pc); in != nil && in.Entry() == to {
			return direct
		}
		if runtime.FuncForPC(to) == nil {
			return none
		}
		return other
	case code[5] == 0xff && code[6]&0x38 == 0x10, code[4] == 0xff && code[5]&0x38 == 0x10, code[1] == 0xff && code[2]&0x38 == 0x10,
		code[0] == 0xff && code[1]&0x38 == 0x10:
		return indirect
	}
	return none
}

// loose reports whether the function that was interrupted may touch more than it was given: those that compare, search and hash
// bytes read whole words around short ones.
func loose(pcs []uintptr) bool {
	f, _ := runtime.CallersFrames(pcs[:1]).Next()
	if strings.HasPrefix(f.Function, "internal/bytealg.") || !strings.Contains(f.Function, ".") { // the bodies of those are in assembly
		return true
	}
	name, ok := strings.CutPrefix(f.Function, "runtime.")
	if !ok {
		return false
	}
	for _, exact := range []string{"memmove", "memclr", "duff"} {
		if strings.HasPrefix(name, exact) {
			return false
		}
	}
	return true
}

// locks reports whether the instruction at pc is an atomic one that writes: it has a lock prefix, or exchanges.
func locks(pc uintptr) bool {
	code := mem.At(pc, 3).Data()
	if code[0] == 0x66 {
		code = code[1:]
	}
	if code[0]&0xf0 == 0x40 { // REX
		code = code[1:]
	}
	return code[0] == 0xf0 || code[0]&0xfe == 0x86
}
