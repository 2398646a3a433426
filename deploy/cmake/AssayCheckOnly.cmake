# With ASSAY_CHECK_ONLY the compiler reads every source and warns, and makes no code: a third less time
# (ADR 0104). Objects, libraries and programs of such a build are empty files, and nothing runs.
option(ASSAY_CHECK_ONLY "Have clang check the sources without compiling them" OFF)
if(ASSAY_CHECK_ONLY)
  set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only <SOURCE>" ": > <OBJECT>")
  foreach(kind CREATE_STATIC_LIBRARY CREATE_SHARED_LIBRARY CREATE_SHARED_MODULE LINK_EXECUTABLE)
    set(CMAKE_CXX_${kind} ": > <TARGET>")
    set(CMAKE_CUDA_${kind} ": > <TARGET>")
  endforeach()
  # nvcc's own compiler is the other presets'.
  set(CMAKE_CUDA_COMPILE_OBJECT ": > <OBJECT>")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "")
endif()
