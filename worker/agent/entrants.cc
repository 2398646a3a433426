#include "worker/agent/entrants.h"

#include "absl/strings/str_cat.h"

#include "common/log.h"

namespace assay::agent {

absl::Status Entrants::LetIn() {
  for (const Entrant& entrant : entrance_.TakeEntrants()) {
    if (entered_.contains(entrant.rank)) {
      entrance_.Refuse(entrant.rank, absl::StrCat("rank ", entrant.rank, " has come already"));
      continue;
    }
    const absl::Status started = start_(entrant);
    if (absl::IsInvalidArgument(started)) {
      entrance_.Refuse(entrant.rank, started.message());
      continue;
    }
    if (!started.ok()) return started;
    entered_.insert(entrant.rank);
    LOG(INFO) << "rank " << entrant.rank << " has come from the launcher";
  }
  return absl::OkStatus();
}

void Entrants::Answer(const std::vector<RankExit>& exits) {
  for (const RankExit& exit : exits)
    if (exit.rank != kLauncherRank) entrance_.Answer(exit);
}

}  // namespace assay::agent
