/* Call the C interface with arguments that no program should give: every call must return the code
 * and name the argument, and write nothing. Then with an executor that does too little, too much and
 * the wrong work. Sanitizers run it too. */
#include <poolgrad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0, checks = 0;

static void check(int fine, const char* what, const pg_error* error) {
  ++checks;
  if (fine) return;
  ++failures;
  fprintf(stderr, "failed: %s (%d, \"%s\")\n", what, (int)error->code, error->text);
}

#define WANT(wanted, words, call)                                                             \
  do {                                                                                        \
    pg_error error;                                                                           \
    int code;                                                                                 \
    memset(&error, 0x55, sizeof error);                                                       \
    code = (call);                                                                            \
    check(code == (wanted) && error.code == code && strstr(error.text, words), #call, &error); \
  } while (0)

enum { N = 64 };
static float x[N], y[N], g[N], dx[N + 2];
static uint8_t taps[N];
static int64_t positions[N];
static pg_plan* plan; /* 1 x 8 x 8 x 1 into 4 x 4 windows of 2 x 2 */

static pg_plan* made(const pg_axis* axes, int32_t rank, int64_t outer, int64_t inner) {
  pg_plan* one = NULL;
  pg_error error;
  if (pg_plan_new(outer, inner, rank, axes, &one, &error) != PG_OK) {
    fprintf(stderr, "%s\n", error.text);
    exit(2);
  }
  return one;
}

static void plans(void) {
  pg_plan* none = NULL;
  pg_axis axes[2], bad;
  int64_t start[3] = {0, 2, 1}, stop[3] = {2, 4, 9};
  pg_plan_info info;
  axes[0] = axes[1] = pg_sliding(8, 2, 2, PG_VALID);
  plan = made(axes, 2, 1, 1);
  WANT(PG_INVALID, "plan", pg_plan_new(1, 1, 2, axes, NULL, &error));
  WANT(PG_INVALID, "axes", pg_plan_new(1, 1, 2, NULL, &none, &error));
  WANT(PG_INVALID, "rank", pg_plan_new(1, 1, 0, axes, &none, &error));
  WANT(PG_INVALID, "rank", pg_plan_new(1, 1, 17, axes, &none, &error));
  WANT(PG_INVALID, "rank", pg_plan_new(1, 1, INT32_MIN, axes, &none, &error));
  WANT(PG_INVALID, "outer", pg_plan_new(-1, 1, 2, axes, &none, &error));
  WANT(PG_INVALID, "inner", pg_plan_new(1, INT64_MIN, 2, axes, &none, &error));
  WANT(PG_INVALID, "overflow", pg_plan_new(INT64_MAX, INT64_MAX, 2, axes, &none, &error));
#define AXIS(field, value, code, words)                     \
  bad = pg_sliding(8, 2, 2, PG_VALID);                      \
  bad.field = value;                                        \
  WANT(code, words, pg_plan_new(1, 1, 1, &bad, &none, &error))
  AXIS(kind, 99, PG_INVALID, "kind");
  AXIS(kind, -1, PG_INVALID, "kind");
  AXIS(padding, 7, PG_INVALID, "padding");
  AXIS(flags, PG_OVERLAPPING, PG_INVALID, "flags");
  AXIS(flags, -1, PG_INVALID, "flags");
  AXIS(cells, -1, PG_INVALID, "cells");
  AXIS(cells, INT64_MAX, PG_INVALID, "cells");
  AXIS(windows, -3, PG_INVALID, "windows");
  AXIS(windows, 9, PG_INVALID, "without a cell");
  AXIS(window, 0, PG_INVALID, "window");
  AXIS(window, -5, PG_INVALID, "window");
  AXIS(window, 20, PG_INVALID, "window");
  AXIS(stride, 0, PG_INVALID, "stride");
  AXIS(stride, INT64_MIN, PG_INVALID, "stride");
  AXIS(dilation, 0, PG_INVALID, "dilation");
  AXIS(before, 3, PG_INVALID, "before");
  AXIS(after, -1, PG_INVALID, "after");
  AXIS(cells, (int64_t)1 << 61, PG_NO_MEMORY, "memory");
  AXIS(windows, (int64_t)1 << 40, PG_NO_MEMORY, "memory");
  bad = pg_sliding(8, (int64_t)1 << 62, (int64_t)1 << 62, PG_SAME);
  WANT(PG_OK, "", pg_plan_new(1, 1, 1, &bad, &none, &error));
  pg_plan_drop(none);
  bad = pg_sliding(8, (int64_t)1 << 62, 1, PG_SAME);
  bad.dilation = (int64_t)1 << 62;
  WANT(PG_INVALID, "", pg_plan_new(1, 1, 1, &bad, &none, &error));
  bad = pg_sliding(8, 3, 1, PG_SAME);
  bad.dilation = 2;
  bad.flags = PG_REACH;
  WANT(PG_INVALID, "dilation", pg_plan_new(1, 1, 1, &bad, &none, &error));
  memset(&bad, 0, sizeof bad);
  bad.kind = PG_AXIS_WINDOWS;
  bad.cells = 8;
  bad.windows = 3;
  WANT(PG_INVALID, "start", pg_plan_new(1, 1, 1, &bad, &none, &error));
  bad.start = start;
  bad.stop = stop;
  WANT(PG_INVALID, "window", pg_plan_new(1, 1, 1, &bad, &none, &error));
  bad = pg_between(8, NULL, 2, 0);
  WANT(PG_INVALID, "start", pg_plan_new(1, 1, 1, &bad, &none, &error));
  bad = pg_between(8, start, 2, 0);
  WANT(PG_INVALID, "start", pg_plan_new(1, 1, 1, &bad, &none, &error));
  bad = pg_shares(8, 3);
  bad.kind = PG_AXIS_PLACED;
  bad.window = 9;
  WANT(PG_INVALID, "window", pg_plan_new(1, 1, 1, &bad, &none, &error));
  bad.window = 2;
  bad.offset = 2.0;
  WANT(PG_INVALID, "offset", pg_plan_new(1, 1, 1, &bad, &none, &error));
  check(none == NULL, "a refused plan is NULL", &(pg_error){0, 0, ""});
  WANT(PG_INVALID, "plan", pg_plan_describe(NULL, &info, &error));
  WANT(PG_INVALID, "info", pg_plan_describe(plan, NULL, &error));
  pg_plan_drop(NULL);
}

static void draws(void) {
  int64_t cells[2] = {10, 7}, windows[2] = {6, 4}, borders[12];
  static const int64_t want[12] = {0, 1, 3, 4, 6, 8, 10, 0, 2, 4, 6, 7};
  WANT(PG_OK, "", pg_draw(2, cells, windows, 0, 1, 2, borders, 12, &error));
  check(memcmp(borders, want, sizeof want) == 0, "the borders of seeds 1 and 2", &(pg_error){0, 0, ""});
  WANT(PG_INVALID, "borders", pg_draw(2, cells, windows, 0, 1, 2, borders, 11, &error));
  WANT(PG_INVALID, "borders", pg_draw(2, cells, windows, 0, 1, 2, NULL, 12, &error));
  WANT(PG_INVALID, "cells", pg_draw(2, NULL, windows, 0, 1, 2, borders, 12, &error));
  WANT(PG_INVALID, "windows", pg_draw(2, cells, NULL, 0, 1, 2, borders, 12, &error));
  WANT(PG_INVALID, "rank", pg_draw(0, cells, windows, 0, 1, 2, borders, 12, &error));
  windows[1] = 8;
  WANT(PG_INVALID, "windows", pg_draw(2, cells, windows, 0, 1, 2, borders, 16, &error));
  windows[1] = 0;
  WANT(PG_INVALID, "windows", pg_draw(2, cells, windows, 0, 1, 2, borders, 8, &error));
}

static void verbs(void) {
  const pg_input X = pg_in(x, 64), Y = pg_in(y, 16), G = pg_in(g, 16), T = pg_in(taps, 16), I = pg_in(positions, 16);
  const pg_output out = pg_out(dx, 16), back = pg_out(dx, 64), T_out = pg_out(taps, 16), I_out = pg_out(positions, 16);
  const pg_run wrong = {-1, NULL, NULL};
  WANT(PG_INVALID, "plan", pg_fold(NULL, NULL, PG_F32, PG_MEAN_EXACT, X, out, &error));
  WANT(PG_INVALID, "run.threads", pg_fold(plan, &wrong, PG_F32, PG_MEAN_EXACT, X, out, &error));
  WANT(PG_INVALID, "dtype", pg_fold(plan, NULL, -1, PG_MEAN_EXACT, X, out, &error));
  WANT(PG_INVALID, "dtype", pg_fold(plan, NULL, PG_DTYPES, PG_MEAN_EXACT, X, out, &error));
  WANT(PG_INVALID, "mean", pg_fold(plan, NULL, PG_F32, 7, X, out, &error));
  WANT(PG_INVALID, "mean", pg_fold(plan, NULL, PG_F32, PG_MEAN_WIDE, X, out, &error));
  WANT(PG_INVALID, "mean", pg_fold(plan, NULL, PG_I32, PG_MEAN_EXACT, X, out, &error));
  WANT(PG_INVALID, "mean", pg_fold(plan, NULL, PG_I32, PG_MEAN_EXACT, X, out, &error));
  WANT(PG_INVALID, "mean", pg_fold(plan, NULL, PG_I8, PG_MEAN_STRICT, X, out, &error));
  WANT(PG_UNSUPPORTED, "dtype", pg_fold(plan, NULL, PG_U32, PG_MEAN_STRICT, X, out, &error));
  WANT(PG_INVALID, "fold: x: got 63 elements, wanted 64", pg_fold(plan, NULL, PG_F32, PG_MEAN_EXACT, pg_in(x, 63), out, &error));
  WANT(PG_INVALID, "x: got NULL", pg_fold(plan, NULL, PG_F32, PG_MEAN_EXACT, pg_in(NULL, 64), out, &error));
  WANT(PG_INVALID, "y: got -1 elements", pg_fold(plan, NULL, PG_F32, PG_MEAN_EXACT, X, pg_out(dx, -1), &error));
  WANT(PG_INVALID, "aligned", pg_fold(plan, NULL, PG_F32, PG_MEAN_EXACT, X, pg_out((char*)dx + 1, 16), &error));
  WANT(PG_INVALID, "memory of its own", pg_fold(plan, NULL, PG_F32, PG_MEAN_EXACT, X, pg_out(x + 4, 16), &error));
  WANT(PG_INVALID, "share", pg_spread(plan, NULL, PG_F32, 4, 0, G, back, &error));
  WANT(PG_INVALID, "share", pg_spread(plan, NULL, PG_I32, PG_SHARE_WHOLE, 0, G, back, &error));
  WANT(PG_UNSUPPORTED, "dtype", pg_spread(plan, NULL, PG_I8, PG_SHARE_QUOTIENT, 0, G, back, &error));
  WANT(PG_INVALID, "g: got", pg_spread(plan, NULL, PG_F32, PG_SHARE_WHOLE, 0, X, back, &error));
  WANT(PG_INVALID, "best", pg_select(plan, NULL, PG_F32, 5, 0, X, out, &error));
  WANT(PG_INVALID, "least", pg_select(plan, NULL, PG_F32, PG_BEST_FROM_LOWEST, 1, X, out, &error));
  WANT(PG_INVALID, "best", pg_choose(plan, NULL, PG_F32, PG_BEST_FROM_LOWEST, 0, X, out, T_out, &error));
  WANT(PG_INVALID, "taps: got", pg_choose(plan, NULL, PG_F32, 0, 0, X, out, pg_out(taps, 15), &error));
  WANT(PG_INVALID, "memory of its own", pg_choose(plan, NULL, PG_F32, 0, 0, X, out, pg_out(dx, 16), &error));
  WANT(PG_INVALID, "index_type", pg_argmax(plan, NULL, PG_F32, PG_F32, 0, X, out, I_out, &error));
  WANT(PG_INVALID, "modulo", pg_argmax(plan, NULL, PG_F32, PG_I64, -1, X, out, I_out, &error));
  taps[9] = 4;
  WANT(PG_INVALID, "position 9", pg_pick(plan, NULL, PG_F32, X, T, out, &error));
  WANT(PG_INVALID, "position 9", pg_place(plan, NULL, PG_F32, G, T, back, &error));
  taps[9] = 0;
  WANT(PG_OK, "", pg_place(plan, NULL, PG_F32, G, T, back, &error));
  y[3] = 1e9f;
  WANT(PG_INVALID, "position", pg_route(plan, NULL, PG_F32, X, Y, G, back, &error));
  WANT(PG_OK, "", pg_route(plan, NULL, PG_F32, X, pg_in(NULL, 0), G, back, &error));
  WANT(PG_INVALID, "v: got", pg_recall(plan, NULL, PG_F32, X, Y, G, out, &error));
  WANT(PG_INVALID, "eps", pg_near(plan, NULL, PG_F32, 1e308 * 10, X, Y, G, back, &error));
  positions[5] = 64;
  WANT(PG_INVALID, "position 5", pg_gather(NULL, PG_F32, PG_I64, 1, 1, X, I, out, &error));
  WANT(PG_INVALID, "position 5", pg_scatter(NULL, PG_F32, PG_I64, 1, 1, 0, G, I, back, &error));
  positions[5] = INT64_MIN;
  WANT(PG_INVALID, "position 5", pg_gather(NULL, PG_F32, PG_I64, 1, 0, X, I, out, &error));
  WANT(PG_INVALID, "position 5", pg_scatter(NULL, PG_F32, PG_I64, 2, 0, 0, G, I, back, &error));
  positions[5] = 0;
  WANT(PG_INVALID, "items", pg_gather(NULL, PG_F32, PG_I64, 5, 1, X, I, out, &error));
  WANT(PG_INVALID, "items", pg_gather(NULL, PG_F32, PG_I64, -1, 1, X, I, out, &error));
  WANT(PG_INVALID, "items", pg_scatter(NULL, PG_F32, PG_I64, 0, 1, 0, G, I, back, &error));
  WANT(PG_INVALID, "index", pg_gather(NULL, PG_F32, PG_I64, 1, 1, X, pg_in(positions, 15), out, &error));
  WANT(PG_INVALID, "v: got", pg_gather(NULL, PG_F32, PG_I64, 1, 1, pg_in(x, INT64_MAX), I, out, &error));
  WANT(PG_INVALID, "divisor", pg_average(plan, NULL, PG_F32, 3, 1, X, out, &error));
  WANT(PG_INVALID, "number", pg_average(plan, NULL, PG_F32, PG_BY_NUMBER, 0, X, out, &error));
  WANT(PG_INVALID, "number", pg_average(plan, NULL, PG_F32, PG_BY_NUMBER, 1e308 * 10, X, out, &error));
  WANT(PG_UNSUPPORTED, "dtype", pg_average(plan, NULL, PG_I32, PG_BY_SPAN, 1, X, out, &error));
  WANT(PG_INVALID, "memory of its own", pg_average(plan, NULL, PG_F32, PG_BY_SPAN, 1, X, pg_out(x + 4, 16), &error));
  WANT(PG_UNSUPPORTED, "dtype", pg_squares(plan, NULL, PG_I32, X, out, &error));
  WANT(PG_INVALID, "x: got", pg_squares(plan, NULL, PG_F32, G, out, &error));
  WANT(PG_INVALID, "memory of its own", pg_squares(plan, NULL, PG_F32, X, pg_out(x, 16), &error));
  WANT(PG_INVALID, "aligned", pg_squares(plan, NULL, PG_F16, pg_in(x, 64), pg_out((char*)dx + 2, 16), &error));
  check(pg_fold(plan, NULL, PG_F32, 99, X, out, NULL) == PG_INVALID, "a call without an error", &(pg_error){0, 0, ""});
}

/* Means by a number, and sums of squares: the same numbers as a loop in plain C. */
static void divided(void) {
  enum { WINDOWS = 40, LENGTH = 3 * WINDOWS };
  static float in[LENGTH], mean[WINDOWS], squares[WINDOWS];
  pg_axis axis = pg_sliding(LENGTH, 3, 3, PG_VALID);
  pg_plan* one = made(&axis, 1, 1, 1);
  pg_error error;
  int fine = 1, j;
  for (j = 0; j < LENGTH; ++j) in[j] = (float)((j % 3 + 1) * (j / 3 + 1));
  WANT(PG_OK, "", pg_average(one, NULL, PG_F32, PG_BY_NUMBER, 4, pg_in(in, LENGTH), pg_out(mean, WINDOWS), &error));
  WANT(PG_OK, "", pg_squares(one, NULL, PG_F32, pg_in(in, LENGTH), pg_out(squares, WINDOWS), &error));
  for (j = 0; j < WINDOWS; ++j)
    fine &= mean[j] == 1.5f * (float)(j + 1) && squares[j] == 14.0f * (float)((j + 1) * (j + 1));
  check(fine, "means by a number, and sums of squares", &error);
  pg_plan_drop(one);
}

/* Windows whose cells lie apart: the same numbers as a loop in plain C. */
static void dilated(void) {
  enum { LENGTH = 23, STEP = 3, WINDOW = 3, BEFORE = 4, STRIDE = 2 };
  pg_axis axis = pg_sliding(LENGTH, WINDOW, STRIDE, PG_EXPLICIT);
  pg_plan* one;
  pg_plan_info info;
  pg_error error;
  float in[2 * LENGTH], best[64], want[64];
  uint8_t tap[64], want_tap[64];
  int64_t at[64], b, j, t;
  int fine = 1;
  axis.dilation = STEP;
  axis.before = BEFORE;
  axis.after = 2;
  one = made(&axis, 1, 2, 1);
  pg_plan_describe(one, &info, &error);
  for (j = 0; j < 2 * LENGTH; ++j) in[j] = (float)(j * 29 % 13);
  WANT(PG_OK, "", pg_choose(one, NULL, PG_F32, 0, 0, pg_in(in, info.source), pg_out(best, info.dest), pg_out(tap, info.dest), &error));
  WANT(PG_OK, "", pg_argmax(one, NULL, PG_F32, PG_I64, LENGTH, pg_in(in, info.source), pg_out(want, info.dest), pg_out(at, info.dest), &error));
  for (b = 0; b < 2; ++b)
    for (j = 0; j < info.windows[0]; ++j) {
      const int64_t k = b * info.windows[0] + j;
      int64_t number = 0, first = -1;
      want[k] = -1;
      for (t = 0; t < WINDOW; ++t) {
        const int64_t cell = j * STRIDE - BEFORE + t * STEP;
        if (cell < 0 || cell >= LENGTH) continue;
        if (in[b * LENGTH + cell] > want[k]) {
          want[k] = in[b * LENGTH + cell];
          want_tap[k] = (uint8_t)number;
          first = cell;
        }
        ++number;
      }
      fine = fine && best[k] == want[k] && tap[k] == want_tap[k] && at[k] == first;
    }
  check(fine, "dilated windows", &error);
  pg_plan_drop(one);
}

/* Executors that do not what they should. */
static void too_few(void* context, int64_t tasks, void (*task)(void*, int64_t), void* argument) {
  (void)tasks;
  ++*(int*)context;
  task(argument, 0);
}
static void too_many(void* context, int64_t tasks, void (*task)(void*, int64_t), void* argument) {
  int64_t i;
  ++*(int*)context;
  for (i = -3; i < 2 * tasks; ++i) task(argument, i * 1000);
}
static void none(void* context, int64_t tasks, void (*task)(void*, int64_t), void* argument) {
  (void)tasks, (void)task, (void)argument;
  ++*(int*)context;
}

static void executors(void) {
  enum { SIDE = 1024 };
  void (*const all[])(void*, int64_t, void (*)(void*, int64_t), void*) = {too_few, too_many, none};
  pg_axis axes[2];
  pg_plan* one;
  float* big = malloc(sizeof(float) * SIDE * SIDE);
  float* want = malloc(sizeof(float) * SIDE * SIDE / 4);
  float* got = malloc(sizeof(float) * SIDE * SIDE / 4);
  int i, called;
  if (!big || !want || !got) exit(2);
  axes[0] = axes[1] = pg_sliding(SIDE, 2, 2, PG_VALID);
  one = made(axes, 2, 1, 1);
  for (i = 0; i < SIDE * SIDE; ++i) big[i] = (float)(i % 977);
  for (i = 0; i < 5; ++i) {
    pg_run run = {4, NULL, NULL};
    run.threads = i == 4 ? 1 : 4;
    if (i < 3) run.parallel_for = all[i];
    run.context = &called;
    called = 0;
    memset(got, 0x7f, sizeof(float) * SIDE * SIDE / 4);
    WANT(PG_OK, "", pg_fold(one, NULL, PG_F32, PG_MEAN_EXACT, pg_in(big, SIDE * SIDE), pg_out(want, SIDE * SIDE / 4), &error));
    WANT(PG_OK, "", pg_fold(one, &run, PG_F32, PG_MEAN_EXACT, pg_in(big, SIDE * SIDE), pg_out(got, SIDE * SIDE / 4), &error));
    check(memcmp(want, got, sizeof(float) * SIDE * SIDE / 4) == 0, "an executor changes no bit", &(pg_error){0, 0, ""});
    check(called == (i < 3), "the executor was called", &(pg_error){0, 0, ""});
  }
  pg_plan_drop(one);
  free(big);
  free(want);
  free(got);
}

int main(void) {
  const pg_table* table = pg_functions();
  if (pg_abi() != PG_ABI || !pg_table_fits(table) || table->fold == NULL) return 2;
  check(*pg_isa() != 0 && *pg_version() != 0, "names", &(pg_error){0, 0, ""});
  check(pg_threads(-1) == -1 && pg_threads(2000) == -1, "threads", &(pg_error){0, 0, ""});
  check(pg_threads(3) == 3 && pg_threads(0) == 3, "threads", &(pg_error){0, 0, ""});
  plans();
  draws();
  verbs();
  divided();
  dilated();
  executors();
  pg_plan_drop(plan);
  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
