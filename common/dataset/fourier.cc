#include "common/dataset/fourier.h"

namespace assay::dataset {

Mutex& FftwPlannerMutex() {
  static Mutex mutex;
  return mutex;
}

}  // namespace assay::dataset
