#include "worker/comm/ucx.h"

#include <sched.h>
#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/message_seals.h"
#include "worker/comm/protection.h"
#include "worker/comm/rendezvous.h"
#include "worker/comm/ring.h"
#include "worker/comm/shared_reduction.h"
#include "worker/comm/ucx_setup.h"

namespace assay::comm {
namespace {

// After this many polls without news the waiting rank offers its core to others at each poll: about
// 10 us, well above the latency of shared memory. At once, nearly, if the ranks outnumber the
// cores: then the awaited rank may be waiting for this very core.
constexpr int kIdlePollsBeforeYield = 200;
constexpr int kIdlePollsBeforeYieldWhenCrowded = 4;
// Reading the clock and the health of the peers costs about as much as a poll.
constexpr int kPollsPerCheck = 64;
// Looking into shared memory is much cheaper than a poll.
constexpr int kLooksPerPoll = 32;
// How long cancelled requests may take to end. A message that was arriving from a peer that died
// never does; only our own polling would move it, so it stays as it is.
constexpr absl::Duration kAbortPatience = absl::Milliseconds(100);

// How many polls to wait for news before giving way to other ranks of this machine.
int ChooseIdlePolls(const std::vector<UcxPeer>& peers, int rank) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return kIdlePollsBeforeYield;
  int neighbours = 0;
  for (const UcxPeer& peer : peers) {
    if (peer.machine == peers[static_cast<size_t>(rank)].machine) ++neighbours;
  }
  return neighbours > CPU_COUNT(&cores) ? kIdlePollsBeforeYieldWhenCrowded : kIdlePollsBeforeYield;
}

std::unique_ptr<MessageSeals> MakeSeals(const UcxSetup& setup, const Rendezvous& rendezvous,
                                        absl::string_view secret) {
  if (setup.protection != Protection::kSealed) return nullptr;
  const MessageSeals::World world = {.rank = rendezvous.rank(),
                                     .world_size = rendezvous.world_size()};
  return std::make_unique<MessageSeals>(world, secret, setup.session);
}

// ---- The transport -----------------------------------------------------------------------------

// A message as UCX is given it: its bytes and, where messages are sealed, its seal behind them. UCX
// keeps pointers into this.
struct Parts {
  std::array<ucp_dt_iov_t, 2> spans = {};
  Seal seal = {};
};

// One request. UCX's handle is null once the request is complete.
struct Slot {
  ucs_status_ptr_t handle = nullptr;
  std::span<std::byte> target;  // of a receive
  MessageNumber number;         // of a receive, where messages are sealed
  ucp_tag_recv_info_t received = {};
  ucs_status_t status = UCS_OK;
  int peer = 0;
  bool is_receive = false;
  Parts parts;
};

class Ucx final : public Collective {
 public:
  Ucx(std::unique_ptr<Rendezvous> rendezvous, UcxSetup setup, absl::string_view secret,
      const Clock* clock)
      : Collective(rendezvous->rank(), rendezvous->world_size()),
        clock_(clock),
        rendezvous_(std::move(rendezvous)),
        seals_(MakeSeals(setup, *rendezvous_, secret)),
        setup_(std::move(setup)),
        peers_(setup_.peers),
        worker_(setup_.worker.get()),
        idle_polls_before_yield_(ChooseIdlePolls(peers_, rendezvous_->rank())),
        endpoints_(peers_.size()) {}

  ~Ucx() override { DoAbort(); }

  // Makes the endpoints; nothing is sent yet.
  absl::Status Connect() {
    for (int peer = 0; peer < world_size(); ++peer) {
      if (peer == rank()) continue;
      ucp_ep_params_t params = {};
      params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
      params.address =
          reinterpret_cast<const ucp_address_t*>(peers_[static_cast<size_t>(peer)].address.data());
      // UCX 1.13 cannot watch a peer through shared memory, and would not use it if asked to.
      const bool is_watched = !setup_.has_shared_memory || !IsOnThisMachine(peer);
      if (is_watched) WatchErrors(&params);
      const ucs_status_t status =
          ucp_ep_create(worker_, &params, &endpoints_[static_cast<size_t>(peer)].handle);
      if (status != UCS_OK) return UcxError(status, absl::StrCat("connecting to ", Describe(peer)));
      endpoints_[static_cast<size_t>(peer)].is_watched = is_watched;
    }
    return absl::OkStatus();
  }

  // All are connected: whoever comes now is no rank.
  void ShutDoor() const { setup_.door.Shut(); }

  Protection protection() const override { return setup_.protection; }
  SharedArea* shared_area() override { return setup_.area.get(); }

