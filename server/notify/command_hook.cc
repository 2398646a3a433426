#include "server/notify/command_hook.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/process.h"
#include "common/status.h"

namespace assay::notify {
namespace {

// A file without a name that holds `text` and is read from its beginning: unlike a pipe it is
// written at once, whether the program reads or not.
absl::StatusOr<UniqueFd> FileOf(const std::string& text) {
  UniqueFd file(memfd_create("notice", MFD_CLOEXEC));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, "memfd_create");
  RETURN_IF_ERROR(WriteAll(file.get(), text));
  if (lseek(file.get(), 0, SEEK_SET) != 0) return absl::ErrnoToStatus(errno, "lseek");
  return file;
}

}  // namespace

CommandHook::CommandHook(std::vector<std::string> argv, absl::Duration timeout,
                         const std::atomic<bool>* is_stopped)
    : argv_(std::move(argv)), timeout_(timeout), is_stopped_(*is_stopped) {}

absl::Status CommandHook::Deliver(const std::string& document) {
  ASSIGN_OR_RETURN(const UniqueFd input, FileOf(document));
  ASSIGN_OR_RETURN(
      const int code,
      RunToEnd({.argv = argv_,
                .environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                "LANG=C.UTF-8"},
                .working_directory = "/",
                .input_fd = input.get(),
                .has_own_environment = true},
               timeout_, is_stopped_));
  if (code == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("exit code ", code));
}

}  // namespace assay::notify
