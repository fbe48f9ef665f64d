// Functions that every instruction set inlines: a copy that two of them shared would be compiled
// for only one.
#pragma once

#define PG_INLINE [[gnu::always_inline]] inline
#define PG_LAMBDA __attribute__((always_inline))
