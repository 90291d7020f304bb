"""Networks and weights of other frameworks.

A reader (`torch`, `onnx`) makes calls of what a framework recorded; `imported` is the module of such calls,
and makes their operations when shapes are known; `operators` is what frameworks have in common; `weights`
reads files of weights, `state_dict` those of PyTorch.
"""
