#include "worker/trainer/fabric.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/exchange.h"
#include "worker/comm/rendezvous.h"
#include "worker/comm/ring.h"
#include "worker/comm/ucx.h"

namespace assay {
namespace {

constexpr int kWarmUpCount = 10;
constexpr int kLongCount = 2;
constexpr size_t kShortBytes = 8;
constexpr comm::Tag kTag = 1;
// For what one that is there has said to be read.
constexpr absl::Duration kReadTime = absl::Milliseconds(50);
// The others give rank 0, which asks after each that may be missing, the time to say so.
constexpr absl::Duration kMorePatience = absl::Seconds(60);
constexpr absl::Duration kFarewell = absl::Seconds(2);
constexpr char kAllHere[] = "all";
constexpr char kSomeMissing[] = "some";

std::string KeyOf(int rank) {
  return absl::StrCat("fabric/here/", rank);
}
const char kVerdictKey[] = "fabric/verdict";

class Fabric {
 public:
  Fabric(comm::Collective* comm, const FabricSizes& sizes, const Clock* clock, MonoTime deadline)
      : comm_(comm),
        sizes_(sizes),
        clock_(clock),
        deadline_(deadline),
        sent_(sizes.bytes),
        received_(sizes.bytes) {}

  absl::Status AllReduce(v1::FabricReport* report) {
    double one = 1;
    ASSIGN_OR_RETURN(const absl::Duration each, MeanOf([&] {
                       return comm::AllReduceSum(comm_, std::span<double>(&one, 1), deadline_);
                     }));
    report->set_all_reduce_us(absl::ToDoubleMicroseconds(each));
    std::vector<float> values(sizes_.bytes / sizeof(float));
    ASSIGN_OR_RETURN(const absl::Duration best, BestOf([&] {
                       return comm::AllReduceSum(comm_, std::span<float>(values), deadline_);
                     }));
    const double ranks = comm_->world_size();
    report->set_all_reduce_gb_per_s(2 * (ranks - 1) / ranks * Rate(best));
    return absl::OkStatus();
  }

  // All ranks call it; link r is that of rank r and the next. Those of even ranks first, then those
  // of odd ones, and last that which closes an odd ring.
  absl::Status Links(v1::FabricReport* report) {
    const int ranks = comm_->world_size();
    double mine[2] = {0, 0};
    for (int phase = 0; phase < 3; ++phase) {
      RETURN_IF_ERROR(comm::Barrier(comm_, deadline_));
      for (const int first : {comm_->rank(), (comm_->rank() + ranks - 1) % ranks}) {
        if (PhaseOf(first) != phase || (ranks == 2 && first != 0)) continue;
        RETURN_IF_ERROR(MeasureLink(first, first == comm_->rank() ? mine : nullptr));
      }
    }
    std::vector<double> all(2 * static_cast<size_t>(ranks));
    RETURN_IF_ERROR(comm::AllGather(comm_, std::as_bytes(std::span(mine)),
                                    std::as_writable_bytes(std::span(all)), deadline_));
    if (ranks == 2) std::copy_n(all.begin(), 2, all.begin() + 2);  // the same link
    for (size_t link = 0; link < all.size(); link += 2) {
      v1::FabricLink* const to = report->add_links();
      to->set_latency_us(all[link]);
      to->set_gb_per_s(all[link + 1]);
    }
    return absl::OkStatus();
  }

 private:
  int PhaseOf(int first) const {
    const bool closes_odd_ring = first == comm_->world_size() - 1 && first % 2 == 0;
    return closes_odd_ring ? 2 : first % 2;
  }

  double Rate(absl::Duration time) const {
    return static_cast<double>(sizes_.bytes) / absl::ToDoubleSeconds(time) / 1e9;
  }

  template <typename F>
  absl::StatusOr<absl::Duration> MeanOf(const F& operation) {
    for (int i = 0; i < kWarmUpCount; ++i)
      RETURN_IF_ERROR(operation());
    const MonoTime begin = clock_->Mono();
    for (int i = 0; i < sizes_.round_count; ++i)
      RETURN_IF_ERROR(operation());
    return (clock_->Mono() - begin) / sizes_.round_count;
  }

  template <typename F>
  absl::StatusOr<absl::Duration> BestOf(const F& operation) {
    RETURN_IF_ERROR(operation());
    absl::Duration best = absl::InfiniteDuration();
    for (int i = 0; i < kLongCount; ++i) {
      const MonoTime begin = clock_->Mono();
      RETURN_IF_ERROR(operation());
      best = std::min(best, clock_->Mono() - begin);
    }
    return best;
  }

