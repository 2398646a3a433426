// assay bench: the programs that train and check are asked what this host can do.

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/e2e/site.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
