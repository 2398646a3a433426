// assay-hold: the first process of a sandbox (sandbox.h), which keeps its namespaces for ranks that
// come and go and reaps what they leave behind. Linked statically: it has to start in every image.

#include "worker/agent/hold.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, nullptr);
  const char ready = assay::agent::kHoldIsReady;
  if (write(assay::agent::kHoldFd, &ready, 1) != 1) return 1;
  close(assay::agent::kHoldFd);
  for (;;) {  // until it is killed, and all in the sandbox with it
    int signal = 0;
    sigwait(&children, &signal);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}
