"""Gates over public tables and common synthesizers: `make study`."""