  std::string Describe(int peer) const override {
    return absl::StrFormat("rank %d (%s)", peer, peers_[static_cast<size_t>(peer)].text);
  }

 private:
  struct Endpoint {
    ucp_ep_h handle = nullptr;  // null for this rank, and once closed
    bool is_watched = false;    // UCX reports the peer's death; only then it may be closed by force
  };

  bool IsOnThisMachine(int peer) const {
    return peers_[static_cast<size_t>(peer)].machine == peers_[static_cast<size_t>(rank())].machine;
  }

  void WatchErrors(ucp_ep_params_t* params) {
    params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params->err_handler.cb = &Ucx::OnEndpointError;
    params->err_handler.arg = this;
  }

  static void OnEndpointError(void* self, ucp_ep_h endpoint, ucs_status_t status) {
    Ucx* const ucx = static_cast<Ucx*>(self);
    if (ucx->lost_.has_value()) return;
    for (int peer = 0; peer < ucx->world_size(); ++peer) {
      if (ucx->endpoints_[static_cast<size_t>(peer)].handle != endpoint) continue;
      ucx->lost_ = Lost{.peer = peer, .status = status};
    }
  }

  // The source in the upper half: messages from different ranks never match each other's receives.
  static ucp_tag_t WireTag(int source, Tag tag) {
    return static_cast<ucp_tag_t>(source) << 32 | tag;
  }

  Request DoStartSend(Envelope to, std::span<const std::byte> bytes) override {
    const int index = TakeSlot(Slot{.peer = to.peer});
    Slot& slot = slots_[static_cast<size_t>(index)];
    const ucp_ep_h endpoint = endpoints_[static_cast<size_t>(to.peer)].handle;
    const ucp_tag_t tag = WireTag(rank(), to.tag);
    ucp_request_param_t param = {};
    if (seals_ == nullptr) {
      slot.handle = ucp_tag_send_nbx(endpoint, bytes.data(), bytes.size(), tag, &param);
    } else {
      slot.parts.seal = seals_->Make(to, bytes);
      // UCX only reads it.
      const size_t count =
          Divide(const_cast<std::byte*>(bytes.data()), bytes.size(), &slot, &param);
      slot.handle = ucp_tag_send_nbx(endpoint, slot.parts.spans.data(), count, tag, &param);
    }
    if (slot.handle != nullptr) return Started(index);
    free_slots_.push_back(index);
    return Request{};
  }

  Request DoStartReceive(Envelope from, std::span<std::byte> bytes) override {
    const int index = TakeSlot(Slot{.target = bytes, .peer = from.peer, .is_receive = true});
    Slot& slot = slots_[static_cast<size_t>(index)];
    const ucp_tag_t tag = WireTag(from.peer, from.tag);
    ucp_request_param_t param = {};
    // UCX 1.13 does not tell the length of a message that completes within this call.
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    void* buffer = bytes.data();
    size_t count = bytes.size();
    if (seals_ != nullptr) {
      slot.number = seals_->NumberNext(from);
      count = Divide(bytes.data(), bytes.size(), &slot, &param);
      buffer = slot.parts.spans.data();
    }
    slot.handle = ucp_tag_recv_nbx(worker_, buffer, count, tag, ~ucp_tag_t{0}, &param);
    return Started(index);
  }

  // Describes a message and the seal behind it; returns the number of parts.
  static size_t Divide(std::byte* bytes, size_t size, Slot* slot, ucp_request_param_t* param) {
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param->datatype = ucp_dt_make_iov();
    std::array<ucp_dt_iov_t, 2>& spans = slot->parts.spans;
    size_t count = 0;
    if (size > 0) spans[count++] = {.buffer = bytes, .length = size};
    spans[count++] = {.buffer = slot->parts.seal.data(), .length = slot->parts.seal.size()};
    return count;
  }

  int TakeSlot(Slot slot) {
    if (!free_slots_.empty()) {
      const int index = free_slots_.back();
      free_slots_.pop_back();
      slots_[static_cast<size_t>(index)] = slot;
      return index;
    }
    CHECK(slots_.size() < kMaxRequests) << "requests=" << slots_.size();
    slots_.push_back(slot);
    return static_cast<int>(slots_.size()) - 1;
  }

  Request Started(int index) {
    Slot& slot = slots_[static_cast<size_t>(index)];
    if (UCS_PTR_IS_ERR(slot.handle)) {
      slot.status = UCS_PTR_STATUS(slot.handle);
      slot.handle = nullptr;
    }
    return Request{.slot = index};
  }

