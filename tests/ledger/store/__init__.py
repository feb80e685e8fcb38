"""Tests of the ledger's store."""
