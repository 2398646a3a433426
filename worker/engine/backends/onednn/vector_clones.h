// Functions compiled for AVX-512, AVX2 and the baseline; the machine's best is chosen when the
// program loads.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_VECTOR_CLONES_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_VECTOR_CLONES_H_

// Sanitizers cannot run the resolvers that function clones need.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ASSAY_VECTOR_CLONES
#elif defined(__x86_64__)
#define ASSAY_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ASSAY_VECTOR_CLONES
#endif

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_VECTOR_CLONES_H_
