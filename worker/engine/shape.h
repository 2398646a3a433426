// The extents of a tensor: up to five dimensions, slowest first (channels last).

#ifndef WORKER_ENGINE_SHAPE_H_
#define WORKER_ENGINE_SHAPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"

#include "common/log.h"

namespace assay {

// A value type. Every extent is positive; the empty shape is a scalar of one element.
class Shape {
 public:
  static constexpr size_t kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : rank_(dims.size()) {
    CHECK(rank_ <= kMaxRank) << "rank=" << rank_;
    size_t axis = 0;
    for (const int64_t dim : dims) {
      CHECK(dim > 0) << "axis=" << axis << " extent=" << dim;
      dims_[axis++] = dim;
    }
  }

  size_t rank() const { return rank_; }
  int64_t operator[](size_t axis) const {
    CHECK(axis < rank_) << "axis=" << axis << " rank=" << rank_;
    return dims_[axis];
  }
  int64_t elements() const {
    int64_t product = 1;
    for (size_t axis = 0; axis < rank_; ++axis)
      product *= dims_[axis];
    return product;
  }
  // The same shape with another first extent.
  Shape WithFirst(int64_t extent) const {
    CHECK(rank_ > 0 && extent > 0) << "extent=" << extent;
    Shape other = *this;
    other.dims_[0] = extent;
    return other;
  }
  // The same with another last one.
  Shape WithLast(int64_t extent) const {
    CHECK(rank_ > 0 && extent > 0) << "extent=" << extent;
    Shape other = *this;
    other.dims_[rank_ - 1] = extent;
    return other;
  }
  // As "(4, 32, 32, 32, 4)".
  std::string ToString() const {
    std::string text = "(";
    for (size_t axis = 0; axis < rank_; ++axis)
      absl::StrAppend(&text, axis == 0 ? "" : ", ", dims_[axis]);
    return text + ")";
  }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> dims_ = {};
  size_t rank_ = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_SHAPE_H_
