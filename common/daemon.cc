#include "common/daemon.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

#include "common/log.h"

namespace assay {

sigset_t BlockEndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  CHECK(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR);
  return signals;
}

void RaiseDescriptorLimit(uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
    LOG(WARNING) << "few descriptors limit=" << limit.rlim_cur << " wanted=" << wanted;
}

}  // namespace assay
