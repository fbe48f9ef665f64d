// near by the direct loop: the gradient to every cell within eps of the maximum of a covering
// window.
#pragma once
#include "loops/transposed_tile.hpp"
#include "reducers/near.hpp"

namespace poolgrad::PG_ISA {

/// Set dx[i] = sum of g over the windows that cover i and have abs(x[i] - y) < eps.
template <class T>
void near_direct(const Plan& plan, const RowArrays<T, 2, 1>& arrays, double eps, Piece piece) {
  const Wide<T> near = smallest_rounding_to<T>(as<T>(eps));
  over_rows<T, is_real<T>>(
      plan, arrays, true, piece, [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
        sum_near<T>(w, a.partner[0], a.source[0], a.source[1], a.out, lanes, near);
      });
}

}  // namespace poolgrad::PG_ISA
