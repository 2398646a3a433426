# What `cmake --install build/release [--component NAME] [--prefix DIR]` puts where; packages are made
# of the same components (ADR 0230).
#   cli     assay, its pages and completions; rounds and submissions that come with it
#   server  assayd; alerts and a dashboard of its metrics
#   worker  the agent and what it starts, and the helper of nodes whose agents are not root
#   web     assay-web, the site
#   cuda    the plug-in for NVIDIA GPUs, into lib/assay, where assay-train looks for it; only where it
#           was built (ADR 0125)
install(TARGETS assay RUNTIME DESTINATION bin COMPONENT cli)
# Where programs of any prefix look for them: ../share/assay beside bin/.
install(DIRECTORY deploy/rounds deploy/quickstart deploy/bench DESTINATION share/assay COMPONENT cli)
install(TARGETS assayd RUNTIME DESTINATION bin COMPONENT server)
install(DIRECTORY deploy/prometheus DESTINATION share/assay COMPONENT server)
install(PROGRAMS deploy/notify/notify-mail DESTINATION share/assay/notify COMPONENT server)
install(TARGETS assay-worker assay-hold assay-train assay-privileged
  RUNTIME DESTINATION bin COMPONENT worker)
install(TARGETS assay-web RUNTIME DESTINATION bin COMPONENT web)
if(ASSAY_HAS_CUDA)
  # NVIDIA's libraries are looked for where they were when it was linked, then where the loader looks.
  set_target_properties(assay_cuda PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS assay_cuda LIBRARY DESTINATION lib/assay COMPONENT cuda)
endif()

# Man pages and completions, in a tree for each component. Section 1 is made from the table of
# commands, section 5 from the tables of files' keys and the comments of the configuration's proto;
# section 8 is written by hand.
assay_binary(assay-config-page SOURCES deploy/man/config_page.cc DEPS protobuf::libprotobuf
  absl::strings)
set(manual ${PROJECT_BINARY_DIR}/manual)
set(pages ${PROJECT_SOURCE_DIR}/deploy/man)
file(GLOB written_pages CONFIGURE_DEPENDS ${pages}/*.8)
add_custom_command(OUTPUT ${manual}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
  COMMAND assay man ${manual}/cli/share/man --quiet
  COMMAND ${pages}/write_completions.sh $<TARGET_FILE:assay> ${manual}/cli/share
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/server/share/man/man5
          ${manual}/server/share/man/man8 ${manual}/worker/share/man/man5
          ${manual}/worker/share/man/man8 ${manual}/web/share/man/man5 ${manual}/web/share/man/man8
  COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR}/proto --include_source_info --include_imports
          --descriptor_set_out=${manual}/config.pb assay/v1/config.proto
  COMMAND assay-config-page ${manual}/config.pb ServerConfig ${manual}/server/share/man/man5
  COMMAND assay-config-page ${manual}/config.pb WorkerConfig ${manual}/worker/share/man/man5
  COMMAND assay-config-page ${manual}/config.pb WebConfig ${manual}/web/share/man/man5
  COMMAND ${CMAKE_COMMAND} -E copy ${pages}/assay-web.8 ${manual}/web/share/man/man8
  COMMAND ${CMAKE_COMMAND} -E copy ${pages}/assayd.8 ${manual}/server/share/man/man8
  COMMAND ${CMAKE_COMMAND} -E copy ${pages}/assay-worker.8 ${pages}/assay-train.8 ${pages}/assay-hold.8
          ${pages}/assay-privileged.8 ${manual}/worker/share/man/man8
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}/stamp
  DEPENDS assay assay-config-page ${written_pages} ${pages}/write_completions.sh
          ${PROJECT_SOURCE_DIR}/proto/assay/v1/config.proto)
add_custom_target(manual DEPENDS ${manual}/stamp)
foreach(component cli server worker web)
  # Absent where `manual` was not built.
  install(DIRECTORY ${manual}/${component}/share/ DESTINATION share COMPONENT ${component} OPTIONAL)
endforeach()
