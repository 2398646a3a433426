#include "worker/engine/backends/cuda/call_trace.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "worker/engine/backends/cuda/call_text.h"

namespace assay::cuda {
namespace {

// Work in a millionth of a `unit` per microsecond, "-" where there is none.
std::string Rate(double work, double microseconds, double unit) {
  if (work == 0 || microseconds <= 0) return "-";
  return absl::StrFormat("%.1f", work / microseconds * 1e6 / unit);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CallTrace>> CallTrace::Open(const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  if (!file)
    return absl::InvalidArgumentError(absl::StrCat("cannot write the trace of calls to ", path,
                                                   ": ", strerror(errno), "; name another file"));
  file << "section\trun\tmicroseconds\tGB/s\tTFLOP/s\tcall" << std::endl;
  return std::unique_ptr<CallTrace>(new CallTrace(std::move(file)));
}

void CallTrace::Begin(int section) {
  section_ = section;
  ++runs_[section];
}

void CallTrace::Add(const Call& call, double microseconds) {
  const CallWork work = WorkOf(call);
  const int64_t run = section_ < 0 ? 0 : runs_[section_] - 1;
  file_ << section_ << "\t" << run << "\t" << absl::StrFormat("%.1f", microseconds) << "\t"
        << Rate(work.bytes, microseconds, 1e9) << "\t" << Rate(work.flops, microseconds, 1e12)
        << "\t" << TextOf(call) << std::endl;
}

}  // namespace assay::cuda
