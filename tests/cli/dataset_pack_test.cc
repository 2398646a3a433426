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

// Archives of other programs have no index: `assay dataset index` makes it, and says what is wrong.
TEST(DatasetPackTest, ArchivesGetAnIndexAndAreVerified) {
  const testing::TempDir dir;
  ASSERT_THAT(MakeDirectories(dir.Path("data/train")), testing::IsOk());
  dataset::Manifest manifest = {.name = "n", .benchmark = "plain", .generator = "imported"};
  for (const std::string name : {"train/1", "train/2"}) {
    testing::WriteFile(dir.Path("data/" + name), name);
    manifest.files.push_back({.path = name, .bytes = 7, .sha256 = Sha256Hex(name)});
  }
  manifest.train_samples = 2;
  ASSERT_THAT(dataset::SaveManifest(dir.Path("data"), manifest), testing::IsOk());
  testing::Invocation run;
  ASSERT_EQ(run.Run(absl::StrCat("dataset pack ", dir.Path("data"), " ", dir.Path("packed"),
                                 " --codec none --parts 2")),
            ExitStatus::kDone)
      << run.err;
  const std::string index = ReadFile(dir.Path("packed/shards.json")).value_or("");
  EXPECT_THAT(index, HasSubstr(R"({"files":["train/2"],"name":"00001.tar"})"));
  ASSERT_THAT(RemoveTree(dir.Path("packed/shards.json")), testing::IsOk());
  EXPECT_EQ(run.Run(absl::StrCat("dataset verify ", dir.Path("packed"))), ExitStatus::kFailed);
  EXPECT_THAT(run.out, HasSubstr("assay dataset index"));

  EXPECT_EQ(run.Run(absl::StrCat("dataset index ", dir.Path("packed"), " -o json")),
            ExitStatus::kDone)
      << run.err;

  EXPECT_EQ(nlohmann::json::parse(run.out)["shards"], 2);
  EXPECT_EQ(ReadFile(dir.Path("packed/shards.json")).value_or(""), index);
  EXPECT_EQ(run.Run(absl::StrCat("dataset verify ", dir.Path("packed"))), ExitStatus::kDone);
  testing::WriteFile(dir.Path("packed/shards/00001.tar"), "no archive, but long enough a text");
  EXPECT_NE(run.Run(absl::StrCat("dataset index ", dir.Path("packed"))), ExitStatus::kDone);
  EXPECT_THAT(run.err, HasSubstr("00001.tar"));
}

}  // namespace
}  // namespace assay
