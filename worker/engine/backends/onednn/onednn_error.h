// The only place where oneDNN's exceptions are caught.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_ERROR_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_ERROR_H_

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/exit_code.h"
#include "common/log.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

// Runs `body`; used while a model is built. INVALID_ARGUMENT: oneDNN has no implementation;
// RESOURCE_EXHAUSTED: no memory; INTERNAL: anything else.
template <typename Body>
absl::Status CatchOnednn(absl::string_view what, Body body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    const std::string message = absl::StrCat("oneDNN: ", what, ": ", error.what());
    if (error.status == dnnl_unimplemented) return absl::InvalidArgumentError(message);
    if (error.status == dnnl_out_of_memory) return absl::ResourceExhaustedError(message);
    return absl::InternalError(message);
  }
}

// Runs `body`; used during a step, where nothing can be repaired: an error ends the process with
// ExitCode::kBackend.
template <typename Body>
void MustOnednn(absl::string_view what, Body body) {
  const absl::Status status = CatchOnednn(what, body);
  if (status.ok()) return;
  LOG(ERROR) << "backend=onednn status=" << Quoted(status);
  std::_Exit(static_cast<int>(ExitCode::kBackend));
}

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_ERROR_H_
