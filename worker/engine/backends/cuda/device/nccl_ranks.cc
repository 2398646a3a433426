#include "worker/engine/backends/cuda/device/nccl_ranks.h"

#include "worker/engine/backends/cuda/device/cuda_fault.h"

#ifdef ASSAY_HAS_NCCL

#include <dlfcn.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace assay::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kLibrary[] = "libnccl.so.2";
// How often a communicator is asked: NCCL has no event for it. What it does meanwhile takes tens of
// microseconds at least.
constexpr std::chrono::microseconds kPollInterval{20};
// For the others to be done too when a communicator is taken down in peace.
constexpr std::chrono::seconds kFinalizeTimeout{10};

// The functions that we use, with the types of NCCL's header.
struct Functions {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  decltype(&ncclGetUniqueId) get_unique_id = Find<decltype(&ncclGetUniqueId)>("ncclGetUniqueId");
  decltype(&ncclCommInitRankConfig) init =
      Find<decltype(&ncclCommInitRankConfig)>("ncclCommInitRankConfig");
  decltype(&ncclCommSplit) split = Find<decltype(&ncclCommSplit)>("ncclCommSplit");
  decltype(&ncclAllReduce) all_reduce = Find<decltype(&ncclAllReduce)>("ncclAllReduce");
  decltype(&ncclSend) send = Find<decltype(&ncclSend)>("ncclSend");
  decltype(&ncclRecv) receive = Find<decltype(&ncclRecv)>("ncclRecv");
  decltype(&ncclGroupStart) group_start = Find<decltype(&ncclGroupStart)>("ncclGroupStart");
  decltype(&ncclGroupEnd) group_end = Find<decltype(&ncclGroupEnd)>("ncclGroupEnd");
  decltype(&ncclCommGetAsyncError) async_error =
      Find<decltype(&ncclCommGetAsyncError)>("ncclCommGetAsyncError");
  decltype(&ncclCommAbort) abort = Find<decltype(&ncclCommAbort)>("ncclCommAbort");
  decltype(&ncclCommFinalize) finalize = Find<decltype(&ncclCommFinalize)>("ncclCommFinalize");
  decltype(&ncclCommDestroy) destroy = Find<decltype(&ncclCommDestroy)>("ncclCommDestroy");
  decltype(&ncclGetErrorString) error_string =
      Find<decltype(&ncclGetErrorString)>("ncclGetErrorString");
  decltype(&ncclGetLastError) last_error = Find<decltype(&ncclGetLastError)>("ncclGetLastError");

  bool is_complete() const {
    return get_unique_id != nullptr && init != nullptr && split != nullptr &&
           all_reduce != nullptr && send != nullptr && receive != nullptr &&
           group_start != nullptr && group_end != nullptr && async_error != nullptr &&
           abort != nullptr && finalize != nullptr && destroy != nullptr &&
           error_string != nullptr && last_error != nullptr;
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
  }
};

const Functions& Nccl() {
  static const Functions functions;
  return functions;
}

Fault CheckLoaded() {
  if (Nccl().is_complete()) return {};
  if (Nccl().library != nullptr)
    return {.kind = FaultKind::kAbsent,
            .text = std::string(kLibrary) + " is older than NCCL 2.18; install a newer one"};
  return {.kind = FaultKind::kAbsent,
          .text = std::string("cannot load ") + kLibrary +
                  "; install NCCL 2.18 or newer or add its folder to LD_LIBRARY_PATH"};
}

// `communicator` may be null.
Fault FaultOfNccl(const std::string& what, ncclResult_t result, ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress) return {};
  std::string text = what + ": NCCL: " + Nccl().error_string(result);
  const char* const detail = Nccl().last_error(communicator);
  if (detail != nullptr && *detail != '\0') text += std::string(": ") + detail;
  return {.kind = FaultKind::kFailed, .text = text};
}

std::string Seconds(std::chrono::milliseconds timeout) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) + " s";
}

