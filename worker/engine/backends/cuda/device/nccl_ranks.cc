#include "worker/engine/backends/cuda/device/nccl_ranks.h"

#include "worker/engine/backends/cuda/device/cuda_fault.h"

#ifdef ASSAY_HAS_NCCL

#include <dlfcn.h>
#include <nccl.h>

#include <cstring>

namespace assay::cuda {
namespace {

constexpr char kLibrary[] = "libnccl.so.2";

// The functions that we use, with the types of NCCL's header.
struct Functions {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  decltype(&ncclGetUniqueId) get_unique_id = Find<decltype(&ncclGetUniqueId)>("ncclGetUniqueId");
  decltype(&ncclCommInitRank) init = Find<decltype(&ncclCommInitRank)>("ncclCommInitRank");
  decltype(&ncclAllReduce) all_reduce = Find<decltype(&ncclAllReduce)>("ncclAllReduce");
  decltype(&ncclCommGetAsyncError) async_error =
      Find<decltype(&ncclCommGetAsyncError)>("ncclCommGetAsyncError");
  decltype(&ncclCommAbort) abort = Find<decltype(&ncclCommAbort)>("ncclCommAbort");
  decltype(&ncclCommDestroy) destroy = Find<decltype(&ncclCommDestroy)>("ncclCommDestroy");
  decltype(&ncclGetErrorString) error_string =
      Find<decltype(&ncclGetErrorString)>("ncclGetErrorString");

  bool is_complete() const {
    return get_unique_id != nullptr && init != nullptr && all_reduce != nullptr &&
           async_error != nullptr && abort != nullptr && destroy != nullptr &&
           error_string != nullptr;
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
  return {.kind = FaultKind::kAbsent,
          .text = std::string("cannot load ") + kLibrary +
                  "; install NCCL 2 or add its folder to LD_LIBRARY_PATH"};
}

Fault FaultOfNccl(const char* what, ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return {};
  return {.kind = FaultKind::kFailed,
          .text = std::string(what) + ": NCCL: " + Nccl().error_string(result)};
}

class NcclGroup : public NcclRanks {
 public:
  explicit NcclGroup(ncclComm_t communicator) : communicator_(communicator) {}
  ~NcclGroup() override {
    if (communicator_ != nullptr) Nccl().destroy(communicator_);
  }

  Fault Average(const AverageCall& call, cudaStream_t stream) override {
    return FaultOfNccl("average over ranks",
                       Nccl().all_reduce(call.values, call.values, static_cast<size_t>(call.count),
                                         ncclFloat32, ncclAvg, communicator_, stream));
  }

  Fault Health() override {
    ncclResult_t result = ncclSuccess;
    const ncclResult_t asked = Nccl().async_error(communicator_, &result);
    return FaultOfNccl("ranks", asked == ncclSuccess ? result : asked);
  }

  void Abort() override {
    Nccl().abort(communicator_);
    communicator_ = nullptr;
  }

 private:
  ncclComm_t communicator_;
};

}  // namespace

Fault NcclRanks::MakeId(std::string* id) {
  Fault fault = CheckLoaded();
  if (!fault.ok()) return fault;
  ncclUniqueId made = {};
  fault = FaultOfNccl("make an id for the ranks", Nccl().get_unique_id(&made));
  if (fault.ok()) id->assign(made.internal, sizeof(made.internal));
  return fault;
}

Fault NcclRanks::Join(const std::string& id, int rank, int size,
                      std::unique_ptr<NcclRanks>* ranks) {
  Fault fault = CheckLoaded();
  if (!fault.ok()) return fault;
  ncclUniqueId given = {};
  if (id.size() != sizeof(given.internal))
    return {.kind = FaultKind::kFailed, .text = "an id of another version of NCCL"};
  std::memcpy(given.internal, id.data(), id.size());
  ncclComm_t communicator = nullptr;
  fault = FaultOfNccl("join the ranks", Nccl().init(&communicator, size, given, rank));
  if (fault.ok()) *ranks = std::make_unique<NcclGroup>(communicator);
  return fault;
}

}  // namespace assay::cuda

#else

namespace assay::cuda {

Fault NcclRanks::MakeId(std::string*) {
  return {.kind = FaultKind::kAbsent, .text = "this build was made without NCCL's header"};
}

Fault NcclRanks::Join(const std::string&, int, int, std::unique_ptr<NcclRanks>*) {
  return {.kind = FaultKind::kAbsent, .text = "this build was made without NCCL's header"};
}

}  // namespace assay::cuda

#endif
