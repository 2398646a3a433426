// assay-privileged: what needs root on a node whose agents are nobody special.

#include <grp.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/log.h"
#include "worker/privileged/helper.h"

namespace assay::privileged {
namespace {

constexpr char kUsage[] =
    R"(Usage: assay-privileged --root=DIRECTORY... [--group=NAME] [--socket=PATH]

Drops the page cache and opens fanotify on what lies below the roots (datasets, and where agents
stage them) for agents of this node that are not root themselves. Needs CAP_SYS_ADMIN.

  --root=DIRECTORY  may be watched with all below it; may be repeated
  --group=NAME      who may ask (default: assay)
  --socket=PATH     where it listens (default: /run/assay/privileged.sock)
)";

constexpr int kExitUsage = 2;

int Main(const std::vector<std::string>& arguments) {
  HelperOptions options;
  std::string group = "assay";
  std::string socket_path = kSocketPath;
  for (const std::string& argument : arguments) {
    absl::string_view value = argument;
    if (argument == "--help") {
      std::cout << kUsage;
      return 0;
    }
    if (absl::ConsumePrefix(&value, "--root=")) {
      options.roots.emplace_back(value);
    } else if (absl::ConsumePrefix(&value, "--group=")) {
      group = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--socket=")) {
      socket_path = std::string(value);
    } else {
      std::cerr << "error: unknown argument " << argument << "\n" << kUsage;
      return kExitUsage;
    }
  }
  const absl::StatusOr<UniqueFd> listener = Listen(socket_path, group);
  if (!listener.ok()) {
    LOG(ERROR) << "cannot listen status=" << Quoted(listener.status());
    return 1;
  }
  LOG(INFO) << "listening socket=" << socket_path << " group=" << group;
  absl::Status status;
  while (status.ok())
    status = AnswerOne(listener->get(), options);
  LOG(ERROR) << status;
  return 1;
}

}  // namespace
}  // namespace assay::privileged

int main(int argc, char** argv) {
  return assay::privileged::Main({argv + 1, argv + argc});
}
