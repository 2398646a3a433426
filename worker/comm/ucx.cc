#include "worker/comm/ucx.h"

#include <sched.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/rendezvous.h"
#include "worker/comm/ring.h"

namespace assay::comm {
namespace {

// After this many polls without news the waiting rank offers its core to others at each poll: about
// 10 us, well above the latency of shared memory. At once, nearly, if the ranks outnumber the
// cores: then the awaited rank may be waiting for this very core.
constexpr int kIdlePollsBeforeYield = 200;
constexpr int kIdlePollsBeforeYieldWhenCrowded = 4;
// Reading the clock and the health of the peers costs about as much as a poll.
constexpr int kPollsPerCheck = 64;
// How long cancelled requests may take to end. A message that was arriving from a peer that died
// never does; only our own polling would move it, so it stays as it is.
constexpr absl::Duration kAbortPatience = absl::Milliseconds(100);

absl::Status UcxError(ucs_status_t status, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": UCX: ", ucs_status_string(status)));
}

struct ContextDeleter {
  void operator()(ucp_context_h context) const { ucp_cleanup(context); }
};
struct WorkerDeleter {
  void operator()(ucp_worker_h worker) const { ucp_worker_destroy(worker); }
};
struct ConfigDeleter {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using Context = std::unique_ptr<std::remove_pointer_t<ucp_context_h>, ContextDeleter>;
using Worker = std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, WorkerDeleter>;
using Config = std::unique_ptr<ucp_config_t, ConfigDeleter>;

// ---- Who the ranks are -------------------------------------------------------------------------

struct Peer {
  std::string machine;  // equal if the two can share memory
  std::string text;     // for messages: "node7, pid 4711"
};

// The running kernel and the namespaces that shared memory must have in common.
std::string MachineIdentity() {
  const absl::StatusOr<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id");
  std::string identity(absl::StripSuffix(boot.ok() ? *boot : std::string("?"), "\n"));
  for (const char* link : {"/proc/self/ns/ipc", "/proc/self/ns/pid", "/proc/self/ns/user"}) {
    std::array<char, 64> target = {};
    const ssize_t size = readlink(link, target.data(), target.size());
    if (size > 0) identity.append("/").append(target.data(), static_cast<size_t>(size));
  }
  return identity;
}

std::string OwnIntroduction() {
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return absl::StrFormat("%s\n%s, pid %d", MachineIdentity(), host.data(), getpid());
}

// Publishes this rank's value under `topic` and collects everybody's, in the order of the ranks.
absl::StatusOr<std::vector<std::string>> ExchangeAll(Rendezvous* rendezvous,
                                                     absl::string_view topic,
                                                     absl::string_view mine, MonoTime deadline) {
  RETURN_IF_ERROR(
      rendezvous->Set(absl::StrCat("ucx/", topic, "/", rendezvous->rank()), mine, deadline));
  std::vector<std::string> all;
  for (int rank = 0; rank < rendezvous->world_size(); ++rank) {
    absl::StatusOr<std::string> value =
        rendezvous->Get(absl::StrCat("ucx/", topic, "/", rank), deadline);
    if (!value.ok()) {
      return Annotate(value.status(), absl::StrFormat("waiting for rank %d to join", rank));
    }
    all.push_back(*std::move(value));
  }
  return all;
}

absl::StatusOr<std::vector<Peer>> Introduce(Rendezvous* rendezvous, MonoTime deadline) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ExchangeAll(rendezvous, "host", OwnIntroduction(), deadline));
  std::vector<Peer> peers;
  for (const std::string& introduction : all) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(introduction, absl::MaxSplits('\n', 1));
    peers.push_back(Peer{.machine = parts.first, .text = parts.second});
  }
  return peers;
}

bool ShareOneHost(const std::vector<Peer>& peers) {
  for (const Peer& peer : peers) {
    if (peer.machine != peers[0].machine) return false;
  }
  return true;
}

