// `assay dataset pack`: needs no coordinator.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/dataset/manifest.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/cli/invocation.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::HasSubstr;

TEST(DatasetPackTest, SaysWhatItWroteAndPacksCompressedFilesAsTheyAre) {
  for (const bool is_compressed : {false, true}) {
    const testing::TempDir dir;
    const std::string content(10'000, 'x');
    ASSERT_THAT(MakeDirectories(dir.Path("data/train")), testing::IsOk());
    testing::WriteFile(dir.Path("data/train/1"), content);
    dataset::Manifest manifest = {.name = "n", .benchmark = "plain", .generator = "imported"};
    if (is_compressed) manifest.compression = dataset::Compression::kGzip;
    manifest.train_samples = 1;
    manifest.files = {{.path = "train/1", .bytes = 10'000, .sha256 = Sha256Hex(content)}};
    ASSERT_THAT(dataset::SaveManifest(dir.Path("data"), manifest), testing::IsOk());
    testing::Invocation run;
    const std::string command =
        absl::StrCat("dataset pack ", dir.Path("data"), " ", dir.Path("packed"));

    EXPECT_EQ(run.Run(absl::StrCat(command, " -o json")), ExitStatus::kDone) << run.err;

    const nlohmann::json json = nlohmann::json::parse(run.out);
    EXPECT_EQ(json["shards"], 1);
    EXPECT_EQ(json["bytes"], 10'000);
    EXPECT_EQ(json["packed_bytes"] > 10'000, is_compressed);
    EXPECT_TRUE(FileExists(
        dir.Path(is_compressed ? "packed/shards/00000.tar" : "packed/shards/00000.tar.zst")));
    EXPECT_NE(run.Run(command), ExitStatus::kDone) << "there are shards";
    EXPECT_THAT(run.err, HasSubstr("not empty"));
  }
}

}  // namespace
}  // namespace assay
