// assay bench: the programs that train and check are asked what this host can do.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/e2e/site.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BenchTest : public ::testing::Test {
 protected:
  const Site site_;
};

TEST_F(BenchTest, SumsOverRanksAreTimedAndDrawn) {
  const Json times = site_.AssayJson({"bench", "allreduce", "--ranks", "3", "--bytes", "4,64KiB",
                                      "--plot", site_.Path("bandwidth.svg")});

  EXPECT_EQ(times["schema"], "assay.bench_allreduce_list/v1");
  ASSERT_EQ(times["items"].size(), 2U) << times;
  EXPECT_EQ(times["items"][0]["bytes"], 4);
  EXPECT_EQ(times["items"][1]["bytes"], 65536);
  for (const Json& item : times["items"]) {
    const double us = item["time_us"];
    EXPECT_GT(us, 0);
    EXPECT_DOUBLE_EQ(item["bus_gb_per_s"], 4.0 / 3 * double{item["bytes"]} / us / 1e3);
  }
  EXPECT_TRUE(std::filesystem::exists(site_.Path("bandwidth.svg")));
}

// As an installation has it.
void ProvideSource(const Site& site) {
  std::filesystem::copy(SOURCES "/deploy/bench", site.Path("share/assay/bench"));
}

// Open MPI is what the tests install.
TEST_F(BenchTest, TheHostsMpiStandsBeside) {
  ProvideSource(site_);
  const Json times = site_.AssayJson({"bench", "allreduce", "--bytes", "1KiB,4,1KiB", "--mpi"});

  ASSERT_EQ(times["items"].size(), 3U) << times;
  for (const Json& item : times["items"]) {
    EXPECT_GT(item["mpi_time_us"], 0.0);
    EXPECT_DOUBLE_EQ(item["mpi_ratio"], double{item["mpi_time_us"]} / double{item["time_us"]});
  }
  const Outcome text = site_.Assay({"bench", "allreduce", "--bytes", "4", "--mpi"});
  EXPECT_THAT(text.out, HasSubstr("mpi_ratio"));
  EXPECT_THAT(text.err, HasSubstr("Open MPI"));

  Site without;
  ProvideSource(without);
  without.Export("MPICC=no-such-compiler --flag");
  const Outcome outcome = without.Assay({"bench", "allreduce", "--bytes", "4", "--mpi"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no-such-compiler"), HasSubstr("MPICC")));
}

// GPUs faked on the CPU, in the place of CUDA's plug-in.
void ProvideGpus(Site* site, int count) {
  const char* const folder = std::getenv("ASSAY_BIN_DIR");
  site->Export(absl::StrCat("ASSAY_CUDA_PLUGIN=", folder == nullptr ? "build/dev/bin" : folder,
                            "/../tests/libfake_cuda.so"));
  site->Export(absl::StrCat("ASSAY_FAKE_GPUS=", count));
}

TEST_F(BenchTest, MeansOfGpusStandBesideWithARankOnEach) {
  Site site;
  ProvideGpus(&site, 3);
  const Json times = site.AssayJson({"bench", "allreduce", "--bytes", "4,64KiB,1MiB", "--nccl",
                                     "--plot", site.Path("bandwidth.svg")});

  ASSERT_EQ(times["items"].size(), 3U) << times;
  for (const Json& item : times["items"]) {
    const double us = item["nccl_time_us"];
    EXPECT_GT(us, 0);
    EXPECT_DOUBLE_EQ(item["nccl_bus_gb_per_s"], 4.0 / 3 * double{item["bytes"]} / us / 1e3);
    EXPECT_DOUBLE_EQ(item["bus_gb_per_s"],
                     4.0 / 3 * double{item["bytes"]} / double{item["time_us"]} / 1e3)
        << "of as many ranks";
  }
  EXPECT_THAT(ReadFile(site.Path("bandwidth.svg")).value_or(""),
              AllOf(HasSubstr("Assay"), HasSubstr("NCCL"), Not(HasSubstr("MPI"))));

  const Outcome text = site.Assay({"bench", "allreduce", "--ranks=2", "--bytes=4", "--nccl"});
  EXPECT_THAT(text.out, HasSubstr("nccl_time_us"));
  EXPECT_THAT(text.err, HasSubstr("2 GPUs"));
}

TEST_F(BenchTest, WhatIsMissingForNcclIsTold) {
  const auto refusal = [](Site* site, std::vector<std::string> more) {
    std::vector<std::string> argv = {"bench", "allreduce", "--bytes=4", "--nccl"};
    argv.insert(argv.end(), more.begin(), more.end());
    return site->Assay(argv);
  };
  Site two;
  ProvideGpus(&two, 2);
  const Outcome ranks = refusal(&two, {"--ranks=3"});
  EXPECT_EQ(ranks.exit_code, 2) << ranks.Text();
  EXPECT_THAT(ranks.err, AllOf(HasSubstr("--ranks 3"), HasSubstr("this host has 2")));

  Site one;
  ProvideGpus(&one, 1);
  const Outcome alone = refusal(&one, {});
  EXPECT_EQ(alone.exit_code, 8) << alone.Text();
  EXPECT_THAT(alone.err, AllOf(HasSubstr("one GPU"), HasSubstr("CUDA_VISIBLE_DEVICES")));

  // Rank 0 would wait for it.
  Site broken;
  ProvideGpus(&broken, 2);
  broken.Export("ASSAY_FAKE_BROKEN_GPU=1");
  const Outcome gpu = refusal(&broken, {});
  EXPECT_EQ(gpu.exit_code, 8) << gpu.Text();
  EXPECT_THAT(gpu.err, AllOf(HasSubstr("rank 1 has ended"), HasSubstr("this GPU is broken")));

  two.Export("ASSAY_FAKE_LACKS_NCCL=1");
  const Outcome library = refusal(&two, {});
  EXPECT_EQ(library.exit_code, 8) << library.Text();
  EXPECT_THAT(library.err, AllOf(HasSubstr("rank "), HasSubstr("install NCCL")));

  Site none;
  none.Export("ASSAY_CUDA_PLUGIN=/nowhere/libassay_cuda.so");
  const Outcome gpus = refusal(&none, {});
  EXPECT_EQ(gpus.exit_code, 8) << gpus.Text();
  EXPECT_THAT(gpus.err, AllOf(HasSubstr("--nccl needs"), HasSubstr("/nowhere/libassay_cuda.so"),
                              HasSubstr("build Assay where")));
}

TEST_F(BenchTest, AFailureOfARankIsTold) {
  const Outcome sizes = site_.Assay({"bench", "allreduce", "--bytes", "4,7"});
  EXPECT_EQ(sizes.exit_code, 2) << sizes.Text();
  EXPECT_THAT(sizes.err, AllOf(HasSubstr("--bytes"), HasSubstr("\"7\"")));

  Site without_transport;
  without_transport.Export("UCX_TLS=nothing");
  const Outcome outcome = without_transport.Assay({"bench", "allreduce", "--bytes", "4"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("rank "), HasSubstr("UCX")));
}

TEST_F(BenchTest, ADiskIsMeasuredAndLeftAsItWas) {
  std::filesystem::create_directory(site_.Path("stage"));

  const Json disk = site_.AssayJson({"bench", "disk", site_.Path("stage"), "--size", "16"});

  EXPECT_EQ(disk["check"], "stage-disk");
  EXPECT_EQ(disk["unit"], "MB/s");
  EXPECT_GT(disk["value"], 0.0);
  EXPECT_TRUE(std::filesystem::is_empty(site_.Path("stage")));
  EXPECT_EQ(site_.Assay({"bench", "disk", site_.Path("no-such")}).exit_code, 5) << "not found";
  EXPECT_FALSE(std::filesystem::exists(site_.Path("no-such")));
}

}  // namespace
}  // namespace assay::testing
