#include "cli/command/ask_program.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"

#include "common/file.h"
#include "common/process.h"

namespace assay::cli {

std::optional<std::string> AskProgram(std::vector<std::string> argv,
                                      std::vector<std::string> environment) {
  std::string path = (std::filesystem::temp_directory_path() / "assay_asks_XXXXXX").string();
  const UniqueFd made(mkstemp(path.data()));
  if (!made.is_open()) return std::nullopt;
  const auto remove = absl::MakeCleanup([&path] { unlink(path.c_str()); });
  argv.insert(argv.begin(), "/usr/bin/env");
  const absl::StatusOr<ProcessId> program =
      Spawn({.argv = std::move(argv), .environment = std::move(environment), .output_path = path});
  if (!program.ok()) return std::nullopt;
  const absl::StatusOr<int> code = WaitForExit(*program, absl::Minutes(1));
  if (!code.ok()) StopGroup(*program, absl::ZeroDuration()).IgnoreError();
  if (!code.ok() || *code != 0) return std::nullopt;
  return ReadFile(path).value_or("");
}

}  // namespace assay::cli