// One communicator, until it is taken down.
class Communicator {
 public:
  Communicator() = default;
  ~Communicator() { Close(); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  bool is_open() const { return handle() != nullptr; }
  ncclComm_t handle() const { return handle_.load(std::memory_order_acquire); }
  // Where NCCL puts the communicator that it makes, possibly later, on its own thread.
  ncclComm_t* place() {
    static_assert(sizeof(handle_) == sizeof(ncclComm_t));
    return reinterpret_cast<ncclComm_t*>(&handle_);
  }

  // What the communicator is at: ncclInProgress until the last call's work is with the device.
  ncclResult_t State() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = Nccl().async_error(handle(), &state);
    return asked == ncclSuccess ? state : asked;
  }

  // ncclInProgress only if it still was at the deadline, or was not there yet.
  ncclResult_t Settle(Clock::time_point deadline) const {
    const auto ask = [this] { return is_open() ? State() : ncclInProgress; };
    ncclResult_t state = ask();
    while (state == ncclInProgress && Clock::now() < deadline) {
      std::this_thread::sleep_for(kPollInterval);
      state = ask();
    }
    return state;
  }

  // NCCL's thread, which abort waits for, may write the handle once more at its end.
  void Abort() {
    if (!is_open()) return;
    Nccl().abort(handle());
    handle_.store(nullptr);
  }

 private:
  // All ranks come by here at the end of a run; one that does not is not waited for for long.
  void Close() {
    if (!is_open()) return;
    const ncclResult_t begun = Nccl().finalize(handle());
    const bool is_begun = begun == ncclSuccess || begun == ncclInProgress;
    if (!is_begun || Settle(Clock::now() + kFinalizeTimeout) != ncclSuccess) return Abort();
    Nccl().destroy(handle_.exchange(nullptr));
  }

  std::atomic<ncclComm_t> handle_ = nullptr;
};

ncclConfig_t NonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

class NcclRun : public NcclRanks {
 public:
  explicit NcclRun(const JoinOptions& options) : options_(options) {}

  Fault Join() {
    const Clock::time_point deadline = Clock::now() + options_.timeout;
    ncclUniqueId id = {};
    if (options_.id.size() != sizeof(id.internal))
      return {.kind = FaultKind::kFailed, .text = "an id of another version of NCCL"};
    std::memcpy(id.internal, options_.id.data(), options_.id.size());
    ncclConfig_t config = NonBlocking();
    ncclResult_t result = Nccl().init(all_.place(), options_.size, id, options_.rank, &config);
    if (IsFine(result)) result = all_.Settle(deadline);
    if (result == ncclInProgress) return GiveUp(Late());
    Fault fault = FaultOfNccl(Self() + " cannot join", result, all_.handle());
    if (!fault.ok()) return GiveUp(fault);
    return options_.group_size > 1 ? JoinGroup(deadline) : Fault{};
  }

  Fault Average(const AverageCall& call, cudaStream_t stream) override {
    const Communicator& ranks = call.in_group ? group_ : all_;
    if (!ranks.is_open())
      return {.kind = FaultKind::kFailed, .text = "an average over a group that was not joined"};
    const ncclResult_t result =
        Nccl().all_reduce(call.values, call.values, static_cast<size_t>(call.count), ncclFloat32,
                          ncclAvg, ranks.handle(), stream);
    return Started("average over ranks", result, ranks);
  }

  Fault Exchange(const ExchangeCall& call, cudaStream_t stream) override {
    ncclResult_t result = Nccl().group_start();
    if (result != ncclSuccess) return FaultOfNccl("exchange with ranks", result, all_.handle());
    for (const ExchangeCall::Message& message : call.messages) {
      if (message.sent_count > 0 && IsFine(result))
        result = Nccl().send(message.sent, static_cast<size_t>(message.sent_count), ncclFloat32,
                             message.rank, all_.handle(), stream);
      if (message.received_count > 0 && IsFine(result))
        result = Nccl().receive(message.received, static_cast<size_t>(message.received_count),
                                ncclFloat32, message.rank, all_.handle(), stream);
    }
    // Ended in any case, or this thread's later calls would join the group.
    const ncclResult_t ended = Nccl().group_end();
    return Started("exchange with ranks", IsFine(result) ? ended : result, all_);
  }

