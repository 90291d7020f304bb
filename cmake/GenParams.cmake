# crenel_generate_params(out_var)
# crenel_generate_tfhe_params(out_var)
#
# Add the commands that turn parameter files into C++ sources and set <out_var> to that source, for
# the SOURCES of a layer: params/*.toml but tfhe-* for ckks (tools/gen_params.py), params/tfhe-*.toml
# for tfhe (tools/gen_tfhe_params.py). Need Python >= 3.11, or 3.10 with tomli.
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)

function(crenel_generate_params out_var)
  file(GLOB sets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/params/*.toml)
  list(FILTER sets EXCLUDE REGEX "/tfhe-[^/]*$")
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

function(crenel_generate_tfhe_params out_var)
  file(GLOB sets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/params/tfhe-*.toml)
  set(script ${PROJECT_SOURCE_DIR}/tools/gen_tfhe_params.py)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/preset_specs.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${Python3_EXECUTABLE} ${script} ${output} ${sets}
    DEPENDS ${script} ${PROJECT_SOURCE_DIR}/tools/gen_params.py ${sets}
    COMMENT "Generating TFHE parameter tables"
    VERBATIM)
  set(${out_var} ${output} PARENT_SCOPE)
endfunction()
