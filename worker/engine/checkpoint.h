// A checkpoint as a file: where a training run is, and the numbers it would go on from.
//
// Three parts: a line that names the format and its version, a line of JSON (whose run it is, the
// position, names and sizes of the sections), then the sections' bytes one after the other, and at
// the end the SHA-256 of everything before as 64 hexadecimal digits. Numbers are little-endian, as
// in memory. `head -n 2` shows a person what it is.

#ifndef WORKER_ENGINE_CHECKPOINT_H_
#define WORKER_ENGINE_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay {

// The step to be done next.
struct TrainingPosition {
  int64_t epoch = 0;  // from 0
  int64_t step = 0;   // from 0 within the epoch
  bool operator==(const TrainingPosition&) const = default;
};

// Numbers under a name, as "parameters". Borrowed.
struct CheckpointSection {
  std::string name;
  std::span<std::byte> bytes;
};

struct CheckpointHeader {
  std::string identity;  // of the run: whatever makes its bits, as a digest
  TrainingPosition position;
};

// Writes the file in one piece, durably: after a crash at any moment `path` holds what it held
// before, or this. Blocks. Errors of WriteFileAtomic.
absl::Status WriteCheckpoint(const std::string& path, const CheckpointHeader& header,
                             std::span<const CheckpointSection> sections);

// Reads the file into `sections`, which must have the names, sizes and order it was written with,
// and returns the position. NOT_FOUND: there is none. DATA_LOSS: the digest does not match, or the
// file is no checkpoint of this version. FAILED_PRECONDITION: it is of another run (`identity`), or
// of another model. Where it fails the sections are unchanged.
absl::StatusOr<TrainingPosition> ReadCheckpoint(const std::string& path, absl::string_view identity,
                                                std::span<const CheckpointSection> sections);

}  // namespace assay

#endif  // WORKER_ENGINE_CHECKPOINT_H_
