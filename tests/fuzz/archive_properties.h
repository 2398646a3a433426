// What must hold for the readers of datasets whatever the bytes of a file: it is refused, or what
// was read is the same when written and read again. Shared by the smoke test, which mutates a small
// corpus, and by the libFuzzer targets.

#ifndef TESTS_FUZZ_ARCHIVE_PROPERTIES_H_
#define TESTS_FUZZ_ARCHIVE_PROPERTIES_H_

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/dataset/example.h"
#include "common/dataset/manifest.h"
#include "common/dataset/tfrecord.h"
#include "common/log.h"
#include "common/rules/power.h"
#include "tests/fuzz/memory_file.h"

namespace assay::testing {

// Records, plain and as a gzip stream: what is read is what was framed.
inline void CheckRecords(absl::string_view bytes) {
  dataset::RecordReader reader(bytes);
  std::string framed;
  absl::StatusOr<std::optional<absl::string_view>> record = reader.Next();
  for (; record.ok() && record->has_value(); record = reader.Next())
    framed += dataset::FrameRecord(**record);
  CHECK(bytes.substr(0, framed.size()) == framed);
  CHECK(record.ok() ? framed.size() == bytes.size()
                    : dataset::ErrorOffset(record.status()).has_value());

  static auto* const sample = new MemoryFile();
  sample->Replace(bytes);
  for (const auto compression : {dataset::Compression::kNone, dataset::Compression::kGzip}) {
    dataset::RecordFile file(compression);
    const absl::StatusOr<absl::string_view> only = file.ReadOnly(sample->path());
    if (only.ok()) CHECK(dataset::FrameRecord(*only).size() == only->size() + dataset::kFrameBytes);
    CHECK(file.stored() == bytes);
  }
}

// A CosmoFlow sample; small cubes, so that mutants often have the right size.
inline void CheckExample(absl::string_view bytes) {
  for (const int edge : {1, 2}) {
    const absl::StatusOr<dataset::CosmoSampleView> sample = dataset::ParseCosmoSample(bytes, edge);
    if (!sample.ok()) continue;
    static_cast<void>(dataset::CheckCounts(*sample));
    std::vector<int16_t> counts(static_cast<size_t>(dataset::CosmoValues(edge)));
    std::memcpy(counts.data(), sample->voxels.data(), sample->voxels.size());
    const std::string written = dataset::EncodeCosmoSample(counts, sample->targets);
    const absl::StatusOr<dataset::CosmoSampleView> again = dataset::ParseCosmoSample(written, edge);
    CHECK_OK(again.status());
    CHECK(again->voxels == sample->voxels && again->targets == sample->targets);
  }
}

inline void CheckManifest(absl::string_view bytes) {
  const absl::StatusOr<dataset::Manifest> manifest = dataset::ParseManifest(bytes);
  if (!manifest.ok()) return;
  const absl::StatusOr<dataset::Manifest> again =
      dataset::ParseManifest(dataset::PrintManifest(*manifest));
  CHECK_OK(again.status());
  CHECK(*again == *manifest);
}

// The power log of a node or of a switch.
inline void CheckPowerLog(absl::string_view bytes) {
  constexpr double kMinuteMs = 60'000;
  for (const double time_ms : {0.0, kMinuteMs}) {
    const absl::StatusOr<double> node = rules::NodeEnergy(bytes, time_ms);
    CHECK(node.ok() || !node.status().message().empty());
    const absl::StatusOr<double> wire = rules::SwitchEnergy(bytes, time_ms);
    CHECK(wire.ok() || !wire.status().message().empty());
  }
}

}  // namespace assay::testing

#endif  // TESTS_FUZZ_ARCHIVE_PROPERTIES_H_
