// How the samples of a benchmark lie on disk and in memory.

#ifndef WORKER_DATA_SAMPLE_FORMAT_H_
#define WORKER_DATA_SAMPLE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"

#include "common/cache_place.h"
#include "common/dataset/climate_file.h"
#include "common/dataset/tfrecord.h"
#include "worker/data/cube_block.h"

namespace assay::data {

// One sample, and how it is wanted.
struct SampleToRead {
  std::string path;
  int symmetry = 0;  // of a cube, by number (cube_symmetry.h); 0: as it is
  CachePlace cache = {};
};

// Where one sample goes; as large as its format says, and aligned for any type of number.
struct SamplePlace {
  std::span<std::byte> input;
  std::span<std::byte> targets;
};

// Reads samples; belongs to one thread.
class SampleReader {
 public:
  virtual ~SampleReader() = default;

  // Reads the file of `sample`. NOT_FOUND: there is none. DATA_LOSS: it is not a sample of this
  // format. Other codes: reading failed. Every message names the file.
  virtual absl::Status Read(const SampleToRead& sample, const SamplePlace& place) = 0;
  // Size on disk of what the last Read read.
  virtual int64_t stored_bytes() const = 0;
};

struct SampleFormat {
  size_t input_bytes = 0;   // of one sample
  size_t target_bytes = 0;  // of one sample
  // A reader for one more thread. Opens nothing.
  std::function<std::unique_ptr<SampleReader>()> make_reader;
};

// CosmoFlow: input int16 [D, H, edge, 4], raw counts (ln(1 + n) comes later); targets float32 [4].
// `block`: what is kept of each cube, once it is turned; none: all of it.
SampleFormat CosmoflowFormat(int cube_edge, dataset::Compression compression,
                             std::optional<CubeBlock> block = std::nullopt);

// DeepCAM: input float32 [height, width, 16], scaled channel by channel to [0, 1] on the training
// split; targets uint8 [height, width]. The statistics are read from `statistics_path` with the
// first sample, so nothing is touched before.
SampleFormat DeepcamFormat(const dataset::ClimateExtents& extents, std::string statistics_path);

}  // namespace assay::data

#endif  // WORKER_DATA_SAMPLE_FORMAT_H_
