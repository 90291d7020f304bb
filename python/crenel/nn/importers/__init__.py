"""Networks and weights of other frameworks.

A reader (`torch_graph`, `onnx_graph`) makes calls of what a framework recorded; `imported` is the module of
such calls, and makes their operations when shapes are known. `torch_functions`, `onnx_operators` and
`onnx_shapes` say what is known, in each framework's own names; their docstrings are the tables of
docs/reference/nn-operators.md. `operators` and `elements` are what these have in common, `replacements` what
is only imported where a caller asks for it. `weights` reads files of weights, `state_dict` those of PyTorch.
"""
