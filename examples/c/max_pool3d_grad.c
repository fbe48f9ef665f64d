/* The gradient of a three-dimensional maximum: TensorFlow's MaxPool3DGrad, in C99.
 *
 *     cc -std=c99 -Wall -Wextra -pedantic max_pool3d_grad.c $(pkg-config --cflags --libs poolgrad)
 *
 * x is an array of 2 x 2 x 2 x 2 x 2 numbers, 1 to 32, in the layout NDHWC. Windows of 4 x 3 x 2
 * cells, as far apart, with padding SAME, cover each image: its largest number gets the gradient.
 */
#include <poolgrad.h>
#include <stdio.h>

enum { BATCH = 2, LENGTH = 2, CHANNELS = 2, CELLS = 32, RESULTS = 4 };

static int report(const pg_error* error) {
  fprintf(stderr, "%s\n", error->text);
  return 1;
}

int main(void) {
  const int64_t window[3] = {4, 3, 2};
  float x[CELLS], y[RESULTS], dx[CELLS];
  const float g[RESULTS] = {1, 2, 3, 4};
  pg_axis axes[3];
  pg_plan* plan;
  pg_error error;
  int i, code;

  if (pg_abi() != PG_ABI) {
    fprintf(stderr, "poolgrad.h is of ABI %d, the library of ABI %d\n", PG_ABI, (int)pg_abi());
    return 1;
  }
  for (i = 0; i < CELLS; ++i) x[i] = (float)(i + 1);
  for (i = 0; i < 3; ++i) {
    axes[i] = pg_sliding(LENGTH, window[i], window[i], PG_SAME);
    axes[i].flags = PG_REACH; /* TensorFlow's rule for windows longer than the axis */
  }
  if (pg_plan_new(BATCH, CHANNELS, 3, axes, &plan, &error) != PG_OK) return report(&error);

  code = pg_select(plan, NULL, PG_F32, PG_BEST_FROM_INFINITY, 0, pg_in(x, CELLS), pg_out(y, RESULTS),
                   &error);
  if (code == PG_OK)
    code = pg_near(plan, NULL, PG_F32, 1e-5, pg_in(x, CELLS), pg_in(y, RESULTS), pg_in(g, RESULTS),
                   pg_out(dx, CELLS), &error);
  pg_plan_drop(plan);
  if (code != PG_OK) return report(&error);

  for (i = 0; i < RESULTS; ++i) printf("%g ", (double)y[i]);
  printf("\n");
  for (i = 0; i < CELLS; ++i) printf("%g ", (double)dx[i]);
  printf("\n");
  return 0;
}
