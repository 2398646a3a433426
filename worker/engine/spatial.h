// Spatial partitioning: several ranks, a spatial group, share each sample. Every rank of the group
// holds one block of the cube; the blocks divide axes D and H evenly, W and channels stay whole.
//
// As on Fugaku with Mesh TensorFlow (MLPerf HPC v0.7): only convolution and pooling are divided. A
// convolution needs the planes of its neighbours' blocks next to its own, the halo; what lies
// outside of the cube is zero, as padding is. The maths here is pure.

#ifndef WORKER_ENGINE_SPATIAL_H_
#define WORKER_ENGINE_SPATIAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "worker/engine/tensor.h"

namespace assay {

// Into how many blocks a cube is divided along D (axis 0) and H (axis 1).
struct SpatialGrid {
  std::array<int, 2> parts = {1, 1};

  int size() const { return parts[0] * parts[1]; }
  bool IsSplit(size_t axis) const { return parts[axis] > 1; }
  bool IsSplit() const { return size() > 1; }
  // As "2x4".
  std::string ToString() const;
  bool operator==(const SpatialGrid&) const = default;
};

// One rank's block in the grid.
struct SpatialPlace {
  SpatialGrid grid;
  std::array<int, 2> at = {0, 0};  // along D and H

  // The rank's number in its group: H runs faster.
  int member() const { return at[0] * grid.parts[1] + at[1]; }
  // The member whose block lies next to this one along `axis`, `step` (-1 or 1) blocks on; none at
  // the border of the cube.
  std::optional<int> Neighbour(size_t axis, int step) const;
};

// `member` in 0..grid.size()-1.
SpatialPlace PlaceOf(const SpatialGrid& grid, int member);

// Planes on either side of a block that a convolution needs: kernel 3 has one and one, kernel 2
// none in front and one behind, as its padding (SameConv).
struct Halo {
  int64_t before = 0;
  int64_t after = 0;
};
Halo HaloOf(int64_t kernel);

// A part of an axis; with a halo it may reach beyond [0, extent of the axis).
struct Interval {
  int64_t begin = 0;
  int64_t extent = 0;
  bool operator==(const Interval&) const = default;
};
// The part of an axis of `extent` that `place` has, with the halo where the axis is divided.
// `extent` must be a multiple of the number of parts.
Interval BlockAlong(size_t axis, int64_t extent, const SpatialPlace& place, const Halo& halo);

// Messages of one rank to and from another member of its group. Empty spans are no message.
struct Transfer {
  int member = 0;
  std::span<const std::byte> sent;
  std::span<std::byte> received;
};

// The same where the ranks' devices exchange by themselves: float32 in the backend's memory. Empty
// tensors are no message.
struct TensorTransfer {
  int member = 0;
  Tensor sent;
  Tensor received;
};

// The ranks that share this rank's samples. Not thread-safe.
class SpatialGroup {
 public:
  explicit SpatialGroup(const SpatialPlace& place) : place_(place) {}
  virtual ~SpatialGroup() = default;

  const SpatialPlace& place() const { return place_; }

  // Sends and receives everything; blocks until done. All members make the same calls in the same
  // order. Where a rank is gone, what was received is unspecified and the ranks' next collective
  // operation fails: the gradients' reduction in training, that of the sums in evaluation.
  virtual void Exchange(std::span<const Transfer> transfers) = 0;

  // Whether ExchangeOnDevice may be called, which then takes the place of Exchange: the ranks'
  // devices exchange in the order of the backend's work, without the host.
  virtual bool is_on_device() const { return false; }
  virtual void ExchangeOnDevice(std::span<const TensorTransfer> transfers);

 private:
  const SpatialPlace place_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_SPATIAL_H_
