"""Models of published papers, reproduced: their policies, their benchmark families and weights.

One folder per paper (`doppler`, `giph`, `hdp`, `hsdag`, `placeto`). `improving` is shared by the
papers that improve a placement step by step, `groups` by papers that place groups of operators,
`families` holds the papers' benchmarks. Nothing outside this package imports it: the registries of
models and of families look here by name.
"""
