#include "cli/coordinator/dev.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "cli/coordinator/dev_coordinator.h"
#include "cli/dataset/dataset_files.h"
#include "cli/web/open.h"
#include "common/client/ids.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<std::string> RoundsLine(const client::Client& client) {
  ASSIGN_OR_RETURN(const v1::ListRoundsResponse response, client.Call(v1::ListRoundsRequest()));
  std::vector<std::string> own;
  int built_in = 0;
  for (const v1::Round& round : response.rounds()) {
    if (round.is_mlperf_result()) {
      ++built_in;
    } else {
      own.push_back(absl::StrCat(round.name(), " (", round.digest().substr(0, 12), ")"));
    }
  }
  return absl::StrCat(absl::StrJoin(own, ", "), own.empty() ? "" : " and ", built_in,
                      " MLPerf rounds");
}

absl::StatusOr<std::string> WorkersLine(const client::Client& client) {
  ASSIGN_OR_RETURN(const v1::ListWorkersResponse response, client.Call(v1::ListWorkersRequest()));
  std::vector<std::string> names;
  for (const v1::Worker& worker : response.workers())
    names.push_back(client::ShortId(worker.name()));
  std::sort(names.begin(), names.end());
  return absl::StrCat(absl::StrJoin(names, ", "), "  (1 core each)");
}

absl::StatusOr<ExitStatus> RunDev(Context* context, const Arguments& arguments) {
  if (arguments.Has("stop")) {
    RETURN_IF_ERROR(StopDevCoordinator(context->env()));
    context->out() << "stopped; its keys and data are removed\n";
    return ExitStatus::kDone;
  }
  context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const int64_t wanted, arguments.Integer("workers", 2));
  if (wanted < 1 || wanted > DefaultThreads())
    return absl::InvalidArgumentError(absl::StrCat("--workers: 1 to ", DefaultThreads(),
                                                   ", as many as this host has processors"));
  context->Note("starting...");
  absl::StatusOr<std::unique_ptr<DevCoordinator>> started =
      DevCoordinator::Start(context, static_cast<int>(wanted), DevLife::kEndsWithThis);
  if (absl::IsCancelled(started.status())) return ExitStatus::kInterrupted;
  RETURN_IF_ERROR(started.status());
  const std::unique_ptr<DevCoordinator> dev = *std::move(started);
  ASSIGN_OR_RETURN(const std::string workers, WorkersLine(dev->client()));
  ASSIGN_OR_RETURN(const std::string rounds, RoundsLine(dev->client()));
  const Style& style = context->style();
  const auto line = [&](absl::string_view label, absl::string_view text) {
    context->out() << style.Paint(label, Tone::kFaint)
                   << std::string(14 - std::min<size_t>(label.size(), 13), ' ') << text << "\n";
  };
  line("coordinator",
       absl::StrCat(dev->listen_address(), "  (mTLS, throw-away keys in ", dev->directory(), ")"));
  line("socket", dev->endpoint().target.substr(5));
  line("workers", workers);
  line("rules", rounds);
  if (!dev->site_url().empty()) {
    ASSIGN_OR_RETURN(const SignInLink link, MakeSignInLink(dev->client(), dev->site_url()));
    line("site", link.url);
  }
  line("log", absl::StrCat(dev->directory(), "/assayd.log"));
  if (!dev->site_url().empty())
    context->out()
        << "The link signs you in, once, within a minute; 'assay web open' prints another. "
           "Your browser\nasks about the site's certificate, which this coordinator has "
           "signed.\n";
  context->out() << "In another shell:  assay quickstart\nCtrl-C ends it and removes everything.\n"
                 << std::flush;
  RETURN_IF_ERROR(dev->WaitForEnd(context->env().interrupt));
  context->Note("stopping...");
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> DevCommands() {
  return {{.path = "dev",
           .summary = "start a private coordinator with workers on this host",
           .description = "Keys, database and results live in a directory of yours that is removed "
                          "when it ends. No root, no network, no configuration.",
           .options = {{.name = "workers",
                        .kind = Option::Kind::kInteger,
                        .value = "N",
                        .help = "agents of one core each",
                        .fallback = std::to_string(std::min(2, DefaultThreads()))},
                       {.name = "stop",
                        .help = "end the one that 'assay quickstart --keep' left running"}},
           .examples = {{"assay dev", "then, in another shell, assay quickstart"}},
           .run = RunDev}};
}

}  // namespace assay::cli
