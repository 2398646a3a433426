// assay-train: one rank of one run. Its only argument is the run spec; it knows no server.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/libraries.h"
#include "worker/engine/backends/cuda/plugin.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/matrix_rate.h"
#include "worker/trainer/all_reduce_times.h"
#include "worker/trainer/fabric.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/loop.h"
#include "worker/trainer/spec.h"

namespace assay {
namespace {

constexpr char kAllReduce[] = "--all_reduce=";
constexpr char kGpuAllReduce[] = "--gpu_all_reduce=";

constexpr char kUsage[] =
    R"(Usage: assay-train RUN_SPEC     run one rank; RUN_SPEC is a text proto (assay.v1.RunSpec)
       assay-train --resume RUN_SPEC
                                go on from the run's last checkpoint (written every
                                checkpoint_interval_steps beside the log), to the same bits
       assay-train [--call_by_call] [--trace_calls=FILE] [--resume] RUN_SPEC
                                look for a fault on a GPU: nothing is recorded and replayed, so
                                that a fault is of the call that reports it; and each call is
                                written to FILE with shape, time, GB/s and TFLOP/s
       assay-train --fused_blocks [--resume] RUN_SPEC
                                on a GPU in bfloat16: convolution, activation and pooling by one
                                call of cuDNN, where it offers that and a trial agrees
       assay-train --check_numbers [--resume] RUN_SPEC
                                look at every number that a layer leaves: the first that is not
                                finite ends the run and is named; many times slower
       assay-train --first_engines [--resume] RUN_SPEC
                                compute each convolution on a GPU as cuDNN proposes first; else
                                its proposals are timed before run_start and the quickest taken,
                                or those that engine_choices_path of RUN_SPEC names
       assay-train --backends   print the compute backends that work here, best first; to stderr
                                why the others do not, and what libraries a GPU's lack
       assay-train --matrix_product=SECONDS
                                multiply matrices for so long, print GFLOP/s (fp32)
       assay-train --all_reduce=BYTES,... SPEC
                                sum vectors of these sizes with the other ranks of SPEC, an
                                assay.v1.FabricSpec; rank 0 prints each size and its median time
                                in microseconds
       assay-train --gpu_all_reduce=BYTES,... SPEC
                                the same on GPUs: each rank averages in the memory of the GPU
                                with its number, by NCCL
       assay-train --gpus       print how many GPUs there are for backend cuda
       assay-train --fabric SPEC OUTPUT
                                measure, with the other nodes of a gang, how fast they reach each
                                other; SPEC and OUTPUT are an assay.v1.FabricSpec and FabricReport
       assay-train --version    print the version
       assay-train --help       print this

The agent (assay-worker) starts this program and reads its exit code:
)";

std::atomic<bool> stop_requested{false};

void OnStopSignal(int) {
  stop_requested.store(true, std::memory_order_relaxed);
}

void PrintUsage(std::ostream& out) {
  out << kUsage;
  for (const ExitCode code :
       {ExitCode::kOk, ExitCode::kInternal, ExitCode::kBadSpec, ExitCode::kBadData,
        ExitCode::kCommLost, ExitCode::kBackend, ExitCode::kOutOfMemory, ExitCode::kNumeric,
        ExitCode::kDisk, ExitCode::kTerminated, ExitCode::kIntruder, ExitCode::kDiverged}) {
    out << "  " << static_cast<int>(code) << "  " << Describe(code) << "\n";
  }
}

// Ends without running destructors: with a peer gone, an orderly end of the communicator would wait
// for it.
[[noreturn]] void Leave(const absl::Status& status) {
  LOG(ERROR) << "exit=" << static_cast<int>(ExitCodeOf(status)) << " status=" << Quoted(status);
  _exit(static_cast<int>(ExitCodeOf(status)));
}

// What a node's pre-flight asks (worker/agent/preflight).
int PrintMatrixRate(absl::string_view seconds) {
  double duration_s = 0;
  if (!absl::SimpleAtod(seconds, &duration_s) || !(duration_s >= 0) || duration_s > 60) {
    std::cerr << "--matrix_product: expected 0 to 60 seconds, found " << seconds << "\n";
    return static_cast<int>(ExitCode::kBadSpec);
  }
  const RealClock clock;
  const MatrixRate rate = MeasureMatrixRate(absl::Seconds(duration_s), &clock);
  std::cout << absl::StrFormat("%.1f\n", rate.flops_per_s / 1e9);
  return 0;
}

// As above, of all nodes of a gang. What goes wrong with the others stands in the report.
int WriteFabricReport(const std::string& spec_path, const std::string& output_path) {
  v1::FabricSpec spec;
  const absl::StatusOr<std::string> text = ReadFile(spec_path);
  if (!text.ok() || !spec.ParseFromString(*text)) {
    std::cerr << "--fabric: " << spec_path << " is no assay.v1.FabricSpec\n";
    return static_cast<int>(ExitCode::kBadSpec);
  }
  const RealClock clock;
  const v1::FabricReport report = MeasureFabric(spec, {}, &clock);
  const absl::Status status = WriteFileAtomic(output_path, report.SerializeAsString());
  if (status.ok()) return 0;
  std::cerr << "--fabric: " << status.message() << "\n";
  return static_cast<int>(ExitCode::kDisk);
}

absl::StatusOr<std::vector<AllReduceTime>> MeasureOnGpu(const v1::FabricSpec& spec,
                                                        const std::vector<int64_t>& sizes,
                                                        const Clock* clock) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                   WithExitCode(MakeBackend("cuda", {.device = spec.rank()}), ExitCode::kBackend));
  return MeasureDeviceAverages(spec, sizes, backend.get(), clock);
}

