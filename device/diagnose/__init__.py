"""What is wrong with a kernel, or slow about it: intermediate results, sanitizers, counts.

A diagnosis is no verdict. It builds the candidate in other ways than the judge does, keeps those artefacts apart, and
says what it saw; nothing of it is signed, and nothing of it is scored.
"""
