# CUDA is optional: where nvcc, cuBLAS and cuDNN 9 are found, the plug-in libassay_cuda.so is built.
# Sets ASSAY_HAS_CUDA. -DASSAY_CUDA=OFF leaves it out.
option(ASSAY_CUDA "Build the CUDA plug-in where CUDA's compiler and libraries are installed" ON)
# Code for Hopper, and an intermediate form that drivers translate for Ampere and all that is newer.
set(ASSAY_CUDA_ARCHITECTURES "90-real;80-virtual" CACHE STRING "GPUs to generate code for")
set(ASSAY_HAS_CUDA OFF)

# Sanitizers do not know what CUDA's libraries do.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(ASSAY_CUDA OFF)
endif()
if(ASSAY_CUDA)
  include(CheckLanguage)
  # Where NVIDIA's installers put it, which is on nobody's PATH.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
endif()
if(ASSAY_CUDA AND CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_ARCHITECTURES ${ASSAY_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 13 knows C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit)
  find_library(CUDNN_GRAPH_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR})
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(CUDAToolkit_FOUND AND TARGET CUDA::cublasLt AND CUDNN_GRAPH_LIBRARY AND CUDNN_INCLUDE_DIR)
    add_library(cudnn::graph UNKNOWN IMPORTED)
    set_target_properties(cudnn::graph PROPERTIES
      IMPORTED_LOCATION ${CUDNN_GRAPH_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE_DIR})
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    set(ASSAY_HAS_CUDA ON)
  endif()
endif()
message(STATUS "CUDA plug-in: ${ASSAY_HAS_CUDA}")