// How many polls to wait for news before giving way to other ranks of this machine.
int ChooseIdlePolls(const std::vector<Peer>& peers, int rank) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return kIdlePollsBeforeYield;
  int neighbours = 0;
  for (const Peer& peer : peers) {
    if (peer.machine == peers[static_cast<size_t>(rank)].machine) ++neighbours;
  }
  return neighbours > CPU_COUNT(&cores) ? kIdlePollsBeforeYieldWhenCrowded : kIdlePollsBeforeYield;
}

// ---- Set-up ------------------------------------------------------------------------------------

absl::Status SetDefault(ucp_config_t* config, const char* name, const std::string& value) {
  if (std::getenv(absl::StrCat("UCX_", name).c_str()) != nullptr) return absl::OkStatus();
  const ucs_status_t status = ucp_config_modify(config, name, value.c_str());
  if (status == UCS_OK) return absl::OkStatus();
  return UcxError(status, absl::StrCat("setting UCX_", name, "=", value));
}

// What UCX_TLS will be. An explicit choice wins, the environment before the options.
std::string TransportsFor(const UcxOptions& options, const std::vector<Peer>& peers) {
  const char* const environment = std::getenv("UCX_TLS");
  if (environment != nullptr) return environment;
  if (!options.transports.empty()) return options.transports;
  return ShareOneHost(peers) ? "posix,self" : "tcp,posix,self";
}

bool HasSharedMemory(absl::string_view transports) {
  for (const absl::string_view name : absl::StrSplit(transports, ',')) {
    if (name == "posix" || name == "sysv" || name == "shm" || name == "sm" || name == "mm" ||
        name == "all") {
      return true;
    }
  }
  return false;
}

absl::StatusOr<Config> Configure(const UcxOptions& options, const std::string& transports) {
  ucp_config_t* raw = nullptr;
  const ucs_status_t status = ucp_config_read(nullptr, nullptr, &raw);
  if (status != UCS_OK) return UcxError(status, "reading the UCX_* environment variables");
  Config config(raw);
  RETURN_IF_ERROR(SetDefault(config.get(), "TLS", transports));
  if (absl::StrContains(transports, "tcp")) {
    RETURN_IF_ERROR(SetDefault(config.get(), "RNDV_THRESH", options.tcp_rendezvous_threshold));
  }
  return config;
}

absl::StatusOr<Context> OpenContext(const UcxOptions& options, const std::string& transports,
                                    size_t world_size) {
  ASSIGN_OR_RETURN(const Config config, Configure(options, transports));
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG;
  params.estimated_num_eps = world_size;
  ucp_context_h context = nullptr;
  const ucs_status_t status = ucp_init(&params, config.get(), &context);
  if (status == UCS_OK) return Context(context);
  return absl::FailedPreconditionError(
      absl::StrCat("UCX cannot use any of the transports asked for (", ucs_status_string(status),
                   "); see UCX_TLS in the environment and ucx_info -d"));
}

absl::StatusOr<Worker> OpenWorker(ucp_context_h context) {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  const ucs_status_t status = ucp_worker_create(context, &params, &worker);
  if (status != UCS_OK) return UcxError(status, "making a UCX worker");
  return Worker(worker);
}

absl::StatusOr<std::string> WorkerAddress(ucp_worker_h worker) {
  ucp_address_t* address = nullptr;
  size_t size = 0;
  const ucs_status_t status = ucp_worker_get_address(worker, &address, &size);
  if (status != UCS_OK) return UcxError(status, "asking for this rank's UCX address");
  std::string bytes(reinterpret_cast<const char*>(address), size);
  ucp_worker_release_address(worker, address);
  return bytes;
}

// ---- The transport -----------------------------------------------------------------------------

// One request. UCX's handle is null once the request is complete.
struct Slot {
  ucs_status_ptr_t handle = nullptr;
  size_t expected_bytes = 0;
  ucp_tag_recv_info_t received = {};
  ucs_status_t status = UCS_OK;
  int peer = 0;
  bool is_receive = false;
};

class Ucx final : public Collective {
 public:
  Ucx(std::unique_ptr<Rendezvous> rendezvous, std::vector<Peer> peers, Context context,
      Worker worker, const Clock* clock)
      : Collective(rendezvous->rank(), rendezvous->world_size()),
        clock_(clock),
        peers_(std::move(peers)),
        rendezvous_(std::move(rendezvous)),
        context_(std::move(context)),
        worker_(std::move(worker)),
        idle_polls_before_yield_(ChooseIdlePolls(peers_, rendezvous_->rank())),
        endpoints_(peers_.size()) {}

