#include "common/random.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace assay {
namespace {

// Stafford's variant 13 of the 64-bit finaliser of MurmurHash3: spreads nearby seeds apart.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

Stream::Stream(uint64_t seed, Purpose purpose, uint32_t rank, uint32_t epoch)
    : prefix_{rank, epoch} {
  const uint64_t mixed = Mix(Mix(seed + 0x9E3779B97F4A7C15U) ^ static_cast<uint64_t>(purpose));
  key_ = {static_cast<uint32_t>(mixed), static_cast<uint32_t>(mixed >> 32)};
}

uint64_t Stream::Bits64(uint64_t index) const {
  // Both words lie in one block, so one evaluation gives them.
  const uint64_t block = index / 2;
  const std::array<uint32_t, 4> words = Philox(
      {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), prefix_[0], prefix_[1]},
      key_);
  const size_t first = 2 * (index % 2);
  return (uint64_t{words[first]} << 32) | words[first + 1];
}

double Stream::UniformDouble(uint64_t index) const {
  return static_cast<double>(Bits64(index) >> 11) * 0x1p-53;
}

float Stream::Normal(uint64_t index) const {
  const uint64_t bits = Bits64(index);
  // u in (0, 1], so that the logarithm is finite.
  const double u = (static_cast<double>(bits >> 32) + 1) * 0x1p-32;
  const double v = static_cast<double>(bits & 0xFFFFFFFFU) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
}

uint32_t Stream::Below(uint64_t index, uint32_t bound) const {
  return static_cast<uint32_t>((uint64_t{Bits(index)} * bound) >> 32);
}

void Shuffle(const Stream& stream, std::span<uint32_t> values) {
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[stream.Below(i, static_cast<uint32_t>(i))]);
}

}  // namespace assay
