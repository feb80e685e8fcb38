"""What a caller can ask of the ledger, by subject: each reads the wire's request, decides, and builds the answer."""
