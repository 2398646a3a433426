// The check of GPUs, by what a script that plays nvidia-smi says: there is no GPU where this runs.

#include <sys/stat.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "worker/agent/preflight/check.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;
using testing::WriteFile;

// Answers --query-KIND=FIELDS with a line for each file KIND.* beside it, which has FIELD=VALUE,
// and refuses a field of which the first has none, as the driver's does.
constexpr char kNvidiaSmi[] = R"(#!/bin/sh
here=$(dirname "$0")
echo "$1" >>"$here/asked"
kind=${1#--query-}
fields=$(echo "${kind#*=}" | tr , ' ')
kind=${kind%%=*}
if [ -e "$here/no-$kind" ]; then echo "Invalid combination of input arguments."; exit 1; fi
for thing in "$here/$kind".*; do
  [ -e "$thing" ] || continue
  line=
  for field in $fields; do
    value=$(grep "^$field=" "$thing") || {
      echo "Field \"$field\" is not a valid field to query."
      exit 2
    }
    line="$line, ${value#*=}"
  done
  echo "${line#, }"
done
)";

using Fields = std::map<std::string, std::string>;

Fields Gpu(int index) {
  return {{"index", absl::StrCat(index)},
          {"uuid", absl::StrCat("GPU-", index, "a2b")},
          {"name", "NVIDIA H100 80GB HBM3"},
          {"ecc.errors.uncorrected.volatile.total", "0"},
          {"ecc.errors.uncorrected.aggregate.total", "0"},
          {"retired_pages.pending", "[N/A]"},
          {"clocks_event_reasons.hw_slowdown", "Not Active"},
          {"clocks_event_reasons.hw_thermal_slowdown", "Not Active"},
          {"clocks_event_reasons.hw_power_brake_slowdown", "Not Active"},
          {"clocks_event_reasons.sw_thermal_slowdown", "Not Active"},
          {"pcie.link.width.current", "16"},
          {"pcie.link.width.max", "16"},
          {"memory.used", "4"},
          {"memory.total", "81559"}};
}

Fields Remaps(int index) {
  return {{"gpu_uuid", absl::StrCat("GPU-", index, "a2b")},
          {"remapped_rows.pending", "0"},
          {"remapped_rows.failure", "No"}};
}

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Play(kNvidiaSmi);
    ASSERT_TRUE(MakeDirectories(directory_.Path("dev")).ok());
    for (int i = 0; i < 2; ++i) {
      Put(absl::StrCat("gpu.", i), Gpu(i));
      Put(absl::StrCat("remapped-rows.", i), Remaps(i));
      WriteFile(directory_.Path(absl::StrCat("dev/nvidia", i)), "");
    }
    options_.gpu_program = directory_.Path("nvidia-smi");
    options_.device_directory = directory_.Path("dev");
  }
  void Play(const std::string& script) {
    WriteFile(directory_.Path("nvidia-smi"), script);
    EXPECT_EQ(chmod(directory_.Path("nvidia-smi").c_str(), 0700), 0);
  }
  void Put(const std::string& file, const Fields& fields) {
    std::string text;
    for (const auto& [field, value] : fields)
      absl::StrAppend(&text, field, "=", value, "\n");
    WriteFile(directory_.Path(file), text);
  }
  // The check with one field of GPU 1 different.
  CheckResult CheckWith(const std::string& kind, const std::string& field,
                        const std::string& value) {
    Fields fields = kind == "gpu" ? Gpu(1) : Remaps(1);
    EXPECT_TRUE(fields.contains(field));
    fields[field] = value;
    Put(kind + ".1", fields);
    CheckResult result = CheckGpu(options_);
    Put(kind + ".1", kind == "gpu" ? Gpu(1) : Remaps(1));
    return result;
  }
  size_t AskedCount() const {
    const std::string asked = ReadFile(directory_.Path("asked")).value_or("");
    const std::vector<std::string> lines = absl::StrSplit(asked, '\n', absl::SkipEmpty());
    return lines.size();
  }
  void NoDevices() { options_.device_directory = directory_.Path("nowhere"); }

  const TempDir directory_;
  CheckOptions options_;
};

