// Force inlining. Each instruction set compiles its own copy; the linker would keep only one copy
// of a shared function, perhaps one that this processor cannot run.
#pragma once

#define PG_INLINE [[gnu::always_inline]] inline
#define PG_LAMBDA __attribute__((always_inline))
