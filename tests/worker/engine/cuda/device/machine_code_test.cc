// The budget of our kernels' machine code, for Hopper, without a GPU: machine_code.txt has a line
// with limits for each. What was measured is left beside the build, in the same form.

#include "tests/worker/engine/cuda/device/machine_code.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "tests/support/official_checker.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {
namespace {

constexpr char kTable[] = "tests/worker/engine/cuda/device/machine_code.txt";
constexpr char kSource[] = "worker/engine/backends/cuda/device/launch.cu";
constexpr int64_t kSassBytesMax = int64_t{64} << 20;  // they are 5 MB

// The toolkit's own disassembler, or else PyPI's; empty, with the reason, where there is neither.
std::string ProvideDisassembler(std::string* why_not) {
  const std::string beside = absl::StrCat(
      std::string(ASSAY_NVCC).substr(0, std::string(ASSAY_NVCC).rfind('/')), "/nvdisasm");
  if (FileExists(beside)) return beside;
  const std::string python = ProvidePython({.folder = "nvdisasm",
                                            .import = "importlib.metadata",
                                            .packages = {"nvidia-cuda-nvdisasm==13.5.37"}},
                                           why_not);
  if (python.empty()) return "";
  const ProgramRun found =
      RunToEnd({python, "-c",
                "from importlib.metadata import files as f; print([p.locate() for p in "
                "f('nvidia-cuda-nvdisasm') if p.name == 'nvdisasm'][0])"});
  EXPECT_EQ(found.exit_code, 0) << found.output;
  return std::string(absl::StripAsciiWhitespace(found.output));
}

// A line of the table: of what is measured, or limits.
struct Row {
  std::string kernel;
  int64_t elements = 1;  // of one pass of the hot loop; by hand
  KernelCode code;
};

std::string LineOf(const Row& row) {
  return absl::StrCat(row.kernel, " | ", row.elements, " | ", row.code.instructions, " | ",
                      row.code.divisions, " | ", row.code.calls, " | ", row.code.load_bits, " | ",
                      row.code.registers, "\n");
}

// Limits; comments begin with #.
std::map<std::string, Row> ReadTable() {
  std::map<std::string, Row> rows;
  const absl::StatusOr<std::string> text = ReadFile(kTable);
  EXPECT_TRUE(text.ok()) << text.status();
  for (const absl::string_view line : absl::StrSplit(text.value_or(""), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    Row row;
    const bool is_read = cells.size() == 7 && absl::SimpleAtoi(cells[1], &row.elements) &&
                         absl::SimpleAtoi(cells[2], &row.code.instructions) &&
                         absl::SimpleAtoi(cells[3], &row.code.divisions) &&
                         absl::SimpleAtoi(cells[4], &row.code.calls) &&
                         absl::SimpleAtoi(cells[5], &row.code.load_bits) &&
                         absl::SimpleAtoi(cells[6], &row.code.registers);
    EXPECT_TRUE(is_read) << kTable << ": not a row of 7 cells: " << line;
    row.kernel = cells[0];
    EXPECT_TRUE(rows.emplace(row.kernel, row).second) << kTable << ": twice: " << line;
  }
  return rows;
}

void ExpectWithin(const Row& limit, const KernelCode& code) {
  SCOPED_TRACE(absl::StrCat(limit.kernel, ", limits in ", kTable));
  EXPECT_EQ(code.spill_bytes, 0) << "bytes of local memory";
  EXPECT_LE(code.instructions, limit.code.instructions) << "instructions of the hot loop";
  EXPECT_LE(code.divisions, limit.code.divisions) << "divisions of integers in the hot loop";
  EXPECT_LE(code.calls, limit.code.calls) << "calls of subroutines in the hot loop";
  EXPECT_GE(code.load_bits, limit.code.load_bits) << "bits that a load takes";
  EXPECT_LE(code.registers, limit.code.registers) << "registers";
}

TEST(MachineCodeTest, EveryKernelStaysWithinItsBudget) {
  std::string why_not;
  const std::string disassembler = ProvideDisassembler(&why_not);
  if (disassembler.empty()) GTEST_SKIP() << "machine code is not read: " << why_not;
  const TempDir dir;
  const ProgramRun built =
      RunToEnd({ASSAY_NVCC, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-cubin",
                "-arch=sm_90", "-Xptxas", "-v", "-I.", kSource, "-o", dir.Path("kernels.cubin")});
  ASSERT_EQ(built.exit_code, 0) << built.output;
  const ProgramRun read = RunToEnd({"/bin/sh", "-c", "exec \"$0\" -c \"$1\" > \"$2\"", disassembler,
                                    dir.Path("kernels.cubin"), dir.Path("sass")});
  ASSERT_EQ(read.exit_code, 0) << read.output;
  const absl::StatusOr<std::string> sass = ReadFile(dir.Path("sass"), kSassBytesMax);
  ASSERT_TRUE(sass.ok()) << sass.status();

  const std::map<std::string, KernelCode> codes = ReadMachineCode(*sass, built.output);
  std::map<std::string, Row> rows = ReadTable();

  ASSERT_FALSE(codes.empty());
  std::string measured;
  for (const auto& [kernel, code] : codes) {
    const auto limit = rows.extract(kernel);
    measured += LineOf({kernel, limit.empty() ? 1 : limit.mapped().elements, code});
    if (limit.empty()) {
      ADD_FAILURE() << "no limits for " << kernel << " in " << kTable;
    } else {
      ExpectWithin(limit.mapped(), code);
    }
  }
  for (const auto& [kernel, row] : rows)
    ADD_FAILURE() << "limits for a kernel that is none: " << kernel << " in " << kTable;
  const std::string beside = absl::StrCat(std::getenv("ASSAY_BIN_DIR"), "/../machine_code.txt");
  EXPECT_TRUE(WriteFileAtomic(beside, measured).ok()) << beside;
}

// What the reader takes for a loop, a division, a call and a load.
TEST(MachineCodeTest, TheHotLoopIsTheLongestWithoutAnother) {
  const absl::string_view symbol = "_Z7ForEachIN5assay4cuda3SgdEEvT_";
  const std::string sass =
      absl::StrCat("\t.section\t.text.", symbol, ",\"ax\"\n.text.", symbol, R"(:
.L_x_0:
 /*0000*/ I2F.U32.RP R1, R2 ;
 /*0010*/ CALL.REL.NOINC `($division) ;
.L_x_1:
 /*0020*/ LDG.E.128 R4, desc[UR6][R2.64] ;
 /*0030*/ LDG.E R4, desc[UR6][R2.64] ;
 /*0035*/ CALL.REL.NOINC `($root) ;
 /*0040*/ @!P0 BRA `(.L_x_1) ;
 /*0050*/ @P1 BRA `(.L_x_0) ;
.L_x_2:
 /*0060*/ BRA `(.L_x_2) ;
)");
  const std::string ptxas = absl::StrCat("info : Compiling entry function '", symbol,
                                         "' for 'sm_90'\n    8 bytes stack frame, 4 bytes spill "
                                         "stores, 4 bytes spill loads\ninfo : Used 32 registers,");

  const std::map<std::string, KernelCode> codes = ReadMachineCode(sass, ptxas);

  ASSERT_EQ(codes.count("Sgd"), 1U);
  const KernelCode& code = codes.at("Sgd");
  EXPECT_EQ(code.instructions, 4);
  EXPECT_EQ(code.divisions, 0);
  EXPECT_EQ(code.calls, 1);
  EXPECT_EQ(code.load_bits, 128);
  EXPECT_EQ(code.spill_bytes, 12);
  EXPECT_EQ(code.registers, 32);
}

}  // namespace
}  // namespace assay::testing
