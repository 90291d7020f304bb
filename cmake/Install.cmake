# Headers, the static library and what find_package(crenel) needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS crenel EXPORT crenelTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/crenel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT devel FILES_MATCHING PATTERN "*.h")

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/crenel)
install(EXPORT crenelTargets NAMESPACE crenel:: DESTINATION ${config_dir} COMPONENT devel)
set(CRENEL_CUDART "")  # what an installation with CUDA is linked with, for users without a toolkit
if(CRENEL_HAS_CUDA AND CUDA_cudart_static_LIBRARY)
  install(FILES ${CUDA_cudart_static_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR}/crenel COMPONENT devel
    RENAME libcudart_static.a)
  set(CRENEL_CUDART ${CMAKE_INSTALL_LIBDIR}/crenel/libcudart_static.a)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/crenelConfig.cmake.in
  ${PROJECT_BINARY_DIR}/crenelConfig.cmake INSTALL_DESTINATION ${config_dir} PATH_VARS CRENEL_CUDART)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/crenelConfigVersion.cmake
  VERSION ${CRENEL_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/crenelConfig.cmake ${PROJECT_BINARY_DIR}/crenelConfigVersion.cmake
  DESTINATION ${config_dir} COMPONENT devel)
