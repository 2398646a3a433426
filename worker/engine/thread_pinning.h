// Keeps the threads that compute on cores of their own.

#ifndef WORKER_ENGINE_THREAD_PINNING_H_
#define WORKER_ENGINE_THREAD_PINNING_H_

namespace assay {

// Starts the threads that the backends of the host compute with and binds each but the calling one,
// which is one of them, to another of the cores that this process may use. The calling one stays
// free, because threads that it starts later inherit where it may run. Nothing is bound where there
// are more or fewer of these cores than threads (then other processes use them too), or where
// OMP_PROC_BIND says what is wanted. Returns how many threads were bound.
int PinComputeThreads();

}  // namespace assay

#endif  // WORKER_ENGINE_THREAD_PINNING_H_
