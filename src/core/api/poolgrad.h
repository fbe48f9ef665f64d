/* poolgrad's core for other languages: windows over arrays, and the functions that pool over them.
 *
 * C99, without Python. docs/c.md has examples. The library libpoolgrad exports these functions; the
 * Python package hands out a table of them (pg_table) for compiled extensions.
 *
 * An array is seen as (outer, pooled axes, inner): NHWC pooled over H and W has outer = N and
 * inner = C, NCHW has outer = N * C and inner = 1. A plan holds the windows of every pooled axis.
 * The source of a plan is the array before pooling, its dest the pooled array.
 *
 * Every function that may fail returns PG_OK or another pg_code, and fills *error if error is not
 * NULL. No function keeps a pointer that it got, throws, or writes past a size that it was given.
 * All functions may run on several threads at once; a plan may be shared, and must outlive its
 * calls.
 */
#ifndef POOLGRAD_H
#define POOLGRAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of this interface. It changes when the meaning of an entry changes; new entries are
 * added at the end of pg_table, whose size tells which there are. */
#define PG_ABI 2

#if defined(__GNUC__) && !defined(_WIN32)
#define PG_EXPORT __attribute__((visibility("default")))
#else
#define PG_EXPORT
#endif

/* ---- errors */

enum pg_code {
  PG_OK = 0,
  PG_INVALID = 1,     /* an argument is wrong */
  PG_NO_MEMORY = 2,   /* the call needs more memory than there is */
  PG_UNSUPPORTED = 3, /* the function does not exist for this element type, or for this processor */
  PG_INTERNAL = 4     /* none of these; please report it */
};

typedef struct pg_error {
  int32_t code;    /* a pg_code */
  int64_t at;      /* the flat position of a wrong element in dest, or -1 */
  char text[320];  /* "fold: x: got 12 elements, wanted 16" */
} pg_error;

/* ---- element types and rules */

enum pg_dtype {
  PG_F16, PG_BF16, PG_F32, PG_F64,
  PG_I8, PG_U8, PG_I16, PG_U16, PG_I32, PG_U32, PG_I64, PG_U64,
  PG_DTYPES /* their number */
};

/* How pg_fold makes a result of the sum of a window. */
enum pg_mean {
  PG_MEAN_COUNTED, /* divide by a count that is kept in the type itself (TensorFlow's AvgPool) */
  PG_MEAN_EXACT,   /* divide by the count, rounded to the type (AvgPool3D) */
  PG_MEAN_WIDE,    /* sum in 64-bit integers, divide toward zero (QuantizedAvgPool) */
  PG_MEAN_STRICT,  /* as EXACT, cell after cell however long the window (FractionalAvgPool) */
  PG_MEAN_TOTAL,   /* do not divide; half types are summed in float64 and rounded once */
  PG_MEAN_ONCE,    /* as EXACT; half types are summed in float64 and rounded once */
  PG_MEAN_SPANNED  /* as ONCE, divided by the cells that the window had before an edge cut it */
};

/* By what pg_average divides the sum of a window. */
enum pg_divisor {
  PG_BY_CELLS, /* its cells */
  PG_BY_SPAN,  /* the cells that it had before an edge cut it */
  PG_BY_NUMBER /* a number */
};

/* What pg_spread adds to each cell of a window. */
enum pg_share {
  PG_SHARE_RECIPROCAL,       /* g * (1/count), 1/count computed in float64 (AvgPoolGrad) */
  PG_SHARE_SHORT_RECIPROCAL, /* g * (1/count), 1/count computed in float32 (AvgPool3DGrad) */
  PG_SHARE_QUOTIENT,         /* g / count, added in float64 (FractionalAvgPoolGrad) */
  PG_SHARE_WHOLE             /* g; half types are added in float64 and rounded once */
};

/* Which cell pg_select and pg_choose take, and what NaN means. Of equal cells they take the first.
 * The last three are TensorFlow's: NaN never replaces the value that a maximum starts from. */
enum pg_best {
  PG_BEST_PROPAGATE_NAN, /* a window with NaN gives NaN */
  PG_BEST_IGNORE_NAN,    /* only a window of NaN alone gives NaN */
  PG_BEST_FROM_LOWEST,   /* start from the lowest finite value (MaxPool; pg_select only) */
  PG_BEST_FROM_FIRST,    /* start from the first cell (MaxPoolWithArgmax) */
  PG_BEST_FROM_INFINITY  /* start from -inf, from the lowest finite value in a window that an edge
                            cut (MaxPool3D; pg_select only) */
};