// `measure`: MeasureAllReduces or MeasureOnGpu. 0 or the exit code of what was wrong.
template <typename F>
int PrintAllReduceTimes(absl::string_view sizes_text, const std::string& spec_path,
                        const F& measure) {
  std::vector<int64_t> sizes;
  for (const absl::string_view word : absl::StrSplit(sizes_text, ',')) {
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(word, &bytes) || bytes < 4 || bytes % 4 != 0) {
      std::cerr << "--all_reduce: expected multiples of 4 bytes, found " << word << "\n";
      return static_cast<int>(ExitCode::kBadSpec);
    }
    sizes.push_back(bytes);
  }
  v1::FabricSpec spec;
  const absl::StatusOr<std::string> text = ReadFile(spec_path);
  if (!text.ok() || !spec.ParseFromString(*text)) {
    std::cerr << "--all_reduce: " << spec_path << " is no assay.v1.FabricSpec\n";
    return static_cast<int>(ExitCode::kBadSpec);
  }
  const RealClock clock;
  const absl::StatusOr<std::vector<AllReduceTime>> times =
      WithExitCode(measure(spec, sizes, &clock), ExitCode::kCommLost);
  if (!times.ok()) {
    std::cerr << times.status().message() << "\n";
    return static_cast<int>(ExitCodeOf(times.status()));
  }
  if (spec.rank() > 0) return 0;
  for (const AllReduceTime& time : *times)
    std::cout << absl::StrFormat("%d %.3f\n", time.bytes, time.median_us);
  return 0;
}

// The agent reads standard output, people both.
int PrintBackends() {
  std::vector<std::string> refusals;
  const std::vector<std::string> names = UsableBackendNames(&refusals);
  for (const std::string& name : names)
    std::cout << name << "\n";
  const auto is_of_gpu = [](const std::string& name) { return absl::StartsWith(name, "cuda"); };
  if (std::any_of(names.begin(), names.end(), is_of_gpu))
    for (const std::string& missing : cuda::MissingLibraries(cuda::LateLibraries()))
      refusals.push_back(missing);
  for (const std::string& refusal : refusals)
    std::cerr << refusal << "\n";
  return 0;
}

int PrintGpuCount() {
  const absl::StatusOr<int> count = cuda::CountDevices();
  if (count.ok()) {
    std::cout << *count << "\n";
    return 0;
  }
  std::cerr << count.status().message() << "\n";
  return static_cast<int>(ExitCode::kBackend);
}

// Takes what is about diagnosis from the front of the arguments.
Diagnosis TakeDiagnosis(std::vector<std::string>* arguments) {
  Diagnosis diagnosis;
  for (; !arguments->empty(); arguments->erase(arguments->begin())) {
    absl::string_view first = arguments->front();
    if (first == "--call_by_call") {
      diagnosis.is_call_by_call = true;
    } else if (first == "--fused_blocks") {
      diagnosis.fuses_blocks = true;
    } else if (first == "--check_numbers") {
      diagnosis.checks_numbers = true;
    } else if (first == "--first_engines") {
      diagnosis.first_engines = true;
    } else if (absl::ConsumePrefix(&first, "--trace_calls=")) {
      diagnosis.trace_path = std::string(first);
    } else {
      break;
    }
  }
  return diagnosis;
}

absl::StatusOr<TrainerSpec> LoadSpec(const std::string& path, bool is_resumed,
                                     const Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(TrainerSpec spec, LoadTrainerSpec(path));
  spec.diagnosis = diagnosis;
  if (is_resumed) RETURN_IF_ERROR(Resume(&spec));
  return spec;
}

int Main(std::vector<std::string> arguments) {
  const Diagnosis diagnosis = TakeDiagnosis(&arguments);
  const bool is_resumed = arguments.size() == 2 && arguments[0] == "--resume";
  if (is_resumed) arguments.erase(arguments.begin());
  std::signal(SIGPIPE, SIG_IGN);
  if (arguments.size() == 2 && absl::StartsWith(arguments[0], kAllReduce))
    return PrintAllReduceTimes(absl::StripPrefix(arguments[0], kAllReduce), arguments[1],
                               MeasureAllReduces);
  if (arguments.size() == 2 && absl::StartsWith(arguments[0], kGpuAllReduce))
    return PrintAllReduceTimes(absl::StripPrefix(arguments[0], kGpuAllReduce), arguments[1],
                               MeasureOnGpu);
  if (arguments.size() == 3 && arguments[0] == "--fabric")
    return WriteFabricReport(arguments[1], arguments[2]);
  if (arguments.size() != 1 || arguments[0] == "--help") {
    const bool is_asked = arguments.size() == 1;
    PrintUsage(is_asked ? std::cout : std::cerr);
    return static_cast<int>(is_asked ? ExitCode::kOk : ExitCode::kBadSpec);
  }
  if (arguments[0] == "--version") {
    std::cout << "assay-train " ASSAY_VERSION "\n";
    return 0;
  }
  if (arguments[0] == "--backends") return PrintBackends();
  if (arguments[0] == "--gpus") return PrintGpuCount();
  if (absl::string_view seconds = arguments[0]; absl::ConsumePrefix(&seconds, "--matrix_product="))
    return PrintMatrixRate(seconds);
  std::signal(SIGTERM, OnStopSignal);
  std::signal(SIGINT, OnStopSignal);
  const absl::StatusOr<TrainerSpec> spec =
      WithExitCode(LoadSpec(arguments[0], is_resumed, diagnosis), ExitCode::kBadSpec);
  if (!spec.ok()) Leave(spec.status());
  const RealClock clock;
  TrainingLoop loop(*spec, &clock, &stop_requested);
  const absl::Status status = loop.Run();
  if (!status.ok()) Leave(status);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  return assay::Main(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}