  // Between rank `first` and the next one, of which this is one. `result`: latency and rate.
  absl::Status MeasureLink(int first, double* result) {
    const bool is_first = first == comm_->rank();
    const int peer = is_first ? (first + 1) % comm_->world_size() : first;
    const comm::Envelope to{.peer = peer, .tag = kTag};
    const auto round_trip = [&]() -> absl::Status {
      const std::span<std::byte> short_message(received_.data(), kShortBytes);
      if (is_first) RETURN_IF_ERROR(comm::Send(comm_, to, short_message, deadline_));
      RETURN_IF_ERROR(comm::Receive(comm_, to, short_message, deadline_));
      return is_first ? absl::OkStatus() : comm::Send(comm_, to, short_message, deadline_);
    };
    ASSIGN_OR_RETURN(const absl::Duration trip, MeanOf(round_trip));
    const comm::PeerMessages both{.peer = peer, .sent = sent_, .received = received_};
    ASSIGN_OR_RETURN(const absl::Duration best, BestOf([&] {
                       return comm::ExchangeMessages(comm_, {&both, 1}, kTag, deadline_);
                     }));
    if (result == nullptr) return absl::OkStatus();
    result[0] = absl::ToDoubleMicroseconds(trip) / 2;
    result[1] = Rate(best);
    return absl::OkStatus();
  }

  comm::Collective* const comm_;
  const FabricSizes sizes_;
  const Clock* const clock_;
  const MonoTime deadline_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
};

// Rank 0: who has not come in time. UNAVAILABLE: one came and went.
absl::StatusOr<std::vector<int>> AwaitAll(comm::Rendezvous* rendezvous, const Clock* clock,
                                          MonoTime deadline) {
  std::vector<int> absent;
  for (int rank = 1; rank < rendezvous->world_size(); ++rank) {
    const MonoTime until = std::max(deadline, clock->Mono() + kReadTime);
    const absl::Status status = rendezvous->Get(KeyOf(rank), until).status();
    if (absl::IsDeadlineExceeded(status)) {
      absent.push_back(rank);
    } else {
      RETURN_IF_ERROR(status);
    }
  }
  return absent;
}

// True if all ranks are there; the report says who is not.
absl::StatusOr<bool> Gather(comm::Rendezvous* rendezvous, const FabricSizes& sizes,
                            const Clock* clock, v1::FabricReport* report) {
  const MonoTime deadline = clock->Mono() + sizes.patience;
  if (rendezvous->rank() > 0) {
    RETURN_IF_ERROR(rendezvous->Set(KeyOf(rendezvous->rank()), "here", deadline));
    ASSIGN_OR_RETURN(const std::string verdict,
                     rendezvous->Get(kVerdictKey, deadline + kMorePatience));
    return verdict == kAllHere;
  }
  ASSIGN_OR_RETURN(const std::vector<int> absent, AwaitAll(rendezvous, clock, deadline));
  report->mutable_absent_ranks()->Add(absent.begin(), absent.end());
  RETURN_IF_ERROR(rendezvous->Set(kVerdictKey, absent.empty() ? kAllHere : kSomeMissing,
                                  clock->Mono() + kFarewell));
  return absent.empty();
}

absl::Status Measure(const v1::FabricSpec& spec, const FabricSizes& sizes, const Clock* clock,
                     v1::FabricReport* report) {
  const MonoTime begin = clock->Mono();
  const MonoTime deadline = begin + absl::Seconds(spec.time_limit().seconds());
  const comm::CollectiveOptions options = OptionsOf(spec);
  ASSIGN_OR_RETURN(std::unique_ptr<comm::Rendezvous> rendezvous,
                   comm::Meet(options, clock, begin + sizes.patience + kMorePatience));
  ASSIGN_OR_RETURN(const bool is_complete, Gather(rendezvous.get(), sizes, clock, report));
  if (!is_complete) {
    // Those that are missing will not leave either.
    rendezvous->Leave(clock->Mono() + kFarewell).IgnoreError();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<comm::Collective> comm,
      comm::OpenUcx(std::move(rendezvous),
                    comm::UcxOptions{.sealing = options.sealing, .secret = options.token}, clock,
                    deadline));
  Fabric fabric(comm.get(), sizes, clock, deadline);
  RETURN_IF_ERROR(fabric.AllReduce(report));
  RETURN_IF_ERROR(fabric.Links(report));
  return comm->Close(deadline);
}

}  // namespace

comm::CollectiveOptions OptionsOf(const v1::FabricSpec& spec) {
  comm::CollectiveOptions options = {.rank = spec.rank(),
                                     .world_size = spec.node_count(),
                                     .rendezvous_address = spec.rendezvous_address(),
                                     .run = spec.name(),
                                     .token = spec.token()};
  if (spec.is_rank_network_trusted()) options.sealing = comm::Sealing::kNetworkTrusted;
  if (spec.rank() == 0 && spec.rendezvous_listener() > 0)
    options.rendezvous_listener = spec.rendezvous_listener();
  return options;
}

v1::FabricReport MeasureFabric(const v1::FabricSpec& spec, const FabricSizes& sizes,
                               const Clock* clock) {
  v1::FabricReport report;
  const absl::Status status = Measure(spec, sizes, clock, &report);
  if (!status.ok() && report.links().empty()) report.set_error(std::string(status.message()));
  if (spec.rank() > 0) report.clear_links();
  return report;
}

}  // namespace assay
