"""Statistics of contamination: what a score or a likelihood shows of a model's training data.

`orders`: tests of a preference for the published order of options or of items. `published` and
`neighbours`: whether published orders look random, without a model. `twins`: a benchmark against its rewritten copy.
"""