/* ---- plans */

enum pg_axis_kind {
  PG_AXIS_SLIDING, /* windows of `window` cells, `dilation` apart, every `stride` cells */
  PG_AXIS_WINDOWS, /* `windows` windows: cells start[j] to stop[j] - 1; both must not fall */
  PG_AXIS_BETWEEN, /* `windows` windows between `windows + 1` borders in `start` (fractional pools) */
  PG_AXIS_SHARES,  /* `windows` windows that divide the axis as evenly as cells allow (adaptive) */
  PG_AXIS_PLACED   /* `windows` windows of `window` cells, evenly placed from `offset` in [0, 1] on */
};

enum pg_padding {
  PG_VALID,      /* no padding */
  PG_SAME,       /* as many windows as strides; an odd cell of padding goes to the end */
  PG_SAME_LOWER, /* as PG_SAME; an odd cell of padding goes to the beginning */
  PG_EXPLICIT    /* `before` and `after` cells */
};

enum pg_axis_flags {
  PG_CEIL = 1,        /* sliding: a last window may end behind the axis */
  PG_OVERLAPPING = 2, /* between: a window also has the cell at its end border */
  PG_REACH = 4,       /* sliding: windows longer than the axis that begin before it reach its end
                         (TensorFlow's AvgPoolGrad, AvgPool3DGrad, MaxPool3DGrad) */
  PG_SHIFT = 8        /* sliding, PG_SAME: padding may be negative (AvgPool3D, MaxPool3D) */
};

/* One pooled axis. Set every field that its kind names; set the others to 0. */
typedef struct pg_axis {
  int32_t kind;    /* a pg_axis_kind */
  int32_t padding; /* sliding: a pg_padding */
  int32_t flags;   /* pg_axis_flags, added */
  int32_t unused;  /* 0 */
  int64_t cells;   /* the length of the axis */
  int64_t windows; /* the number of windows; sliding: 0, which computes it, or the number itself */
  int64_t window, stride, dilation; /* sliding; placed: window */
  int64_t before, after;            /* sliding with PG_EXPLICIT */
  const int64_t* start;             /* windows; between: windows + 1 borders */
  const int64_t* stop;              /* windows */
  const int64_t* span;              /* windows: their lengths before edges cut them, or NULL */
  double offset;                    /* placed */
} pg_axis;

/* Return an axis of sliding windows, without dilation. */
static inline pg_axis pg_sliding(int64_t cells, int64_t window, int64_t stride, int32_t padding) {
  pg_axis axis = {PG_AXIS_SLIDING, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, NULL, NULL, NULL, 0.0};
  axis.padding = padding;
  axis.cells = cells;
  axis.window = window;
  axis.stride = stride;
  return axis;
}

/* Return an axis of windows between borders, `windows + 1` of them. */
static inline pg_axis pg_between(int64_t cells, const int64_t* borders, int64_t windows,
                                 int overlapping) {
  pg_axis axis = {PG_AXIS_BETWEEN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0.0};
  axis.flags = overlapping ? PG_OVERLAPPING : 0;
  axis.cells = cells;
  axis.windows = windows;
  axis.start = borders;
  return axis;
}

/* Return an axis of windows that divide its cells evenly; as many as cells: it is not pooled. */
static inline pg_axis pg_shares(int64_t cells, int64_t windows) {
  pg_axis axis = {PG_AXIS_SHARES, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0.0};
  axis.cells = cells;
  axis.windows = windows;
  return axis;
}

typedef struct pg_plan pg_plan;

/* What a plan is made of. */
typedef struct pg_plan_info {
  int64_t source; /* elements of the source */
  int64_t dest;   /* elements of dest */
  int32_t taps;   /* the type of taps: PG_U8, or PG_U32 if some window has more than 256 cells */
  int32_t rank;
  int64_t cells[16], windows[16]; /* of each axis */
} pg_plan_info;

/* ---- arrays and threads */

/* An array that a call reads, or writes: its address and its number of elements. The elements lie
 * one after the other, aligned to their size. What a call writes must not overlap another array. */
typedef struct pg_input {
  const void* data;
  int64_t size;
} pg_input;
typedef struct pg_output {
  void* data;
  int64_t size;
} pg_output;

static inline pg_input pg_in(const void* data, int64_t size) {
  pg_input array;
  array.data = data;
  array.size = size;
  return array;
}
static inline pg_output pg_out(void* data, int64_t size) {
  pg_output array;
  array.data = data;
  array.size = size;
  return array;
}