  Fault Health() override {
    for (const Communicator* ranks : {&all_, &group_}) {
      if (!ranks->is_open()) continue;
      Fault fault = FaultOfNccl(Self(), ranks->State(), ranks->handle());
      if (!fault.ok()) return fault;
    }
    return {};
  }

  // The group's twice: its parent may have been at work on it.
  void Abort() override {
    group_.Abort();
    all_.Abort();
    group_.Abort();
  }

 private:
  static bool IsFine(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
  }

  // As "rank 3 of 8".
  std::string Self() const {
    return "rank " + std::to_string(options_.rank) + " of " + std::to_string(options_.size);
  }

  Fault Late() const {
    return {
        .kind = FaultKind::kFailed,
        .text = Self() + " has waited " + Seconds(options_.timeout) +
                " for the GPUs of all ranks to join NCCL; look in the other ranks' logs for one "
                "that ended or hangs, check that the nodes reach each other on the interface "
                "of NCCL_SOCKET_IFNAME, and set NCCL_DEBUG=INFO to see how far each has come"};
  }

  Fault GiveUp(Fault fault) {
    Abort();
    return fault;
  }

  // The consecutive ranks of this one's group become a communicator of their own.
  Fault JoinGroup(Clock::time_point deadline) {
    ncclConfig_t config = NonBlocking();
    ncclResult_t result = Nccl().split(all_.handle(), options_.rank / options_.group_size,
                                       options_.rank, group_.place(), &config);
    // NCCL works on the parent; the new one may be there only when that is done, or a little later.
    if (IsFine(result)) result = all_.Settle(deadline);
    if (result == ncclSuccess) result = group_.Settle(deadline);
    if (result == ncclInProgress) return GiveUp(Late());
    Fault fault = FaultOfNccl(Self() + " cannot join its group", result, all_.handle());
    return fault.ok() ? fault : GiveUp(fault);
  }

  // After a call with this result: waits until its kernels are on the stream, or in its recording.
  Fault Started(const char* what, ncclResult_t result, const Communicator& ranks) {
    if (result == ncclInProgress) result = ranks.Settle(Clock::now() + options_.timeout);
    if (result == ncclInProgress) {
      Abort();
      return {.kind = FaultKind::kFailed,
              .text = std::string(what) + ": " + Self() + " has waited " +
                      Seconds(options_.timeout) + " for the other ranks to take part"};
    }
    return FaultOfNccl(what, result, ranks.handle());
  }

  const JoinOptions options_;
  Communicator all_;
  Communicator group_;  // not open without groups; taken down before its parent
};

}  // namespace

Fault NcclRanks::MakeId(std::string* id) {
  Fault fault = CheckLoaded();
  if (!fault.ok()) return fault;
  ncclUniqueId made = {};
  fault = FaultOfNccl("make an id for the ranks", Nccl().get_unique_id(&made), nullptr);
  if (fault.ok()) id->assign(made.internal, sizeof(made.internal));
  return fault;
}

Fault NcclRanks::Join(const JoinOptions& options, std::unique_ptr<NcclRanks>* ranks) {
  Fault fault = CheckLoaded();
  if (!fault.ok()) return fault;
  auto run = std::make_unique<NcclRun>(options);
  fault = run->Join();
  if (fault.ok()) *ranks = std::move(run);
  return fault;
}

}  // namespace assay::cuda

#else

namespace assay::cuda {

Fault NcclRanks::MakeId(std::string*) {
  return {.kind = FaultKind::kAbsent, .text = "this build was made without NCCL's header"};
}

Fault NcclRanks::Join(const JoinOptions&, std::unique_ptr<NcclRanks>*) {
  return {.kind = FaultKind::kAbsent, .text = "this build was made without NCCL's header"};
}

}  // namespace assay::cuda

#endif
