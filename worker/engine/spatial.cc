#include "worker/engine/spatial.h"

#include "absl/strings/str_cat.h"

#include "common/log.h"

namespace assay {

std::string SpatialGrid::ToString() const {
  return absl::StrCat(parts[0], "x", parts[1]);
}

std::optional<int> SpatialPlace::Neighbour(size_t axis, int step) const {
  SpatialPlace other = *this;
  other.at[axis] += step;
  if (other.at[axis] < 0 || other.at[axis] >= grid.parts[axis]) return std::nullopt;
  return other.member();
}

SpatialPlace PlaceOf(const SpatialGrid& grid, int member) {
  CHECK(member >= 0 && member < grid.size()) << "member=" << member << " grid=" << grid.ToString();
  return {grid, {member / grid.parts[1], member % grid.parts[1]}};
}

void SpatialGroup::ExchangeOnDevice(std::span<const TensorTransfer> transfers) {
  CHECK(false) << "this group exchanges through the host; transfers=" << transfers.size();
}

Halo HaloOf(int64_t kernel) {
  return {.before = (kernel - 1) / 2, .after = kernel / 2};
}

Interval BlockAlong(size_t axis, int64_t extent, const SpatialPlace& place, const Halo& halo) {
  const int64_t parts = place.grid.parts[axis];
  CHECK(extent % parts == 0) << "extent=" << extent << " parts=" << parts;
  const int64_t size = extent / parts;
  if (parts == 1) return {0, extent};
  return {place.at[axis] * size - halo.before, halo.before + size + halo.after};
}

}  // namespace assay