/* How a call uses threads. NULL instead of a pg_run: by the library's own threads, as many as
 * pg_set_threads allows. A call over little data always runs on the calling thread. */
typedef struct pg_run {
  int32_t threads; /* at most so many; 1: the calling thread alone; 0: as pg_set_threads allows */
  /* NULL, or a function of the caller that runs the work on its own threads: it calls
   * task(argument, i) once for each i from 0 to tasks - 1, on any threads, also at the same time,
   * and returns when all these calls have. */
  void (*parallel_for)(void* context, int64_t tasks, void (*task)(void* argument, int64_t i),
                       void* argument);
  void* context; /* given to parallel_for */
} pg_run;

/* ---- functions. Each type is that of the function, and of its entry in pg_table. */

/* Return PG_ABI of the library. Call it first, and use no other function if it differs. */
typedef int32_t pg_abi_function(void);

/* Return the version of poolgrad, "0.1.0"; and the instruction set in use, "x86-64-v3". "" if the
 * processor is not supported. */
typedef const char* pg_version_function(void);
typedef const char* pg_isa_function(void);

/* Set and return the number of threads of later calls of the process, 1 to 1024; 0 leaves it. The
 * answer is negative if the number is wrong. */
typedef int32_t pg_threads_function(int32_t threads);

/* Make a plan of 1 to 16 pooled axes, in the order of memory; drop it. */
typedef int pg_plan_new_function(int64_t outer, int64_t inner, int32_t rank, const pg_axis* axes,
                                 pg_plan** plan, pg_error* error);
typedef void pg_plan_drop_function(pg_plan* plan);
typedef int pg_plan_describe_function(const pg_plan* plan, pg_plan_info* info, pg_error* error);

/* Draw the borders of fractional pooling as TensorFlow does, for `rank` axes after each other:
 * windows[a] windows over cells[a] cells, 1 <= windows <= cells. `borders` receives windows[a] + 1
 * numbers for each axis; `size` is its length. */
typedef int pg_draw_function(int32_t rank, const int64_t* cells, const int64_t* windows,
                             int pseudo_random, uint64_t seed, uint64_t seed2, int64_t* borders,
                             int64_t size, pg_error* error);

/* y = the sum or mean of each window. Floating types take all rules but PG_MEAN_WIDE; integers take
 * PG_MEAN_WIDE and PG_MEAN_TOTAL, and PG_MEAN_STRICT from 32 bits on. */
typedef int pg_fold_function(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t mean,
                             pg_input x, pg_output y, pg_error* error);

/* dx = the transpose: each cell of g, shared over its window. Floating types; 32 and 64-bit integers
 * with PG_SHARE_QUOTIENT. `reversed`: windows are added with the last axis outermost. */
typedef int pg_spread_function(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t share,
                               int reversed, pg_input g, pg_output dx, pg_error* error);

/* y = the largest cell of each window; the least, if `least`, which TensorFlow's rules for NaN do
 * not have. */
typedef int pg_select_function(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t best,
                               int least, pg_input x, pg_output y, pg_error* error);

/* y = the same, and taps = the number of the cell within its window, counted before it was dilated. */
typedef int pg_choose_function(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t best,
                               int least, pg_input x, pg_output y, pg_output taps, pg_error* error);

/* y = the largest cell by PG_BEST_FROM_FIRST, index = its flat position in x modulo `modulo`
 * (0: the position itself), as int32 or int64 (`index_type`). */
typedef int pg_argmax_function(const pg_plan* plan, const pg_run* run, int32_t dtype,
                               int32_t index_type, int64_t modulo, pg_input x, pg_output y,
                               pg_output index, pg_error* error);

/* out = v at the tap of each window; its transpose: dx = g added at the taps. Half types are added
 * in float32 and rounded once. */
typedef int pg_pick_function(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input v,
                             pg_input taps, pg_output out, pg_error* error);
typedef int pg_place_function(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input g,
                              pg_input taps, pg_output dx, pg_error* error);

/* dx = g added at the first maximum of each window of x, which starts from its first cell
 * (MaxPoolGrad). y, unless its data is NULL, must be the pooled x (FractionalMaxPoolGrad). */
typedef int pg_route_function(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input x,
                              pg_input y, pg_input g, pg_output dx, pg_error* error);

