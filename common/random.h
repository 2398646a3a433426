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

// Ten rounds of Philox4x32 on `counter` under `key`.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a stream is for; two purposes never share values. Never renumber: runs are reproduced by
// seed.
enum class Purpose : uint32_t {
  kInit = 1,     // initial weights
  kDropout = 2,  // dropout masks
  kShuffle = 3,  // order of samples
  kDataset = 4,  // synthetic samples
  kSeed = 5,     // seeds issued to runs
  kTest = 6,
  kBootstrap = 7,  // resampling of runs for the interval of a score
};

// One stream of values, addressed by index. A value type; thread-safe.
class Stream {
 public:
  Stream(uint64_t seed, Purpose purpose, uint32_t rank = 0, uint32_t epoch = 0);

  // 32 uniform bits.
  uint32_t Bits(uint64_t index) const;
  // 64 uniform bits. Shares values with Bits(2 * index) and Bits(2 * index + 1).
  uint64_t Bits64(uint64_t index) const;
  // Uniform in [0, 1), a multiple of 2^-24.
  float Uniform(uint64_t index) const;
  // Uniform in [0, 1), a multiple of 2^-53. Shares values with Bits64(index).
  double UniformDouble(uint64_t index) const;
  // Standard normal (Box and Muller 1958). Shares values with Bits64(index).
  float Normal(uint64_t index) const;
  // Uniform in [0, bound), without modulo bias beyond 2^-32. `bound` > 0.
  uint32_t Below(uint64_t index, uint32_t bound) const;

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> prefix_;  // upper half of the counter: rank and epoch
};

// Fisher-Yates shuffle of `values`, drawn from `stream`.
void Shuffle(const Stream& stream, std::span<uint32_t> values);

}  // namespace assay

#endif  // COMMON_RANDOM_H_
