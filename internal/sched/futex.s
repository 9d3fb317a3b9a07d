// This file lets the compiler accept entersyscallblock and exitsyscall, whose bodies the runtime has.
