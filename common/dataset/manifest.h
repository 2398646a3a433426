// manifest.json: what a dataset is, and the size and SHA-256 of each of its files.
//
// The manifest is written last, so a directory that has one is complete. Its digest names the
// content of the whole dataset; two directories with one digest hold the same bytes.

#ifndef COMMON_DATASET_MANIFEST_H_
#define COMMON_DATASET_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/tfrecord.h"

namespace assay::dataset {

// 3 million files: the full CosmoFlow dataset has 655,360 and a manifest of 90 MB.
inline constexpr int64_t kManifestBytesMax = int64_t{512} << 20;

// Far above what anybody trains on; products of them with the size of a value fit 64 bits.
inline constexpr int64_t kSamplesMax = (int64_t{1} << 31) - 1;  // of a split
inline constexpr int64_t kCubeEdgeMax = 4096;

struct ManifestFile {
  std::string path;  // relative to the manifest, '/' between parts
  int64_t bytes = 0;
  std::string sha256;  // of the stored (possibly compressed) bytes

  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct Manifest {
  std::string name;
  std::string benchmark;  // "cosmoflow", or one that a facility's round declares
  std::string generator;  // name and version of what made the samples, or "imported"
  // What the generator was told ("mode", "seed", ...), in text. Equal generator and parameters give
  // equal samples.
  std::map<std::string, std::string> parameters;
  int cube_edge = 0;  // voxels
  Compression compression = Compression::kNone;
  bool is_packed = false;  // files hold any number of samples; else each file of a split is one
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
  std::vector<ManifestFile> files;  // sorted by path

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// SHA-256 over the lines "<sha256> <bytes> <path>\n" of all files in order, in hexadecimal.
std::string DatasetDigest(const Manifest& manifest);

// What a workload must know of the samples beyond their number, by the names that it reads.
std::map<std::string, int64_t> SampleParameters(const Manifest& manifest);

// Sum of the sizes of all files.
int64_t TotalBytes(const Manifest& manifest);

// One file per line, so that diff and grep work.
std::string PrintManifest(const Manifest& manifest);

// DATA_LOSS: not a manifest, a missing field, a number out of range, a path that leaves the
// directory, other samples counted than listed, or a digest that does not match the files listed.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

// Reads <dir>/manifest.json. NOT_FOUND if there is none; otherwise as ParseManifest, naming the
// file.
absl::StatusOr<Manifest> LoadManifest(const std::string& dir);

// Writes <dir>/manifest.json atomically.
absl::Status SaveManifest(const std::string& dir, const Manifest& manifest);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_MANIFEST_H_
