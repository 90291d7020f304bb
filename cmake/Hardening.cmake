# What makes a fault harder to use: checked stack frames and library calls, no writable tables of
# addresses, no executable stack, programs at random addresses. python/tests/test_hardening.py reads
# it back from what was built.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported()

add_library(crenel_hardening INTERFACE)
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
  string(MAKE_C_IDENTIFIER "CRENEL_HAS${flag}" has)
  check_cxx_compiler_flag(${flag} ${has})
  if(${has})
    target_compile_options(crenel_hardening INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:${flag}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${flag}>)
  endif()
endforeach()
# Needs optimisation, and hides calls from sanitizers, which check more.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT CRENEL_SANITIZE)
  target_compile_options(crenel_hardening INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE> $<$<COMPILE_LANGUAGE:CXX>:-D_FORTIFY_SOURCE=2>)
endif()
foreach(flag relro now noexecstack)
  check_linker_flag(CXX "LINKER:-z,${flag}" CRENEL_LINKS_${flag})
  if(CRENEL_LINKS_${flag})
    target_link_options(crenel_hardening INTERFACE "LINKER:-z,${flag}")
  endif()
endforeach()