/* out = v at the first cell of each window where x equals y, else 0 (MaxPoolGradGrad). */
typedef int pg_recall_function(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input x,
                               pg_input y, pg_input v, pg_output out, pg_error* error);

/* dx = g added at every cell of its window nearer than eps to y (MaxPool3DGrad). */
typedef int pg_near_function(const pg_plan* plan, const pg_run* run, int32_t dtype, double eps,
                             pg_input x, pg_input y, pg_input g, pg_output dx, pg_error* error);

/* out[k] = v[index[k]]; its transpose: dx[index[k]] += g[k]. Arrays consist of `items` images of
 * equal size. Positions count from the beginning of their image, or, if `absolute`, of the array.
 * `index_type` is PG_I32 or PG_I64. Half types are rounded after each addition; with `once`, at the
 * end. */
typedef int pg_gather_function(const pg_run* run, int32_t dtype, int32_t index_type, int64_t items,
                               int absolute, pg_input v, pg_input index, pg_output out,
                               pg_error* error);
typedef int pg_scatter_function(const pg_run* run, int32_t dtype, int32_t index_type, int64_t items,
                                int absolute, int once, pg_input g, pg_input index, pg_output dx,
                                pg_error* error);

/* y = the sum of each window, divided by `divisor`, a pg_divisor; `number` is that of PG_BY_NUMBER.
 * Floating types. Half types are summed and divided in float32 and rounded once; PG_BY_CELLS is
 * PG_MEAN_ONCE. */
typedef int pg_average_function(const pg_plan* plan, const pg_run* run, int32_t dtype,
                                int32_t divisor, double number, pg_input x, pg_output y,
                                pg_error* error);

/* y = the sum of squares of each window. Floating types; for half types y has float32. */
typedef int pg_squares_function(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input x,
                                pg_output y, pg_error* error);

/* The functions by address, for an extension that does not link to the library. */
typedef struct pg_table {
  int32_t abi;  /* PG_ABI */
  int32_t size; /* sizeof(pg_table) */
  pg_abi_function* get_abi;
  pg_version_function* version;
  pg_isa_function* isa;
  pg_threads_function* threads;
  pg_plan_new_function* plan_new;
  pg_plan_drop_function* plan_drop;
  pg_plan_describe_function* plan_describe;
  pg_draw_function* draw;
  pg_fold_function* fold;
  pg_spread_function* spread;
  pg_select_function* select;
  pg_choose_function* choose;
  pg_argmax_function* argmax;
  pg_pick_function* pick;
  pg_place_function* place;
  pg_route_function* route;
  pg_recall_function* recall;
  pg_near_function* near;
  pg_gather_function* gather;
  pg_scatter_function* scatter;
  pg_average_function* average;
  pg_squares_function* squares;
} pg_table;

/* The name of the Python capsule that holds a pg_table: poolgrad.config.foreign() returns it. */
#define PG_CAPSULE "poolgrad.table.2"

/* Return true if a table is the one that this header describes, or a longer one. */
static inline int pg_table_fits(const pg_table* table) {
  return table != NULL && table->abi == PG_ABI && table->size >= (int32_t)sizeof(pg_table);
}

PG_EXPORT pg_abi_function pg_abi;
PG_EXPORT pg_version_function pg_version;
PG_EXPORT pg_isa_function pg_isa;
PG_EXPORT pg_threads_function pg_threads;
PG_EXPORT pg_plan_new_function pg_plan_new;
PG_EXPORT pg_plan_drop_function pg_plan_drop;
PG_EXPORT pg_plan_describe_function pg_plan_describe;
PG_EXPORT pg_draw_function pg_draw;
PG_EXPORT pg_fold_function pg_fold;
PG_EXPORT pg_spread_function pg_spread;
PG_EXPORT pg_select_function pg_select;
PG_EXPORT pg_choose_function pg_choose;
PG_EXPORT pg_argmax_function pg_argmax;
PG_EXPORT pg_pick_function pg_pick;
PG_EXPORT pg_place_function pg_place;
PG_EXPORT pg_route_function pg_route;
PG_EXPORT pg_recall_function pg_recall;
PG_EXPORT pg_near_function pg_near;
PG_EXPORT pg_gather_function pg_gather;
PG_EXPORT pg_scatter_function pg_scatter;
PG_EXPORT pg_average_function pg_average;
PG_EXPORT pg_squares_function pg_squares;

/* Return the table of the library's functions. */
PG_EXPORT const pg_table* pg_functions(void);

#ifdef __cplusplus
}
#endif

#endif
