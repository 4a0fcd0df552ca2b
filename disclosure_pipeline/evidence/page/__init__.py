"""The dossier as a page for people: one file that loads nothing, in an internal and a public edition."""
