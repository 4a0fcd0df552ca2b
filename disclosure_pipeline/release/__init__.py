"""Publishing an approved candidate with a signed statement, verifying and revoking it."""
