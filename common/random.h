// Counter-based random numbers: every value is a pure function of (seed, purpose, rank, epoch,
// index).
//
// No generator is shared or advanced, so results do not depend on the number of threads, and any
// element can be recomputed alone. Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC 2011.

#ifndef COMMON_RANDOM_H_
#define COMMON_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay {

// Ten rounds of Philox4x32 on `counter` under `key`. Constant expressions, here and below, are what
// also runs on a GPU: the same code draws the same numbers there.
constexpr std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

// What a stream is for; two purposes never share values. Never renumber: runs are reproduced by
// seed.
enum class Purpose : uint32_t {
  kInit = 1,     // initial weights
  kDropout = 2,  // dropout masks
  kShuffle = 3,  // order of samples
  kDataset = 4,  // synthetic samples
  kSeed = 5,     // seeds issued to runs
  kTest = 6,
  kBootstrap = 7,     // resampling of runs for the interval of a score
  kAugmentation = 8,  // how training samples are turned
  kPermutation = 9,   // orders of a series under which a change is tested
};

// One stream of values, addressed by index. A value type; thread-safe.
class Stream {
 public:
  Stream(uint64_t seed, Purpose purpose, uint32_t rank = 0, uint32_t epoch = 0);

  // 32 uniform bits.
  constexpr uint32_t Bits(uint64_t index) const {
    const uint64_t block = index / 4;
    return Philox(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), prefix_[0], prefix_[1]},
        key_)[index % 4];
  }
  // 64 uniform bits. Shares values with Bits(2 * index) and Bits(2 * index + 1).
  uint64_t Bits64(uint64_t index) const;
  // Uniform in [0, 1), a multiple of 2^-24.
  constexpr float Uniform(uint64_t index) const {
    return static_cast<float>(Bits(index) >> 8) * 0x1p-24F;
  }
  // Uniform in [0, 1), a multiple of 2^-53. Shares values with Bits64(index).
  double UniformDouble(uint64_t index) const;
  // Standard normal (Box and Muller 1958). Shares values with Bits64(index).
  float Normal(uint64_t index) const;
  // Uniform in [0, bound), without modulo bias beyond 2^-32. `bound` > 0.
  uint32_t Below(uint64_t index, uint32_t bound) const;

  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> prefix_;  // upper half of the counter: rank and epoch
};

// Fisher-Yates shuffle of `values`, drawn from `stream`.
void Shuffle(const Stream& stream, std::span<uint32_t> values);

}  // namespace assay

#endif  // COMMON_RANDOM_H_
