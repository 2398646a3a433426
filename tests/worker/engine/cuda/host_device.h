// A GPU faked on the CPU: kernels are loops over their elements, convolutions and matrix products
// follow the strides they are given. Recordings are lists of calls. Its two streams do what they
// are given at once or as late as possible. What runs aside runs as late as it may: when it is
// joined.

#ifndef TESTS_WORKER_ENGINE_CUDA_HOST_DEVICE_H_
#define TESTS_WORKER_ENGINE_CUDA_HOST_DEVICE_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/engine/cuda/host_ranks.h"
#include "tests/worker/engine/cuda/host_stream.h"
#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// One of those that the fake library proposes for every convolution; all do the same.
struct HostEngine {
  std::string identity;
  double microseconds = 10;  // that a timed call is said to take
  bool fails_timed = false;  // when it is run to be timed
  friend bool operator==(const HostEngine&, const HostEngine&) = default;
};

class HostDevice : public Device {
 public:
  // Best first by the library's opinion.
  void set_engines(std::vector<HostEngine> engines) { engines_ = std::move(engines); }
  // What it says it is.
  void set_model(std::string model) { model_ = std::move(model); }
  // As if no more than this were left to allocate; none: enough.
  void set_free_bytes(std::optional<size_t> bytes) { free_bytes_ = bytes; }
  // As if the library had no implementation for any convolution.
  void set_refuses_convolutions(bool refuses) { refuses_convolutions_ = refuses; }
  // As if it had none with an epilogue.
  void set_refuses_epilogues(bool refuses) { refuses_epilogues_ = refuses; }
  // Numbers the places of a window from behind.
  void set_turns_places(bool turns) { turns_places_ = turns; }
  // As if it had none in a lower precision than `most`.
  void set_most_precision(Precision most) { most_precision_ = most; }
  // As if no memory could be pinned, or no asynchronous copy begun.
  void set_refuses_pins(bool refuses) { refuses_pins_ = refuses; }
  void set_refuses_async_copies(bool refuses) { refuses_async_copies_ = refuses; }
  // Which of the streams is slow: what it is given happens when something waits for it.
  void set_late(bool calls, bool copies) {
    calls_.set_is_late(calls);
    copy_stream_.set_is_late(copies);
  }

  // As if no call could be recorded from this one of a recording on, or no recording be ended;
  // negative: all can.
  void set_first_unrecordable(int call) { first_unrecordable_ = call; }
  void set_refuses_graphs(bool refuses) { refuses_graphs_ = refuses; }

  std::string Describe() const override { return "the CPU"; }
  std::string Model() const override { return model_; }
  std::string Library() const override { return "loops 1"; }
  Fault Allocate(size_t bytes, void** memory) override;
  void Free(void* memory) override;
  Fault CopyIn(const void* host, void* memory, size_t bytes) override;
  Fault CopyOut(const void* memory, void* host, size_t bytes) override;
  Fault Wait() override;
  Fault CopyAsync(const void* host, void* memory, size_t bytes) override;
  Fault MakeCallsWaitForCopies() override;
  Fault MakeCopiesWaitForCalls() override;
  Fault WaitForCopies() override;
  Fault Pin(void* host, size_t bytes) override;
  Fault Unpin(void* host) override;
  Fault PlanConvolutions(const ConvolutionProblem& problem, const PlanOptions& options,
                         std::vector<std::unique_ptr<ConvolutionPlan>>* plans) override;
  Fault Issue(const Call& call) override;
  Fault IssueTimed(const Call& call, double* microseconds) override;
  Fault BeginGraph() override;
  Fault EndGraph(std::unique_ptr<Graph>* graph) override;
  // The ranks are threads of this process, each with a device of its own.
  Fault MakeRanksId(std::string* id) override;
  Fault JoinRanks(const JoinOptions& options) override;

  // As if the call so many issued ones from now failed; negative: none does.
  void set_fails_at(int call) { fails_at_ = call < 0 ? -1 : issued_ + call; }

  // What was asked of it so far.
  int issued() const { return issued_; }       // calls run at once
  int timed() const { return timed_; }         // of these, that were timed
  int graphs() const { return graphs_; }       // recordings ended
  int launches() const { return *launches_; }  // of recordings
  int updates() const { return *updates_; }    // of kernels in recordings
  int averages() const { return averages_; }   // run, in recordings or not
  int exchanges() const { return exchanges_; }
  int plans() const { return plans_; }  // of convolutions asked for
  int copies_in() const { return copies_in_; }
  int async_copies() const { return async_copies_; }
  size_t bytes_out() const { return bytes_out_; }  // copied to the host
  size_t pins() const { return pinned_.size(); }   // now

  // Runs calls behind those under way; for recordings.
  Fault Execute(std::vector<Call> calls);

 private:
  // An average that runs aside, and the values as they were when it was started.
  struct Aside {
    AverageCall call;
    std::vector<float> values;
  };

  Fault Run(const Call& call);
  Fault Average(const AverageCall& call);
  Fault Join();

  std::vector<HostEngine> engines_ = {{"engine=loop"}, {"engine=loop knobs=1:2", 20}};
  std::string model_ = "CPU";
  std::optional<size_t> free_bytes_;
  bool refuses_convolutions_ = false, refuses_epilogues_ = false, turns_places_ = false;
  bool refuses_pins_ = false, refuses_async_copies_ = false;
  Precision most_precision_ = Precision::kBfloat16;
  HostStream calls_, copy_stream_;
  std::set<void*> pinned_;
  int first_unrecordable_ = -1;
  bool refuses_graphs_ = false;
  int fails_at_ = -1;
  bool is_recording_ = false;
  std::vector<Call> recording_;
  int plans_ = 0;
  int timed_ = 0;
  int issued_ = 0, graphs_ = 0, averages_ = 0, exchanges_ = 0, copies_in_ = 0, async_copies_ = 0;
  size_t bytes_out_ = 0;
  std::unique_ptr<HostRanks> ranks_;  // null: alone
  std::vector<Aside> aside_;
  // Shared with the recordings.
  std::shared_ptr<int> launches_ = std::make_shared<int>(0);
  std::shared_ptr<int> updates_ = std::make_shared<int>(0);
};

}  // namespace assay::cuda

#endif  // TESTS_WORKER_ENGINE_CUDA_HOST_DEVICE_H_
