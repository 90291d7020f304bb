# crenel_generate_params(out_var)
#
# Adds the command that turns params/*.toml into preset_tables.cpp (tools/gen_params.py) and sets
# <out_var> to that file, for the SOURCES of the ckks layer. Needs Python >= 3.11, or 3.10 with tomli.
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)

function(crenel_generate_params out_var)
  file(GLOB sets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/params/*.toml)
  set(script ${PROJECT_SOURCE_DIR}/tools/gen_params.py)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/preset_tables.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${Python3_EXECUTABLE} ${script} ${output} ${sets}
    DEPENDS ${script} ${sets}
    COMMENT "Generating CKKS parameter tables"
    VERBATIM)
  set(${out_var} ${output} PARENT_SCOPE)
endfunction()