TEST_F(GpuTest, GpusThatAreWellAreCounted) {
  const CheckResult result = CheckGpu(options_);
  EXPECT_TRUE(result.is_measured);
  EXPECT_EQ(result.value, 2);
  EXPECT_EQ(result.unit, "GPUs");
  EXPECT_THAT(result.problem, IsEmpty());
  EXPECT_EQ(result.detail,
            "of 2 x NVIDIA H100 80GB HBM3; the driver does not tell retired_pages.pending");
  EXPECT_EQ(AskedCount(), 3U) << "each takes its time";
}

TEST_F(GpuTest, WhatIsWrongWithAGpuIsItsProblem) {
  const struct {
    const char* kind;
    const char* field;
    const char* value;
    const char* problem;
  } cases[] = {
      {"gpu", "ecc.errors.uncorrected.volatile.total", "3",
       "GPU 1: 3 uncorrected ECC errors since the driver was loaded"},
      {"gpu", "retired_pages.pending", "Yes",
       "GPU 1: pages of its memory wait for a reset to be retired"},
      {"remapped-rows", "remapped_rows.pending", "1",
       "GPU 1: rows of its memory wait for a reset to be remapped"},
      {"remapped-rows", "remapped_rows.failure", "Yes",
       "GPU 1: rows of its memory could not be remapped"},
      {"gpu", "clocks_event_reasons.hw_thermal_slowdown", "Active",
       "GPU 1: its clocks are held down: hw_thermal_slowdown"},
      {"gpu", "pcie.link.width.current", "8", "GPU 1: has 8 of 16 PCIe lanes"},
      {"gpu", "memory.used", "20480", "GPU 1: 20480 of 81559 MiB are in use by nobody who is seen"},
      {"gpu", "memory.used", "[GPU requires reset]", "GPU 1: the driver says [GPU requires reset]"},
  };
  for (const auto& wrong : cases) {
    const CheckResult result = CheckWith(wrong.kind, wrong.field, wrong.value);
    EXPECT_EQ(result.problem, wrong.problem);
    EXPECT_TRUE(result.is_measured);
    EXPECT_EQ(result.value, 1) << "GPU 0 is well";
  }
}

TEST_F(GpuTest, ErrorsOfThePastAreToldAndNoProblem) {
  const CheckResult result = CheckWith("gpu", "ecc.errors.uncorrected.aggregate.total", "7");
  EXPECT_THAT(result.problem, IsEmpty());
  EXPECT_THAT(result.detail, HasSubstr("7 uncorrected ECC errors ever"));
}

TEST_F(GpuTest, WhoComputesOnAGpuIsNamed) {
  Put("compute-apps.0", {{"gpu_uuid", "GPU-0a2b"},
                         {"pid", "4711"},
                         {"process_name", "python3"},
                         {"used_memory", "512"}});
  CheckResult result = CheckGpu(options_);
  EXPECT_EQ(result.problem, "GPU 0: is used by process 4711 (python3) with 512 MiB");
  // Others may have the GPUs that are not this worker's.
  options_.trainer_environment = {"CUDA_VISIBLE_DEVICES=1"};
  result = CheckGpu(options_);
  EXPECT_THAT(result.problem, IsEmpty());
  EXPECT_EQ(result.value, 1);
  options_.trainer_environment = {"CUDA_VISIBLE_DEVICES=GPU-0a"};
  EXPECT_THAT(CheckGpu(options_).problem, HasSubstr("GPU 0: is used by process 4711"));
}

TEST_F(GpuTest, AnOldDriverIsAskedForWhatItKnows) {
  for (int i = 0; i < 2; ++i) {
    Fields old;
    for (const auto& [field, value] : Gpu(i))
      if (!field.starts_with("ecc."))
        old[absl::StrReplaceAll(field, {{"clocks_event_", "clocks_throttle_"}})] = value;
    if (i == 1) old["clocks_throttle_reasons.sw_thermal_slowdown"] = "Active";
    Put(absl::StrCat("gpu.", i), old);
  }
  WriteFile(directory_.Path("no-remapped-rows"), "");
  const CheckResult result = CheckGpu(options_);
  EXPECT_EQ(result.problem, "GPU 1: its clocks are held down: sw_thermal_slowdown");
  EXPECT_EQ(result.value, 1);
  EXPECT_THAT(result.detail, AllOf(HasSubstr("ecc.errors.uncorrected.volatile.total"),
                                   HasSubstr("remapped-rows")));
}

