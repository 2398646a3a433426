# Every library that Assay uses, by its Debian 12 name in deploy/packages.txt.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)  # the module: Debian ships no protobuf-config.cmake
find_package(absl CONFIG REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(GTest CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibArchive REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(RapidJSON CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(tomlplusplus CONFIG REQUIRED)
find_package(CURL REQUIRED)
find_package(benchmark CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(ucx CONFIG REQUIRED)
find_package(Boost REQUIRED)  # headers only: Boost.Math

# Debian's dnnl-config.cmake insists on OpenCL headers; we use the CPU engine only.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
add_library(dnnl::dnnl UNKNOWN IMPORTED)
set_target_properties(dnnl::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})

find_package(yaml-cpp CONFIG REQUIRED)

# jq's library comes without a CMake configuration.
find_library(JQ_LIBRARY jq REQUIRED)
find_path(JQ_INCLUDE_DIR jq.h REQUIRED)
add_library(jq::jq UNKNOWN IMPORTED)
set_target_properties(jq::jq PROPERTIES IMPORTED_LOCATION ${JQ_LIBRARY}
                                        INTERFACE_INCLUDE_DIRECTORIES ${JQ_INCLUDE_DIR})

# Nor zstd's as Debian packs it.
find_library(ZSTD_LIBRARY zstd REQUIRED)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
add_library(zstd::zstd UNKNOWN IMPORTED)
set_target_properties(zstd::zstd PROPERTIES IMPORTED_LOCATION ${ZSTD_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${ZSTD_INCLUDE_DIR})

# Nor libdeflate's.
find_library(DEFLATE_LIBRARY deflate REQUIRED)
find_path(DEFLATE_INCLUDE_DIR libdeflate.h REQUIRED)
add_library(libdeflate::libdeflate UNKNOWN IMPORTED)
set_target_properties(libdeflate::libdeflate PROPERTIES IMPORTED_LOCATION ${DEFLATE_LIBRARY}
                                                        INTERFACE_INCLUDE_DIRECTORIES ${DEFLATE_INCLUDE_DIR})

# Nor munge's.
find_library(MUNGE_LIBRARY munge REQUIRED)
find_path(MUNGE_INCLUDE_DIR munge.h REQUIRED)
add_library(munge::munge UNKNOWN IMPORTED)
set_target_properties(munge::munge PROPERTIES IMPORTED_LOCATION ${MUNGE_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${MUNGE_INCLUDE_DIR})

# Nor Net-SNMP's.
find_library(NETSNMP_LIBRARY netsnmp REQUIRED)
find_path(NETSNMP_INCLUDE_DIR net-snmp/net-snmp-config.h REQUIRED)
add_library(netsnmp::netsnmp UNKNOWN IMPORTED)
set_target_properties(netsnmp::netsnmp PROPERTIES IMPORTED_LOCATION ${NETSNMP_LIBRARY}
                                                  INTERFACE_INCLUDE_DIRECTORIES ${NETSNMP_INCLUDE_DIR})

# FFTW has no CMake configuration that Debian ships.
find_library(FFTW3F_LIBRARY fftw3f REQUIRED)
find_path(FFTW3_INCLUDE_DIR fftw3.h REQUIRED)
add_library(fftw3::fftw3f UNKNOWN IMPORTED)
set_target_properties(fftw3::fftw3f PROPERTIES IMPORTED_LOCATION ${FFTW3F_LIBRARY}
                                               INTERFACE_INCLUDE_DIRECTORIES ${FFTW3_INCLUDE_DIR})
find_library(FFTW3_LIBRARY fftw3 REQUIRED)
add_library(fftw3::fftw3 UNKNOWN IMPORTED)
set_target_properties(fftw3::fftw3 PROPERTIES IMPORTED_LOCATION ${FFTW3_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${FFTW3_INCLUDE_DIR})

# Debian has HDF5 without and with MPI side by side, under names of its own.
find_library(HDF5_LIBRARY hdf5_serial REQUIRED)
find_path(HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
add_library(hdf5::hdf5 UNKNOWN IMPORTED)
set_target_properties(hdf5::hdf5 PROPERTIES IMPORTED_LOCATION ${HDF5_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${HDF5_INCLUDE_DIR})
