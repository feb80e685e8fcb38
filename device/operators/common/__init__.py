"""C++ headers that expert kernels share; `Operator.expert` writes them out into each kernel's text."""
