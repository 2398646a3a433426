// Where the level of a series of measurements changes: circular binary segmentation (Olshen,
// Venkatraman, Lucito and Wigler, Biostatistics 5, 2004) with a permutation test at each division,
// which needs no distribution of the noise but that its order does not matter. Circular: a stretch
// with another level in the middle is looked for as well as one cut, as a fault that is mended
// again hides from single cuts. Deterministic: the same values and seed give the same changes on
// every machine. Pure functions.

#ifndef COMMON_ANALYSIS_CHANGE_POINTS_H_
#define COMMON_ANALYSIS_CHANGE_POINTS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace assay::analysis {

struct ChangeOptions {
  int side_count_min = 5;   // values on each side of a change, at least 1
  double ratio_min = 1.02;  // between the levels, either way; what is less is no change
  double p_max = 0.001;     // a change has p below it
  int permutations = 4999;  // at most; (permutations + 1) * p_max must be above 1
  uint64_t seed = 1;
};

struct ChangePoint {
  int first = 0;       // position of the first value after the change
  double ratio = 1;    // of the level after it, up to the next change, to that before
  double p_value = 1;  // by the permutation test, at least 1 / (permutations + 1)
};

// The changes of level in `values`, which are above 0 and in order of time, by position. Levels are
// geometric means. In a series without a change, of any noise whose values are exchangeable, the
// chance of finding one is at most p_max. With the usual options no series of fewer than 14 values
// has enough orders for p below 0.001, so that no change is found in it, however large. Takes time
// in proportion to the square of the length: 1,000 values some seconds.
std::vector<ChangePoint> FindChanges(std::span<const double> values, const ChangeOptions& options);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_CHANGE_POINTS_H_