  // True once the request is complete; its outcome is in `slot`, its handle is released.
  static bool Test(Slot* slot) {
    if (slot->handle == nullptr) return true;
    const ucs_status_t status = slot->is_receive
                                    ? ucp_tag_recv_request_test(slot->handle, &slot->received)
                                    : ucp_request_check_status(slot->handle);
    if (status == UCS_INPROGRESS) return false;
    slot->status = status;
    ucp_request_free(slot->handle);
    slot->handle = nullptr;
    return true;
  }

  absl::Status DoWait(Request request, MonoTime deadline) override {
    Slot* const slot = &slots_[static_cast<size_t>(request.slot)];
    int poll_count = 0;
    int idle_count = 0;
    while (!Test(slot)) {
      idle_count = ucp_worker_progress(worker_) != 0 ? 0 : idle_count + 1;
      if (idle_count > idle_polls_before_yield_) sched_yield();
      if (++poll_count % kPollsPerCheck != 0) continue;
      RETURN_IF_ERROR(CheckPeers(slot->is_receive ? "has got no message from" : "could not send to",
                                 slot->peer, deadline));
    }
    free_slots_.push_back(request.slot);
    return Outcome(*slot);
  }

  absl::Status DoAwait(absl::FunctionRef<bool()> is_there, int peer, MonoTime deadline) override {
    for (int poll_count = 1;; ++poll_count) {
      for (int look = 0; look < kLooksPerPoll; ++look)
        if (is_there()) return absl::OkStatus();
      ucp_worker_progress(worker_);  // a peer may wait for a message before it does its part
      if (poll_count > idle_polls_before_yield_) sched_yield();
      if (poll_count % kPollsPerCheck == 0)
        RETURN_IF_ERROR(CheckPeers("waits in a reduction for", peer, deadline));
    }
  }

  absl::Status CheckPeers(absl::string_view what, int peer, MonoTime deadline) const {
    RETURN_IF_ERROR(Health());
    if (clock_->Mono() < deadline) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrFormat(
        "%s %s %s before the deadline: it hangs, is too slow, or is in another operation",
        Describe(rank()), what, Describe(peer)));
  }

  absl::Status Health() const {
    if (lost_.has_value()) {
      return UcxError(lost_->status, absl::StrCat("lost contact with ", Describe(lost_->peer)));
    }
    return rendezvous_->Health();
  }

  absl::Status Outcome(const Slot& slot) {
    const size_t expected = slot.target.size() + (seals_ == nullptr ? 0 : kSealBytes);
    const bool is_other_length =
        slot.is_receive && slot.status == UCS_OK && slot.received.length != expected;
    if (slot.status == UCS_ERR_MESSAGE_TRUNCATED || is_other_length) {
      const std::string what =
          absl::StrFormat("%s got a message of %d bytes where %d are expected from %s",
                          Describe(rank()), slot.received.length, expected, Describe(slot.peer));
      if (seals_ != nullptr)
        return NotFromRank(absl::StrCat(what, " (or the ranks disagree about the operation)"));
      return absl::DataLossError(
          absl::StrCat(what, ": the ranks disagree about the operation, or somebody else sends"));
    }
    if (slot.status != UCS_OK)
      return UcxError(slot.status, absl::StrCat("exchanging with ", Describe(slot.peer)));
    if (!slot.is_receive || seals_ == nullptr ||
        seals_->IsFrom(slot.peer, slot.number, slot.target, slot.parts.seal)) {
      return absl::OkStatus();
    }
    return NotFromRank(absl::StrFormat("%s got a message of %d bytes without the seal of %s",
                                       Describe(rank()), slot.target.size(), Describe(slot.peer)));
  }

  static absl::Status NotFromRank(absl::string_view what) {
    return absl::UnauthenticatedError(absl::StrCat(
        what, ": somebody who is no rank sends messages to the ranks; nothing was done with it"));
  }

  // Everyone keeps moving messages until everyone has delivered his; only then does anyone
  // disconnect. Without that a TCP peer sees a reset, or waits for somebody who is gone.
  absl::Status DoClose(MonoTime deadline) override {
    const ucp_request_param_t param = {};
    const ucs_status_ptr_t flush = ucp_worker_flush_nbx(worker_, &param);
    if (flush != nullptr)
      RETURN_IF_ERROR(DoWait(Started(TakeSlot(Slot{.handle = flush})), deadline));
    const auto progress = [this] { ucp_worker_progress(worker_); };
    RETURN_IF_ERROR(rendezvous_->Set(absl::StrCat("ucx/closed/", rank()), "", deadline));
    for (int peer = 0; peer < world_size(); ++peer) {
      const absl::StatusOr<std::string> closed =
          rendezvous_->Get(absl::StrCat("ucx/closed/", peer), deadline, progress);
      if (!closed.ok()) {
        return Annotate(closed.status(), absl::StrCat("waiting for ", Describe(peer), " to close"));
      }
    }
    ReportStrangers();
    CloseEndpoints(/*in_order=*/true);
    return rendezvous_->Leave(deadline);
  }

