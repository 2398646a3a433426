#include "worker/comm/registry.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/rendezvous_server.h"
#include "worker/comm/single.h"
#include "worker/comm/tcp_rendezvous.h"
#include "worker/comm/ucx.h"

namespace assay::comm {
namespace {

using Result = absl::StatusOr<std::unique_ptr<Collective>>;
using Factory = Result (*)(const CollectiveOptions& options, const Clock* clock, MonoTime deadline);

Result OpenSingleRank(const CollectiveOptions& options, const Clock* /*clock*/,
                      MonoTime /*deadline*/) {
  if (options.world_size == 1) return OpenSingle();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the collective \"single\" has one rank, not %d; use \"ucx\"", options.world_size));
}

Result OpenUcxRank(const CollectiveOptions& options, const Clock* clock, MonoTime deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<Rendezvous> rendezvous, Meet(options, clock, deadline));
  return OpenUcx(std::move(rendezvous),
                 UcxOptions{.sealing = options.sealing, .secret = options.token}, clock, deadline);
}

struct Entry {
  const char* name;
  Factory open;
};

// Sorted by name.
constexpr Entry kEntries[] = {{"single", &OpenSingleRank}, {"ucx", &OpenUcxRank}};

}  // namespace

absl::StatusOr<std::unique_ptr<Rendezvous>> Meet(const CollectiveOptions& options,
                                                 const Clock* clock, MonoTime deadline) {
  std::unique_ptr<RendezvousServer> server;
  JoinOptions join{.address = options.rendezvous_address,
                   .rank = options.rank,
                   .world_size = options.world_size,
                   .run = options.run,
                   .token = options.token};
  if (options.rank == 0) {
    const RendezvousServerOptions serve{.address = options.rendezvous_address,
                                        .world_size = options.world_size,
                                        .run = options.run,
                                        .token = options.token};
    if (options.rendezvous_listener >= 0) {
      UniqueFd listener(options.rendezvous_listener);
      ASSIGN_OR_RETURN(server, RendezvousServer::Start(serve, std::move(listener), clock));
    } else {
      ASSIGN_OR_RETURN(server, RendezvousServer::Start(serve, clock));
      join.address = server->address();  // with the real port
    }
  }
  return JoinRendezvous(join, std::move(server), clock, deadline);
}

std::vector<std::string> CollectiveNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries)
    names.emplace_back(entry.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Collective>> OpenCollective(absl::string_view name,
                                                           const CollectiveOptions& options,
                                                           const Clock* clock, MonoTime deadline) {
  if (options.world_size < 1 || options.world_size > kMaxWorldSize || options.rank < 0 ||
      options.rank >= options.world_size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rank %d of %d ranks: there are 1 to %d ranks, counted from 0",
                        options.rank, options.world_size, kMaxWorldSize));
  }
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.open(options, clock, deadline);
  }
  return absl::NotFoundError(absl::StrCat("no collective is called \"", name, "\"; there are: ",
                                          absl::StrJoin(CollectiveNames(), ", ")));
}

}  // namespace assay::comm
