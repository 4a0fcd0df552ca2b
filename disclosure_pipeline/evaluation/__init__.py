"""Two tables in, figures out: every public function of the library."""
