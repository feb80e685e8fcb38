# Everything lives in scripts/, which needs no make: these names forward there. Arguments: make test ARGS="-k softmax"
names := setup run test lint bench serve hostile
.PHONY: $(names)
$(names):
	@scripts/$@ $(ARGS)
