// A small dataset with a manifest, and a cache for it, for tests.

#ifndef TESTS_WORKER_CACHE_CACHED_DATASET_H_
#define TESTS_WORKER_CACHE_CACHED_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/dataset/manifest.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "worker/cache/node_cache.h"

namespace assay::cache {

// A dataset of plain files: `count` of `bytes` each, and one empty one. Its name is in its content.
class SmallDataset {
 public:
  SmallDataset(const std::string& name, int count, int64_t bytes) {
    EXPECT_THAT(MakeDirectories(dir_.Path("train")), testing::IsOk());
    EXPECT_THAT(MakeDirectories(dir_.Path("validation")), testing::IsOk());
    manifest_ = {.name = name, .benchmark = "plain", .generator = "imported"};
    for (int i = 0; i < count; ++i)
      Add(absl::StrCat("train/", 1000 + i),
          std::string(static_cast<size_t>(bytes), Letter(name, i)));
    Add("validation/0", "");
    manifest_.train_samples = count;
    manifest_.validation_samples = 1;
    EXPECT_THAT(dataset::SaveManifest(dir_.path(), manifest_), testing::IsOk());
  }

  const std::string& path() const { return dir_.path(); }
  const dataset::Manifest& manifest() const { return manifest_; }
  std::string digest() const { return dataset::DatasetDigest(manifest_); }
  std::string Path(const std::string& name) const { return dir_.Path(name); }

 private:
  static char Letter(const std::string& name, int i) {
    return static_cast<char>('a' + (name.front() + i) % 26);
  }

  void Add(const std::string& path, const std::string& content) {
    testing::WriteFile(dir_.Path(path), content);
    manifest_.files.push_back({.path = path,
                               .bytes = static_cast<int64_t>(content.size()),
                               .sha256 = Sha256Hex(content)});
  }

  const testing::TempDir dir_;
  dataset::Manifest manifest_;
};

// Files of `dataset` below `folder` that are not there, or not with its bytes.
inline int DifferentFiles(const SmallDataset& dataset, const std::string& folder) {
  int count = 0;
  for (const dataset::ManifestFile& file : dataset.manifest().files) {
    const absl::StatusOr<std::string> content = ReadFile(JoinPath(folder, file.path), 1 << 24);
    if (!content.ok() || Sha256Hex(*content) != file.sha256) ++count;
  }
  return count;
}

}  // namespace assay::cache

#endif  // TESTS_WORKER_CACHE_CACHED_DATASET_H_
