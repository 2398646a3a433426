#include "worker/agent/preflight/ask.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/process.h"
#include "common/status.h"

namespace assay::agent {

absl::StatusOr<Answer> Ask(const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment, absl::Duration patience) {
  std::string path = (std::filesystem::temp_directory_path() / "assay_preflight_XXXXXX").string();
  const UniqueFd file(mkstemp(path.data()));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  const auto remove = absl::MakeCleanup([&path] { unlink(path.c_str()); });
  ASSIGN_OR_RETURN(const ProcessId child, Spawn({.argv = argv,
                                                 .environment = environment,
                                                 .output_path = path,
                                                 .process_group = getpgrp()}));
  const absl::StatusOr<int> code = WaitForExit(child, patience);
  if (!code.ok()) {
    kill(child.pid, SIGKILL);
    WaitForExit(child, absl::Seconds(5)).IgnoreError();
    return code.status();
  }
  return Answer{*code, std::string(absl::StripAsciiWhitespace(ReadFile(path).value_or("")))};
}

}  // namespace assay::agent
