// Which engine of a library computes a convolution, where a backend chooses among several.
//
// A choice outlives its process: a run that replaces another computes with the same engines, to the
// same bits and in the same time.

#ifndef WORKER_ENGINE_ENGINE_CHOICE_H_
#define WORKER_ENGINE_ENGINE_CHOICE_H_

#include <string>
#include <vector>

namespace assay {

struct EngineChoice {
  std::string convolution;   // one pass of it, with all that it depends on
  std::string engine;        // as the library tells its engines apart
  double microseconds = 0;   // the shortest of its timed runs; 0: it was not timed
  int candidates_timed = 0;  // engines it was chosen from

  friend bool operator==(const EngineChoice&, const EngineChoice&) = default;
};

// Choices are of use only on the same kind of device with the same library.
struct EngineChoices {
  std::string device;   // "NVIDIA H200"; empty: nothing is chosen
  std::string library;  // "cuDNN 9.19.0"
  std::vector<EngineChoice> choices;

  friend bool operator==(const EngineChoices&, const EngineChoices&) = default;
};

}  // namespace assay

#endif  // WORKER_ENGINE_ENGINE_CHOICE_H_
