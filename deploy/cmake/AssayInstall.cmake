# What `cmake --install build/release [--component NAME] [--prefix DIR]` puts where (ADR 0125).
#   assay  the programs, into bin
#   cuda   the plug-in for NVIDIA GPUs, into lib/assay, where assay-train looks for it; only where it
#          was built
install(TARGETS assayd assay assay-worker assay-hold assay-train RUNTIME DESTINATION bin COMPONENT assay)
if(ASSAY_HAS_CUDA)
  # NVIDIA's libraries are looked for where they were when it was linked, then where the loader looks.
  set_target_properties(assay_cuda PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS assay_cuda LIBRARY DESTINATION lib/assay COMPONENT cuda)
endif()