TEST_F(GpuTest, WhatADriverDoesNotTellIsNoProblem) {
  for (const char* nothing : {"[N/A]", "[Not Supported]", "N/A"}) {
    Fields silent = Gpu(0);
    for (auto& [field, value] : silent)
      if (field != "index" && field != "uuid" && field != "name") value = nothing;
    Put("gpu.0", silent);
    Put("remapped-rows.0", {{"gpu_uuid", "GPU-0a2b"},
                            {"remapped_rows.pending", nothing},
                            {"remapped_rows.failure", nothing}});
    const CheckResult result = CheckGpu(options_);
    EXPECT_EQ(result.value, 2);
    EXPECT_THAT(result.problem, IsEmpty());
    EXPECT_THAT(result.detail, HasSubstr("does not tell clocks_event_reasons.hw_power_brake"));
  }
}

TEST_F(GpuTest, ADriverThatHangsIsAProblem) {
  Play("#!/bin/sh\nexec sleep 60\n");
  options_.patience = absl::Milliseconds(50);
  const RealClock clock;
  const MonoTime begin = clock.Mono();
  const CheckResult result = CheckGpu(options_);
  EXPECT_FALSE(result.is_measured);
  EXPECT_EQ(result.problem, "nvidia-smi has not answered within 50ms");
  EXPECT_LT(clock.Mono() - begin, absl::Seconds(20));
}

TEST_F(GpuTest, AGpuThatDoesNotAnswerIsAProblemOnlyWhereOneIs) {
  Play(
      "#!/bin/sh\necho 'Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  "
      "Reboot the system to recover this GPU'\nexit 15\n");
  EXPECT_THAT(CheckGpu(options_).problem,
              AllOf(HasSubstr("/dev/nvidia"),
                    HasSubstr(", but nvidia-smi ended with 15: Unable to determine the device")));
  Play("#!/bin/sh\necho 'No devices were found'\n");
  EXPECT_THAT(CheckGpu(options_).problem, HasSubstr("nvidia-smi finds no GPU"));
  NoDevices();
  const CheckResult result = CheckGpu(options_);
  EXPECT_FALSE(result.is_measured);
  EXPECT_THAT(result.problem, IsEmpty());
  EXPECT_EQ(result.detail, "this node has no GPU: nvidia-smi finds no GPU");
}

TEST_F(GpuTest, WhatElseNvidiaSmiSaysIsPassedOn) {
  Play(absl::StrCat(kNvidiaSmi, "echo 'WARNING: \x1b[31minfoROM is old' >&2\n"));
  const CheckResult result = CheckGpu(options_);
  EXPECT_EQ(result.value, 2);
  EXPECT_THAT(result.detail, HasSubstr("nvidia-smi says: WARNING: \\x1b[31minfoROM is old"));
}

TEST_F(GpuTest, ANodeWithoutNvidiaSmiIsNotMeasured) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", directory_.Path("dev").c_str(), 1);
  options_.gpu_program.clear();
  const CheckResult unasked = CheckGpu(options_);
  NoDevices();
  const CheckResult none = CheckGpu(options_);
  setenv("PATH", directory_.path().c_str(), 1);
  const CheckResult found = CheckGpu(options_);
  setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(unasked.is_measured);
  EXPECT_THAT(unasked.detail, HasSubstr("but no nvidia-smi in PATH to ask"));
  EXPECT_THAT(unasked.problem, IsEmpty());
  EXPECT_EQ(none.detail, "this node has no GPU");
  EXPECT_THAT(found.detail, HasSubstr("nvidia-smi finds no GPU")) << "it lacks its tools";
}

}  // namespace
}  // namespace assay::agent