  ~Ucx() override { DoAbort(); }

  // Makes the endpoints; nothing is sent yet.
  absl::Status Connect(const std::vector<std::string>& addresses, bool has_shared_memory) {
    for (int peer = 0; peer < world_size(); ++peer) {
      if (peer == rank()) continue;
      ucp_ep_params_t params = {};
      params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
      params.address =
          reinterpret_cast<const ucp_address_t*>(addresses[static_cast<size_t>(peer)].data());
      // UCX 1.13 cannot watch a peer through shared memory, and would not use it if asked to.
      const bool is_watched = !has_shared_memory || !IsOnThisMachine(peer);
      if (is_watched) WatchErrors(&params);
      const ucs_status_t status =
          ucp_ep_create(worker_.get(), &params, &endpoints_[static_cast<size_t>(peer)].handle);
      if (status != UCS_OK) return UcxError(status, absl::StrCat("connecting to ", Describe(peer)));
      endpoints_[static_cast<size_t>(peer)].is_watched = is_watched;
    }
    return absl::OkStatus();
  }

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
    ucp_request_param_t param = {};
    const ucs_status_ptr_t handle =
        ucp_tag_send_nbx(endpoints_[static_cast<size_t>(to.peer)].handle, bytes.data(),
                         bytes.size(), WireTag(rank(), to.tag), &param);
    if (handle == nullptr) return Request{};
    return Keep(Slot{.handle = handle, .peer = to.peer});
  }

  Request DoStartReceive(Envelope from, std::span<std::byte> bytes) override {
    Slot slot{.expected_bytes = bytes.size(), .peer = from.peer, .is_receive = true};
    ucp_request_param_t param = {};
    // UCX 1.13 does not tell the length of a message that completes within this call.
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    slot.handle = ucp_tag_recv_nbx(worker_.get(), bytes.data(), bytes.size(),
                                   WireTag(from.peer, from.tag), ~ucp_tag_t{0}, &param);
    return Keep(slot);
  }

  Request Keep(Slot slot) {
    if (UCS_PTR_IS_ERR(slot.handle)) {
      slot.status = UCS_PTR_STATUS(slot.handle);
      slot.handle = nullptr;
    }
    if (!free_slots_.empty()) {
      const int index = free_slots_.back();
      free_slots_.pop_back();
      slots_[static_cast<size_t>(index)] = slot;
      return Request{.slot = index};
    }
    CHECK(slots_.size() < kMaxRequests) << "requests=" << slots_.size();
    slots_.push_back(slot);
    return Request{.slot = static_cast<int>(slots_.size()) - 1};
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
      idle_count = ucp_worker_progress(worker_.get()) != 0 ? 0 : idle_count + 1;
      if (idle_count > idle_polls_before_yield_) sched_yield();
      if (++poll_count % kPollsPerCheck == 0) RETURN_IF_ERROR(CheckPeers(*slot, deadline));
    }
    free_slots_.push_back(request.slot);
    return Outcome(*slot);
  }

  absl::Status CheckPeers(const Slot& slot, MonoTime deadline) const {
    RETURN_IF_ERROR(Health());
    if (clock_->Mono() < deadline) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrFormat(
        "%s %s %s before the deadline: it hangs, is too slow, or is in another operation",
        Describe(rank()), slot.is_receive ? "has got no message from" : "could not send to",
        Describe(slot.peer)));
  }

  absl::Status Health() const {
    if (lost_.has_value()) {
      return UcxError(lost_->status, absl::StrCat("lost contact with ", Describe(lost_->peer)));
    }
    return rendezvous_->Health();
  }

  absl::Status Outcome(const Slot& slot) const {
    const bool is_other_length =
        slot.is_receive && slot.status == UCS_OK && slot.received.length != slot.expected_bytes;
    if (slot.status == UCS_ERR_MESSAGE_TRUNCATED || is_other_length) {
      return absl::DataLossError(absl::StrFormat(
          "%s got a message of %d bytes where %d are expected from %s: the ranks "
          "disagree about the operation",
          Describe(rank()), slot.received.length, slot.expected_bytes, Describe(slot.peer)));
    }
    if (slot.status == UCS_OK) return absl::OkStatus();
    return UcxError(slot.status, absl::StrCat("exchanging with ", Describe(slot.peer)));
  }

  // Everyone keeps moving messages until everyone has delivered his; only then does anyone
  // disconnect. Without that a TCP peer sees a reset, or waits for somebody who is gone.
  absl::Status DoClose(MonoTime deadline) override {
    const ucp_request_param_t param = {};
    const ucs_status_ptr_t flush = ucp_worker_flush_nbx(worker_.get(), &param);
    if (flush != nullptr) RETURN_IF_ERROR(DoWait(Keep(Slot{.handle = flush}), deadline));
    const auto progress = [this] { ucp_worker_progress(worker_.get()); };
    RETURN_IF_ERROR(rendezvous_->Set(absl::StrCat("ucx/closed/", rank()), "", deadline));
    for (int peer = 0; peer < world_size(); ++peer) {
      const absl::StatusOr<std::string> closed =
          rendezvous_->Get(absl::StrCat("ucx/closed/", peer), deadline, progress);
      if (!closed.ok()) {
        return Annotate(closed.status(), absl::StrCat("waiting for ", Describe(peer), " to close"));
      }
    }
    CloseEndpoints(/*in_order=*/true);
    return rendezvous_->Leave(deadline);
  }

  // A watched endpoint is closed by force, which ends its sends too. Sends through shared memory
  // cannot be ended; they stay as they are, because only our polling would move them.
  void DoAbort() override {
    if (std::exchange(is_aborted_, true)) return;
    for (const Slot& slot : slots_) {
      if (slot.handle != nullptr && slot.is_receive) {
        ucp_request_cancel(worker_.get(), slot.handle);
      }
    }
    CloseEndpoints(/*in_order=*/false);
    const MonoTime deadline = clock_->Mono() + kAbortPatience;
    for (Slot& slot : slots_) {
      if (!slot.is_receive && !endpoints_[static_cast<size_t>(slot.peer)].is_watched) continue;
      while (!Test(&slot) && clock_->Mono() < deadline)
        ucp_worker_progress(worker_.get());
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
        ucp_worker_progress(worker_.get());
      }
      ucp_request_free(handle);
    }
  }

  struct Lost {
    int peer = 0;
    ucs_status_t status = UCS_OK;
  };

  const Clock* const clock_;
  const std::vector<Peer> peers_;
  const std::unique_ptr<Rendezvous> rendezvous_;
  const Context context_;
  const Worker worker_;
  const int idle_polls_before_yield_;
  std::vector<Endpoint> endpoints_;  // by rank
  std::vector<Slot> slots_;
  std::vector<int> free_slots_;
  bool is_aborted_ = false;
  std::optional<Lost> lost_;  // the first peer that UCX reported
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> OpenUcx(std::unique_ptr<Rendezvous> rendezvous,
                                                    const UcxOptions& options, const Clock* clock,
                                                    MonoTime deadline) {
  ASSIGN_OR_RETURN(std::vector<Peer> peers, Introduce(rendezvous.get(), deadline));
  const std::string transports = TransportsFor(options, peers);
  ASSIGN_OR_RETURN(Context context, OpenContext(options, transports, peers.size()));
  ASSIGN_OR_RETURN(Worker worker, OpenWorker(context.get()));
  ASSIGN_OR_RETURN(const std::string address, WorkerAddress(worker.get()));
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                   ExchangeAll(rendezvous.get(), "address", address, deadline));
  auto ucx = std::make_unique<Ucx>(std::move(rendezvous), std::move(peers), std::move(context),
                                   std::move(worker), clock);
  RETURN_IF_ERROR(ucx->Connect(addresses, HasSharedMemory(transports)));
  // UCX connects with the first message: better to learn here than in the first step.
  RETURN_IF_ERROR(Annotate(Barrier(ucx.get(), deadline), "connecting the ranks"));
  return ucx;
}

}  // namespace assay::comm
