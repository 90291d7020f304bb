# Headers, the static library and what find_package(crenel) needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS crenel EXPORT crenelTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/crenel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT devel FILES_MATCHING PATTERN "*.h")

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/crenel)
install(EXPORT crenelTargets NAMESPACE crenel:: DESTINATION ${config_dir} COMPONENT devel)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/crenelConfig.cmake.in
  ${PROJECT_BINARY_DIR}/crenelConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/crenelConfigVersion.cmake
  VERSION ${CRENEL_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/crenelConfig.cmake ${PROJECT_BINARY_DIR}/crenelConfigVersion.cmake
  DESTINATION ${config_dir} COMPONENT devel)