  // Every rank's messages have been received: what is left over came from nobody.
  void ReportStrangers() const {
    ucp_tag_recv_info_t info = {};
    if (ucp_tag_probe_nb(worker_, 0, 0, /*remove=*/0, &info) == nullptr) return;
    LOG(WARNING) << "somebody who is no rank sent messages to " << Describe(rank())
                 << ": they were not looked at";
  }

  // A watched endpoint is closed by force, which ends its sends too. Sends through shared memory
  // cannot be ended; they stay as they are, because only our polling would move them.
  void DoAbort() override {
    if (std::exchange(is_aborted_, true)) return;
    for (const Slot& slot : slots_) {
      if (slot.handle != nullptr && slot.is_receive) {
        ucp_request_cancel(worker_, slot.handle);
      }
    }
    CloseEndpoints(/*in_order=*/false);
    const MonoTime deadline = clock_->Mono() + kAbortPatience;
    for (Slot& slot : slots_) {
      if (!slot.is_receive && !endpoints_[static_cast<size_t>(slot.peer)].is_watched) continue;
      while (!Test(&slot) && clock_->Mono() < deadline)
        ucp_worker_progress(worker_);
    }
  }

  // Disconnects from every peer. Errors are the other side's disconnecting first, and no matter.
  void CloseEndpoints(bool in_order) {
    std::vector<ucs_status_ptr_t> closing;
    for (Endpoint& endpoint : endpoints_) {
      if (endpoint.handle == nullptr) continue;
      if (!in_order && !endpoint.is_watched) continue;  // ends with the worker
      ucp_request_param_t param = {};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = endpoint.is_watched ? UCP_EP_CLOSE_FLAG_FORCE : 0;
      closing.push_back(ucp_ep_close_nbx(endpoint.handle, &param));
      endpoint.handle = nullptr;
    }
    const MonoTime deadline = clock_->Mono() + kAbortPatience;
    for (const ucs_status_ptr_t handle : closing) {
      if (!UCS_PTR_IS_PTR(handle)) continue;
      while (ucp_request_check_status(handle) == UCS_INPROGRESS && clock_->Mono() < deadline) {
        ucp_worker_progress(worker_);
      }
      ucp_request_free(handle);
    }
  }

  struct Lost {
    int peer = 0;
    ucs_status_t status = UCS_OK;
  };

  const Clock* const clock_;
  const std::unique_ptr<Rendezvous> rendezvous_;
  const std::unique_ptr<MessageSeals> seals_;  // null where messages have none
  const UcxSetup setup_;
  const std::vector<UcxPeer>& peers_;  // of setup_
  const ucp_worker_h worker_;          // of setup_
  const int idle_polls_before_yield_;
  std::vector<Endpoint> endpoints_;  // by rank
  std::deque<Slot> slots_;           // never moved: UCX points into them
  std::vector<int> free_slots_;
  bool is_aborted_ = false;
  std::optional<Lost> lost_;  // the first peer that UCX reported
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> OpenUcx(std::unique_ptr<Rendezvous> rendezvous,
                                                    const UcxOptions& options, const Clock* clock,
                                                    MonoTime deadline) {
  ASSIGN_OR_RETURN(UcxSetup setup, SetUpUcx(rendezvous.get(), options, deadline));
  auto ucx = std::make_unique<Ucx>(std::move(rendezvous), std::move(setup), options.secret, clock);
  RETURN_IF_ERROR(ucx->Connect());
  // UCX connects with the first message: better to learn here than in the first step. Whoever has
  // passed the second barrier knows that all have passed the first: nobody connects any more.
  for (int i = 0; i < 2; ++i)
    RETURN_IF_ERROR(Annotate(Barrier(ucx.get(), deadline), "connecting the ranks"));
  ucx->ShutDoor();
  if (SharedArea* const area = ucx->shared_area(); area != nullptr)
    RETURN_IF_ERROR(ChooseStores(ucx.get(), area, *clock, deadline));
  return ucx;
}

}  // namespace assay::comm
